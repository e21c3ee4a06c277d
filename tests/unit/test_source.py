"""Untrusted YAML: what is read, where it was written, and how everything else is refused."""

import os
import random
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import yaml

from simulator.errors import InputError
from simulator.scenario.source import MAX_BYTES, Document, apply_overrides, parse_document, read_document
from simulator.scenario.yaml_guard import YamlTextError, load, loader_from

SCENARIO = """\
# one complete run
cluster: {accelerator: ascend_910b, per_host: 8, hosts: 192}
workload:
  model: {kind: hstu, layers: 8}
  tables:
    - {name: items, rows: 2e9, dtype: fp32}
    - name: users
      rows: 1_000
  batch: 512
policy:
  kind: nested
run: {batches: 60, seed: 7, fold: auto}
"""


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_document(text, "x.yaml")
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_a_scenario_is_read_into_plain_data() -> None:
    document = parse_document(SCENARIO, "x.yaml")
    assert document.data["workload"]["tables"][0] == {"name": "items", "rows": 2e9, "dtype": "fp32"}
    assert document.data["run"] == {"batches": 60, "seed": 7, "fold": "auto"}


def test_each_key_and_item_knows_its_line() -> None:
    lines = parse_document(SCENARIO, "x.yaml").lines
    assert lines["cluster",] == lines["cluster", "hosts"] == 2
    assert lines["workload", "tables", 0] == lines["workload", "tables", 0, "rows"] == 6
    assert lines["workload", "tables", 1, "rows"] == 8


def test_a_path_that_was_not_written_is_placed_at_its_parent() -> None:
    document = parse_document(SCENARIO, "x.yaml")
    assert str(document.where(("workload", "tables", 1, "dim"))) == "x.yaml:7: workload.tables[1].dim"
    assert str(document.where(("odd key\n",))) == 'x.yaml:2: "odd key\\n"'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2e9", 2e9),
        ("1e-3", 1e-3),
        ("1_000", 1000),
        ("+5", 5),
        ("-2.5E+3", -2500.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e400", float("inf")),
        ("-.INF", float("-inf")),
        ("12:30", "12:30"),
        ("190:20:30.15", "190:20:30.15"),
        ("2024-01-01", "2024-01-01"),
        ("0x1F", "0x1F"),
        ("010", "010"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("true", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("null", None),
        ("'2e9'", "2e9"),
        ("25 GB/s", "25 GB/s"),
        ("24.7 %", "24.7 %"),
        ("!!str 12", "12"),
        ("!!float 1.5", 1.5),
        ("=", "="),
        ("e5", "e5"),
        ("1e", "1e"),
        (".", "."),
        ("-", [None]),
        ("1\u0663", "1\u0663"),
    ],
)
@pytest.mark.parametrize("base", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
def test_scalars_mean_what_they_look_like(text: str, value: object, base: Any) -> None:
    data, _ = load(f"a:\n  {text}\n", loader_from(base))
    assert data == {"a": value}
    assert type(data["a"]) is type(value)


def test_not_a_number_is_read_as_such_for_the_field_to_refuse() -> None:
    value = parse_document("a: .nan", "x.yaml").data["a"]
    assert value != value


def test_a_number_of_a_million_digits_is_read_as_infinity_at_once() -> None:
    assert parse_document("a: " + "9" * 1_000_000, "x.yaml").data["a"] == float("inf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.yaml: is empty"),
        ("# nothing\n", "x.yaml: is empty"),
        ("- a\n- b", "x.yaml:1: the top level must be a mapping (key: value), not a list"),
        ("just text", 'x.yaml:1: the top level must be a mapping (key: value), not "just text"'),
        ("a: 1\nb:\n  x: 1\n  x: 2", 'x.yaml:4: b.x: key "x" is on line 3 and again on line 4'),
        ("a: 1\ntrue: 2", 'x.yaml:2: key "true" reads as true or false; put it in quotes'),
        ("a: {5: 1}", 'x.yaml:1: a: key "5" reads as a number; put it in quotes'),
        ("~: 1", 'x.yaml:1: key "~" reads as nothing; put it in quotes'),
        ("{a: b}: 1", "x.yaml:1: a list or mapping cannot be a key; is a quote missing?"),
        ("a: &a {x: 1}\nb:\n  <<: *a", "x.yaml:3: b: merge keys (<<) are not supported; write the keys out"),
        ("a: 1\nb: !!python/name:os.system", 'x.yaml:2: tag "!!python/name:os.system" is not allowed'),
        ("a: !secret x", 'x.yaml:1: tag "!secret" is not allowed'),
        ("a: !!binary aGk=", 'x.yaml:1: tag "!!binary" is not allowed'),
        ("a: !!int abc", 'x.yaml:1: a: "abc" does not fit its tag'),
        ("a: 1\n---\nb: 2", "x.yaml:2: a second document begins here; one file holds one"),
        ("a:\n\tb: 1", "x.yaml:2: a tab cannot indent YAML; use spaces"),
        ("a: 1\nb: \x00", "x.yaml:2: the character U+0000 is not allowed; is this a text file?"),
        ("a: &a [*a]", 'x.yaml:1: alias "a" refers to what contains it'),
        ("a: 1\nb: &a {c: {d: *a}}", 'x.yaml:2: alias "a" refers to what contains it'),
        ("x" * 300 + ": 1", "x.yaml:1: a key of 300 characters is too long"),
    ],
)
def test_what_cannot_be_a_scenario_is_refused_with_its_line(text: str, message: str) -> None:
    assert refused(text) == message


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: 1\nb: [1, 2", 2), ("a: 1\nb: c: d", 2), ("a: 'x", 1), ("a: 1\nb: *x", 2), ("a: 1\n  b: 2", 2)],
)
def test_broken_syntax_is_refused_with_its_line(text: str, line: int) -> None:
    assert refused(text).startswith(f"x.yaml:{line}: not valid YAML: ")


def test_words_that_older_yaml_reads_as_booleans_are_keys_like_any_other() -> None:
    assert parse_document("on: 1\nyes: 2\nn: 3", "x.yaml").data == {"on": 1, "yes": 2, "n": 3}


def test_an_alias_gives_an_independent_copy() -> None:
    data = parse_document("a: &a {x: 1}\nb: *a", "x.yaml").data
    data["b"]["x"] = 2
    assert data["a"] == {"x": 1}


def bomb() -> str:
    steps = "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10))
    return "a0: &a0 [1,1,1,1]\n" + steps


def alias_tower() -> str:
    steps = "".join(f"a{i}: &a{i} {'[' * 40}*a{i - 1}{']' * 40}\n" for i in range(1, 60))
    return "a0: &a0 [x]\n" + steps


@pytest.mark.parametrize(
    "text",
    [
        bomb(),
        alias_tower(),
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 50_000,
        "? " * 50_000,
        "a: [" + "1," * 1_900_000 + "]",
        "a: &a 1\nb: [" + "*a," * 900_000 + "]",
        ":" * 1_000_000,
        '"' * 1_000_000,
        "&a " * 100_000,
        "\n".join(" " * depth + "a:" for depth in range(2000)),
    ],
    ids=lambda text: text[:12],
)
def test_a_text_built_to_exhaust_the_reader_is_refused_quickly(text: str) -> None:
    start = perf_counter()
    refused(text)
    assert perf_counter() - start < 10


@pytest.mark.parametrize(
    "text", [bomb(), alias_tower(), "[" * 5000, "? " * 5000, 'a: "\\ud800"'], ids=lambda text: text[:12]
)
def test_the_python_parser_is_guarded_like_the_fast_one(text: str) -> None:
    with pytest.raises(YamlTextError):
        load(text, loader_from(yaml.SafeLoader))


def test_a_missing_file_names_its_nearest_neighbour(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text("a: 1")
    with pytest.raises(InputError, match=r'there is no such file \(did you mean "scenario.yaml"\?\)'):
        read_document(tmp_path / "scenaro.yaml")


def test_a_missing_folder_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no such file$"):
        read_document(tmp_path / "no" / "x.yaml")


@pytest.mark.parametrize(
    "name", ["x" * 5000, "a\0b", "file.yaml/x.yaml", "loop"], ids=["long", "nul", "file", "loop"]
)
def test_a_name_that_cannot_be_opened_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.yaml").write_text("a: 1")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InputError, match="cannot be read") as caught:
        read_document(tmp_path / name)
    assert str(caught.value).isprintable()


def test_a_directory_a_pipe_and_a_device_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, problem in [
        (tmp_path, "is a directory"),
        (tmp_path / "pipe", "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
    ]:
        with pytest.raises(InputError, match=problem):
            read_document(path)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"a: 1\n" + b"#" * MAX_BYTES)
    with pytest.raises(InputError, match="is larger than 4 MB"):
        read_document(path)


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    document = read_document(path)
    assert (document.data, document.lines["b",], document.file) == ({"a": 1, "b": 2}, 2, str(path))


@pytest.mark.parametrize("content", [b"a: 1\nb: \xff\xfe", "a: é".encode("latin-1"), b"\x89PNG\r\n"])
def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_document(path)


def test_four_hundred_damaged_files_are_read_or_refused_and_nothing_else(tmp_path: Path) -> None:
    draw, path, outcomes = random.Random(7), tmp_path / "x.yaml", {True: 0, False: 0}
    for _ in range(400):
        path.write_bytes(damaged(SCENARIO.encode(), draw))
        try:
            outcomes[isinstance(read_document(path), Document)] += 1
        except InputError as error:
            assert str(error).isprintable()
            outcomes[False] += 1
    assert min(outcomes.values()) > 40


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Delete, double, swap or overwrite a few pieces, with a taste for YAML's own signs."""
    pieces = [
        b"&a ",
        b"*a",
        b"!!x ",
        b"[",
        b"}",
        b": ",
        b"- ",
        b"\t",
        b"'",
        b"|\n",
        b"%",
        b"\x00",
        b"\xff",
        b"---\n",
    ]
    for _ in range(draw.randint(1, 4)):
        at, length = draw.randrange(len(content)), draw.randint(0, 12)
        middle = draw.choice([b"", content[at : at + length] * 2, draw.choice(pieces), draw.randbytes(1)])
        content = content[:at] + middle + content[at + length :]
    return content


def changed(*assignments: str) -> Document:
    return apply_overrides(parse_document(SCENARIO, "x.yaml"), assignments)


def test_overrides_replace_values_by_the_rules_of_files() -> None:
    data = changed(
        "workload.batch=256", "policy.kind=serialized", "workload.tables[1].rows=2e9", "run.fold=off"
    ).data
    assert data["workload"]["batch"] == 256
    assert data["policy"] == {"kind": "serialized"}
    assert data["workload"]["tables"][1] == {"name": "users", "rows": 2e9}
    assert data["run"]["fold"] == "off"


def test_an_override_may_hold_text_with_units_a_list_or_an_equals_sign() -> None:
    data = changed("a=25 GB/s", "b=[1, {c: 2}]", "c='x=y'", "d=null").data
    assert (data["a"], data["b"], data["c"], data["d"]) == ("25 GB/s", [1, {"c": 2}], "x=y", None)


def test_an_override_makes_the_mappings_it_needs_and_says_where_they_came_from() -> None:
    document = changed("calibration.gemm.rate=1")
    assert document.data["calibration"] == {"gemm": {"rate": 1}}
    assert str(document.where(("calibration", "gemm"))) == "--set: calibration.gemm"


def test_an_overridden_part_is_placed_at_the_override_and_its_neighbours_are_not() -> None:
    document = changed("workload.model={kind: hstu, layerz: 3}")
    assert str(document.where(("workload", "model", "layerz"))) == "--set: workload.model.layerz"
    assert str(document.where(("workload", "batch"))) == "x.yaml:9: workload.batch"


def test_the_original_document_is_left_alone() -> None:
    document = parse_document(SCENARIO, "x.yaml")
    apply_overrides(document, ["workload.tables[0].rows=1", "run={}"])
    assert document == parse_document(SCENARIO, "x.yaml")


def test_a_later_override_sees_an_earlier_one() -> None:
    assert changed("run={batches: 1}", "run.seed=3").data["run"] == {"batches": 1, "seed": 3}


def test_another_source_can_be_named() -> None:
    document = apply_overrides(parse_document(SCENARIO, "x.yaml"), ["run.seed=1"], source="--seed")
    assert document.where(("run", "seed")).file == "--seed"


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("workload.batch", '--set: "workload.batch" is not of the form "path.to.key=value"'),
        ("=5", '--set: "=5" is not of the form "path.to.key=value"'),
        ("a..b=5", '--set: "a..b=5" is not of the form "path.to.key=value"'),
        ("a[x]=5", '--set: "a[x]=5" is not of the form "path.to.key=value"'),
        ("a[-1]=5", '--set: "a[-1]=5" is not of the form "path.to.key=value"'),
        ("a=", '--set: a: the value "": is empty'),
        (
            "workload.tables[2].rows=5",
            "--set: workload.tables[2].rows: workload.tables has 2 items, counted from 0; there is no [2]",
        ),
        ("workload.batch.x=5", "--set: workload.batch.x: workload.batch is 512, not a mapping"),
        ("policy[0]=5", "--set: policy[0]: policy is a mapping, not a list"),
        ("workload.tables.rows=5", "--set: workload.tables.rows: workload.tables is a list, not a mapping"),
        ("new[0]=5", "--set: new[0]: new has 0 items, counted from 0; there is no [0]"),
        ("a=!!python/name:x", '--set: a: the value "!!python/name:x": tag "!!python/name:x" is not allowed'),
        (
            "a=\ud800",
            '--set: a: the value "\\ud800": the character U+D800 is not allowed; is this a text file?',
        ),
    ],
)
def test_a_wrong_override_is_refused_with_its_path(assignment: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        changed(assignment)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "assignment",
    ["a" + ".a" * 60 + "=1", "a=" + "[" * 10_000, "a=" + "x" * 100_000, "a" + "[0]" * 5000 + "=1"],
    ids=["long path", "deep value", "long value", "many indices"],
)
def test_an_override_built_to_exhaust_the_reader_is_refused(assignment: str) -> None:
    with pytest.raises(InputError) as caught:
        changed(assignment)
    assert len(str(caught.value)) < 300
