"""The budgets that keep the code readable, counted over the packages as they are imported.

A function is a `def` or `async def`, methods and nested ones included.
- Its *body lines* run from its first statement after the docstring to its last line; decorators, signature
  and docstring do not count. A body that is only a docstring or `...` (a protocol's method) is no code
  and is left out of the median, so that it cannot lower it.
- Its *whole length* runs from the line of `def` to its last line, docstring included.
- Its *arguments* are all named ones, keyword-only ones too; a method's `self` or `cls` is not counted.
Complexity (at most 8) is counted by ruff.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from textwrap import dedent

import analysis
import simulator

MEDIAN_BODY_LINES = 6
LONGEST_FUNCTION = 40
LONGEST_MODULE = 250
MOST_ARGUMENTS = 5

Function = ast.FunctionDef | ast.AsyncFunctionDef


def source_files() -> list[Path]:
    roots = [Path(root) for package in (simulator, analysis) for root in package.__path__]
    return sorted(path for root in roots for path in root.rglob("*.py"))


def functions_in(source: str) -> Iterator[Function]:
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, Function))


def all_functions() -> Iterator[tuple[str, Function]]:
    for path in source_files():
        for function in functions_in(path.read_text(encoding="utf-8")):
            yield f"{path}:{function.lineno} {function.name}", function


def body_lines(function: Function) -> int | None:
    """Lines from the first statement after the docstring to the end; None when there is no code."""
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    code = [statement for statement in statements if not is_ellipsis(statement)]
    return last_line(function) - first_line(code[0]) + 1 if code else None


def is_ellipsis(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is Ellipsis
    )


def first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def last_line(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno


def whole_length(function: Function) -> int:
    return last_line(function) - function.lineno + 1


def argument_count(function: Function) -> int:
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    return len(names) + len(arguments.kwonlyargs) - (names[:1] in (["self"], ["cls"]))


def only_function(source: str) -> Function:
    (function,) = functions_in(dedent(source))
    return function


def test_half_of_all_functions_have_at_most_six_body_lines() -> None:
    lengths = [lines for _, function in all_functions() if (lines := body_lines(function)) is not None]
    assert lengths, "no function found: the packages have no source here"
    assert median(lengths) <= MEDIAN_BODY_LINES


def test_no_function_is_longer_than_forty_lines() -> None:
    lengths = {place: whole_length(function) for place, function in all_functions()}
    assert {place: n for place, n in lengths.items() if n > LONGEST_FUNCTION} == {}


def test_no_module_is_longer_than_250_lines() -> None:
    lengths = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    assert {path: n for path, n in lengths.items() if n > LONGEST_MODULE} == {}


def test_no_function_takes_more_than_five_arguments() -> None:
    counts = {place: argument_count(function) for place, function in all_functions()}
    assert {place: n for place, n in counts.items() if n > MOST_ARGUMENTS} == {}


def test_decorators_signature_and_docstring_are_no_body_lines() -> None:
    function = only_function(
        '''
        @decorated
        def long_signature(
            one,
        ):
            """One line.

            And more.
            """
            first = 1

            return first
        '''
    )
    assert body_lines(function) == 3
    assert whole_length(function) == 10


def test_a_body_without_code_has_no_length() -> None:
    assert body_lines(only_function('def f(self):\n    """Say what."""\n    ...')) is None


def test_self_is_no_argument_and_a_keyword_only_one_is() -> None:
    assert argument_count(only_function("def f(self, a, /, b, *rest, c, **more): return a")) == 3
