"""A thousand broken scenario files: each is answered with an exit code and one line, never a traceback.

The mutations are seeded, so that a failure comes back: its name tells which file and which number.
"""

import json
import random
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.cli.running import run
from simulator.scenario.shipped_files import scenarios_in, shipped_folder
from simulator.scenario.source import parse_document

MUTANTS, GROUPS = 1000, 10
SECONDS_EACH, SECONDS_ALL = 20.0, 60.0
SMALL_RUN = "run: {batches: 14, warm_up: 6, seed: 7}"
WORDS = [
    *("0", "-1", "1", "3", "0.5", "1e9", "1e15", "1e300", ".inf", "-.inf", ".nan", "1_000", "007", "0x10"),
    *("''", "null", "~", "true", "no", "[]", "{}", "[1, 2]", "{kind: zipf}", "text", '"text"', "2026-01-01"),
    *("0 s", "20 us", "-3 us", "1 parsec", "25 GB/s", "25 Gbps", "1 B/s", "1e18 B/s", "80 GiB", "1e21 B"),
    *("50 %", "120 %", "h100", "nestpipe", "two_level", "recorded", "fp16", "*a", "&a 3", "!!python/none x"),
]
PIECES = [
    *"{}[]:,#&*!|>%@`'\"\\-\t\n \0\x07é\u2028😀",
    ": ",
    "- ",
    "<<: ",
    "---\n",
    "\n  ",
    "9" * 400,
    "a" * 5000,
]
VALUES: list[Any] = [
    *(0, -1, 1, 2, 7, 0.5, -0.5, 10**9, 10**15, 10**400, 1e300, float("nan"), float("inf"), True, None),
    *(
        "",
        "x",
        "8",
        "1 us",
        "0 s",
        "1 GB/s",
        "1 B/s",
        "99 %",
        "1e9 s",
        "3 GB",
        "h100",
        "fp32",
        "ü",
        "../../etc/passwd",
    ),
    *([], {}, [1], [[]], {"kind": "zipf"}, {"kind": 3}, [{"name": "t"}], {"a": {"b": {"c": 1}}}),
]

COMMANDS = [
    *(["run", "--engine", "vector", "--format", "json"], ["run", "--engine", "events", "--format", "json"]),
    *(["run", "--engine", "vector", "--format", "json"], ["explain", "--format", "json"], ["check"]),
]
COSTLY = ("batches", "micro_batches", "hosts", "per_host")  # larger ones are allowed and take their time

Rand = random.Random
Tree = Any


def change_line(text: str, rand: Rand) -> str:
    lines = text.splitlines(keepends=True)
    place = rand.randrange(len(lines))
    kept = {
        "drop": [],
        "twice": [lines[place]] * 2,
        "deeper": ["  " + lines[place]],
        "flat": [lines[place].lstrip()],
    }
    lines[place : place + 1] = kept[rand.choice(list(kept))]
    return "".join(lines)


def swap_lines(text: str, rand: Rand) -> str:
    lines = text.splitlines(keepends=True)
    one, other = rand.randrange(len(lines)), rand.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def insert_piece(text: str, rand: Rand) -> str:
    place = rand.randrange(len(text) + 1)
    return text[:place] + rand.choice(PIECES) + text[place:]


def drop_letters(text: str, rand: Rand) -> str:
    place = rand.randrange(len(text))
    return text[:place] + text[place + rand.choice([1, 1, 2, 30]) :]


def cut_off(text: str, rand: Rand) -> str:
    return text[: rand.randrange(len(text))]


def replace_word(text: str, rand: Rand) -> str:
    found = list(re.finditer(r"[\w.%/]+", text))
    match = rand.choice(found)
    return text[: match.start()] + rand.choice(WORDS) + text[match.end() :]


def nodes(tree: Tree) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every node but the root."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield tree, key
        yield from nodes(tree[key])


def change_tree(text: str, rand: Rand) -> str:
    tree = parse_document(text, "whole").data
    for _ in range(rand.choice([1, 1, 2])):
        container, key = rand.choice(list(nodes(tree)))
        rand.choice([put_value, put_value, drop, rename, take_another, scale, scale, scale])(
            container, key, rand, tree
        )
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False)


def put_value(container: Any, key: Any, rand: Rand, tree: Tree) -> None:
    container[key] = rand.choice(VALUES)


def drop(container: Any, key: Any, rand: Rand, tree: Tree) -> None:
    del container[key]


def scale(container: Any, key: Any, rand: Rand, tree: Tree) -> None:
    """Make some number of the file far too large or too small, in a form that is right."""
    numbers = [(part, name) for part, name in nodes(tree) if is_amount(part[name]) and name not in COSTLY]
    part, name = rand.choice(numbers or [(container, key)])
    factor = 10.0 ** rand.choice([-15, -9, -3, -1, 1, 3, 9, 15])
    if isinstance(part[name], str):
        number, space, unit = part[name].partition(" ")
        part[name] = f"{float(number) * factor:g}{space}{unit}"
    elif is_amount(part[name]):
        part[name] = type(part[name])(part[name] * factor)


def is_amount(value: Any) -> bool:
    if isinstance(value, str):
        return re.fullmatch(r"[0-9.e+-]*[0-9] [A-Za-z/%]+", value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def rename(container: Any, key: Any, rand: Rand, tree: Tree) -> None:
    if isinstance(container, dict):
        container[rand.choice([str(key)[:-1], f"{key}s", "kind", "", 3])] = container.pop(key)


def take_another(container: Any, key: Any, rand: Rand, tree: Tree) -> None:
    """Put a copy of some other part here: right in form, wrong in place."""
    other, name = rand.choice(list(nodes(tree)))
    container[key] = json.loads(json.dumps(other[name], default=str))


MUTATIONS: list[Callable[[str, Rand], str]] = [
    *(change_line, swap_lines, insert_piece, drop_letters, cut_off),
    *(replace_word, replace_word, replace_word),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the shipped scenarios, so that mutants find the data files beside them."""
    copied = tmp_path_factory.mktemp("mutants") / "scenarios"
    shutil.copytree(shipped_folder(), copied)
    return copied


def with_small_run(text: str) -> str:
    """Shorten the run: what is tested is how files are read, not how long they run."""
    text = re.sub(r"lookahead: \d+", "lookahead: 4", text)  # it asks for a warm-up as deep
    return re.sub(r"^run:.*(\n[ ]+.*)*", SMALL_RUN, text, flags=re.MULTILINE)


def mutant(path: Path, number: int) -> str:
    """Break what the file says, or how it is written, or both."""
    rand = Rand(number)
    text = with_small_run(path.read_text(encoding="utf-8"))
    changes = rand.choice([1, 1, 1, 2, 4])
    if rand.random() < 0.4:
        text, changes = change_tree(text, rand), rand.choice([0, 0, 0, 1])
    for _ in range(changes):
        text = rand.choice(MUTATIONS)(text, rand) if re.search(r"\w", text) else text
    return text


def test_the_shortened_scenarios_run_before_anything_is_broken(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in scenarios_in(folder):
        path.with_name("whole.yml").write_text(
            with_small_run(path.read_text(encoding="utf-8")), encoding="utf-8"
        )
        assert run(["run", str(path.with_name("whole.yml")), "--format", "json"]) == 0, path
        assert json.loads(capsys.readouterr().out)["batches"] == 14


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_mutated_scenario_is_run_or_refused_in_one_line(
    folder: Path, group: int, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = scenarios_in(folder)
    codes = set()
    begun = time.process_time()
    for number in range(group, MUTANTS, GROUPS):
        path = paths[number % len(paths)]
        target = path.with_name("mutant.yml")
        target.write_text(mutant(path, number), encoding="utf-8", errors="surrogatepass")
        words = COMMANDS[number // GROUPS % len(COMMANDS)]
        codes.add(answer_of(target, words, capsys))
    assert 0 in codes and 2 in codes
    assert time.process_time() - begun < SECONDS_ALL / GROUPS


def answer_of(path: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> int:
    """Run one command on one mutant, check what it says, and return its exit code."""
    name = (words[0], path.read_bytes())
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code = run([words[0], str(path), *words[1:]])
    out, told = capsys.readouterr()
    told = re.sub(r"recscale: [^\n]*% after \d+ s[^\n]*\n", "", told)  # signs of life on a busy machine
    assert code in (0, 1, 2), (name, code, told)
    assert time.process_time() - begun < SECONDS_EACH, name
    if code == 0:
        assert words[0] == "check" or json.loads(out)["lower_bound_ms"] >= 0, name
    else:
        assert out == "", name
        assert re.fullmatch(r"recscale: [^\n]+\n", told), (name, told)
    return code
