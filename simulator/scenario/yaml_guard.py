"""Untrusted YAML into plain data: bounded, without code, without the surprises of YAML 1.1.

Only `true` and `false` are booleans (`yes`, `on` are text); `2e9` and `1e-3` are numbers; `12:30`,
`0x1F`, `010` and dates stay text. Tags beyond the core, merge keys, repeated keys, deep nesting,
exploding aliases and further documents are refused. Events are checked as they stream out of the
parser, before anything recursive sees them, so that no input can exhaust the stack.
"""

import re
from typing import Any

import yaml

from simulator.errors import printable
from simulator.scenario.document import KeyPath
from simulator.units import shown

MAX_DEPTH = 50
MAX_NODES = 100_000
MAX_KEY = 200

_TAG = "tag:yaml.org,2002:"
_STR, _INT, _FLOAT, _BOOL, _NULL = (_TAG + name for name in ("str", "int", "float", "bool", "null"))
_CORE = {None, "!", _STR, _INT, _FLOAT, _BOOL, _NULL, _TAG + "map", _TAG + "seq"}
_PATTERNS = {
    _BOOL: r"true|True|TRUE|false|False|FALSE",
    _NULL: r"~|null|Null|NULL|",
    _INT: r"[-+]?(?:0|[1-9][0-9_]*)",
    _FLOAT: r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
}
_KINDS = {_INT: "a number", _FLOAT: "a number", _BOOL: "true or false", _NULL: "nothing"}
_UNPRINTABLE = re.compile(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class YamlTextError(Exception):
    """What is wrong with a text (one sentence), at which line (from 1) and path, where known."""

    def __init__(self, problem: str, line: int | None = None, path: KeyPath = ()) -> None:
        """Keep the parts; the caller knows the file and makes the user's error of them."""
        super().__init__(problem)
        self.problem, self.line, self.path = problem, line, path


def loader_from(base: Any) -> Any:
    """Return a loader class on PyYAML's `base` (C or Python) that recognises our scalars only."""
    loader: Any = type("ScenarioLoader", (base,), {"yaml_implicit_resolvers": {}})
    for tag, pattern in _PATTERNS.items():
        loader.add_implicit_resolver(tag, re.compile(rf"(?:{pattern})\Z"), [None])
    return loader


LOADER = loader_from(getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def load(text: str, loader: Any = LOADER) -> tuple[Any, dict[KeyPath, int]]:
    """Return the plain data in `text` and the line of each key and item. Raises YamlTextError."""
    _check_characters(text)
    try:
        guard = _Guard()
        for event in yaml.parse(text, Loader=loader):
            guard.check(event)
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text) from None
    except yaml.YAMLError:
        raise YamlTextError("not valid YAML") from None
    if root is None:
        raise YamlTextError("is empty")
    builder = _Builder()
    return builder.build(root, ()), builder.lines


def _check_characters(text: str) -> None:
    odd = _UNPRINTABLE.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise YamlTextError(f"the character U+{ord(odd[0]):04X} is not allowed; is this a text file?", line)


def _syntax_error(error: yaml.MarkedYAMLError, text: str) -> YamlTextError:
    lines = text.splitlines()
    marks = [mark for mark in (error.problem_mark, error.context_mark) if mark]
    inside = [mark.line for mark in marks if mark.line < len(lines)]  # the end of the text is no help
    if not inside:
        return YamlTextError("not valid YAML")
    here = lines[inside[0]]
    if "\t" in here[: len(here) - len(here.lstrip())]:
        return YamlTextError("a tab cannot indent YAML; use spaces", inside[0] + 1)
    detail = ", ".join(part for part in (error.context, error.problem) if part)
    return YamlTextError(f"not valid YAML: {printable(detail[:160])}", inside[0] + 1)


class _Guard:
    """Watches the parser's events; holds the anchors of the collections that are still open."""

    def __init__(self) -> None:
        self.open: list[str | None] = []
        self.nodes = self.documents = 0

    def check(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise YamlTextError("a second document begins here; one file holds one", line)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event, line)
        elif isinstance(event, yaml.NodeEvent):
            self._node(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self.open.pop()

    def _alias(self, event: Any, line: int) -> None:
        self.nodes += 1
        _bounded(self.nodes, line)
        if event.anchor in self.open:
            raise YamlTextError(f"alias {shown(event.anchor)} refers to what contains it", line)

    def _node(self, event: Any, line: int) -> None:
        self.nodes += 1
        _bounded(self.nodes, line)
        if event.tag not in _CORE:
            raise YamlTextError(f"tag {shown(event.tag.replace(_TAG, '!!'))} is not allowed", line)
        if isinstance(event, yaml.CollectionStartEvent):
            self.open.append(event.anchor)
            _shallow(len(self.open), line)


def _bounded(nodes: int, line: int) -> None:
    if nodes > MAX_NODES:
        raise YamlTextError(f"more than {MAX_NODES} values, aliases counted in full", line)


def _shallow(depth: int, line: int) -> None:
    if depth > MAX_DEPTH:
        raise YamlTextError(f"nested more than {MAX_DEPTH} levels deep", line)


class _Builder:
    """Turns checked nodes into data; an alias becomes a copy, so that parts can change alone."""

    def __init__(self) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.nodes = 0

    def build(self, node: Any, path: KeyPath) -> Any:
        line = node.start_mark.line + 1
        self.nodes += 1
        _bounded(self.nodes, line)
        self.lines.setdefault(path, line)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node, path)
        _shallow(len(path) + 1, line)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._mapping(node, path)

    def _mapping(self, node: Any, path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            key, line = _key(key_node, path), key_node.start_mark.line + 1
            if key in seen:
                both = f"on line {seen[key]} and again on line {line}"
                raise YamlTextError(f"key {shown(key)} is {both}", line, (*path, key))
            seen[key] = self.lines[(*path, key)] = line
            data[key] = self.build(value_node, (*path, key))
        return data


def _key(node: Any, path: KeyPath) -> str:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode):
        raise YamlTextError("a list or mapping cannot be a key; is a quote missing?", line, path)
    key = str(node.value)
    if node.tag in _KINDS:
        name = shown(key)
        raise YamlTextError(f"key {name} reads as {_KINDS[node.tag]}; put it in quotes", line, path)
    if key == "<<":
        raise YamlTextError("merge keys (<<) are not supported; write the keys out", line, path)
    if len(key) > MAX_KEY:
        raise YamlTextError(f"a key of {len(key)} characters is too long", line, path)
    return str(_scalar(node, path))


def _scalar(node: Any, path: KeyPath) -> Any:
    text, line = node.value, node.start_mark.line + 1
    if node.tag != _STR and not _matches(node.tag, text):
        raise YamlTextError(f"{shown(text)} does not fit its tag", line, path)
    if _SURROGATE.search(text):
        raise YamlTextError("text holds half of a character pair (a lone surrogate)", line, path)
    return _CONVERT[node.tag](text)


def _matches(tag: str, text: str) -> bool:
    return tag in _PATTERNS and re.fullmatch(_PATTERNS[tag], text) is not None


def _whole(text: str) -> int | float:
    # Python reads at most 4300 digits; far below that a count is beyond use, and infinity says so.
    return int(text.replace("_", "")) if len(text) <= 400 else _real(text)


def _real(text: str) -> float:
    return float(text.lower().replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))


_CONVERT: dict[str, Any] = {
    _STR: str,
    _INT: _whole,
    _FLOAT: _real,
    _BOOL: lambda text: text.lower() == "true",
    _NULL: lambda text: None,
}
