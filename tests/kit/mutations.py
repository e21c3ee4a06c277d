"""Ways to break a file: its letters, its lines, its words, its values, its bytes. All draw from a seed."""

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from simulator.scenario.source import parse_document

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


def change_yaml(text: str, rand: Rand) -> str:
    """Change nodes of a YAML text that is sound."""
    tree = change_tree(parse_document(text, "whole").data, rand)
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False)


def change_json(text: str, rand: Rand) -> str:
    """Change nodes of a JSON text that is sound."""
    return json.dumps(change_tree(json.loads(text), rand), default=str)


def change_tree(tree: Tree, rand: Rand) -> Tree:
    for _ in range(rand.choice([1, 1, 2])):
        container, key = rand.choice(list(nodes(tree)))
        rand.choice([put_value, put_value, drop, rename, take_another, scale, scale, scale])(
            container, key, rand, tree
        )
    return tree


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

NUMBERS_OF_BYTES = [
    *(b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80"),
    *(b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x00\x00\x00\x00\x00\x00\x10\x00"),
    *(b"\x80" * 10, b"\xf0\x7f" * 4),  # a number without an end; not a number
]


def break_text(text: str, rand: Rand, changes: int) -> str:
    for _ in range(changes):
        text = rand.choice(MUTATIONS)(text, rand) if re.search(r"\w", text) else text
    return text


def flipped(content: bytes, rand: Rand) -> bytes:
    return bytes(byte ^ (1 << rand.randrange(8)) for byte in content)


def break_bytes(content: bytes, rand: Rand) -> bytes:
    """Flip bits, overwrite numbers, lose, repeat or move a part, or stop early."""
    for _ in range(rand.choice([1, 1, 2, 6])):
        place, length = rand.randrange(len(content) + 1), rand.choice([1, 2, 4, 8, 64, 512])
        part, rest = content[place : place + length], content[place + length :]
        content = rand.choice(
            [
                content[:place] + flipped(part[:1], rand) + content[place + 1 :],
                content[:place] + (number := rand.choice(NUMBERS_OF_BYTES)) + content[place + len(number) :],
                content[:place] + rest,
                content[:place] + part * rand.choice([2, 3, 100]) + rest,
                content[:place] + bytes(length) + rest,
                content[:place],
                rest + content[: place + length],
            ]
        )
    return content
