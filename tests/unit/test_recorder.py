"""The recorder finds whatever changed in what commands say, and nothing where nothing did."""

import json
from copy import deepcopy
from pathlib import Path

import pytest
from recorder import PLACE, Record, columns_of, differences, main, record
from seeds import seeds
from typer.main import get_command

from analysis.cli.app import app

FEW = ("run quickstart events", "explain quickstart json", "catalog show accelerator h100", "sound topo 0")


def recorded() -> dict[str, Record]:
    from recorded_commands import steps

    return record(step for step in steps() if step.needed or step.name in (*FEW, "broken 3"))


@pytest.fixture(scope="module")
def before() -> dict[str, Record]:
    return recorded()


def keep(folder: Path, records: dict[str, Record]) -> str:
    folder.mkdir()
    (folder / "records.json").write_text(json.dumps(records), encoding="utf-8")
    return str(folder)


@pytest.mark.slow
def test_the_same_program_says_the_same(before: dict[str, Record]) -> None:
    assert {"init", *FEW, "broken 3"} == set(before)
    assert differences(before, recorded()) == []


@pytest.mark.slow
def test_a_changed_digit_is_found_where_it_is(
    before: dict[str, Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = deepcopy(before)
    step_ms = after["run quickstart events"]["out"]["step_ms"]
    step_ms["mean"] *= 1 + 2**-52
    old, new = keep(tmp_path / "old", before), keep(tmp_path / "new", after)
    assert main(["compare", old, new]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("run quickstart events.out.step_ms.mean: ") and repr(step_ms["mean"]) in line
    assert main(["compare", old, old]) == 0
    assert capsys.readouterr().out == "no difference\n"


@pytest.mark.slow
def test_codes_messages_files_and_missing_records_are_compared(before: dict[str, Record]) -> None:
    run = before["run quickstart events"]
    assert {"code", "out", "err", "words", "files"} == set(run) and run["code"] == 0
    names = {name.rpartition("/")[2] for name in run["files"]}
    assert {"run.json", "steps.parquet", "stages.parquet", "trace.json.gz"} <= names
    for key, other in (("code", 1), ("err", ["recscale: no"]), ("files", {}), ("words", ["run"])):
        assert differences(before, {**before, "run quickstart events": {**run, key: other}}) != []
    rest = {name: one for name, one in before.items() if name != "run quickstart events"}
    assert len(differences(before, rest)) == len(differences(rest, before)) == 1


def test_values_that_are_equal_but_not_alike_are_told_apart() -> None:
    assert differences([1, 0.0, True], [1.0, -0.0, 1]) == [
        "[0]: 1 became 1.0", "[1]: 0.0 became -0.0", "[2]: True became 1"
    ]  # fmt: skip
    assert differences({"a": [1]}, {"a": [1, 2]}) == ["a: [1] became [1, 2]"]


def test_a_table_is_told_apart_column_by_column(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    for name, last in (("old", 2.0), ("new", 2.0000000000000004)):
        parquet.write_table(pyarrow.table({"a": [1, 2], "b": [1.0, last]}), tmp_path / f"{name}.parquet")
    old, new = (columns_of(tmp_path / f"{name}.parquet") for name in ("old", "new"))
    assert [line.split(":")[0] for line in differences(old, new)] == ["b"]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("recscale: broken.yml:12: cluster.fabric: no", "broken.yml:12: cluster.fabric:"),
        ("recscale: log.csv:3: cut", "log.csv:3:"),
        ("recscale: log.csv: cannot be read", "log.csv:"),
        ("recscale: --set: run.seed: no", "--set: run.seed:"),
        ("recscale: no such command", ""),
    ],
)
def test_the_place_of_a_message_is_kept(line: str, place: str) -> None:
    match = PLACE.match(line)
    assert match is not None and match["place"].strip() == place


def test_every_command_is_recorded() -> None:
    from recorded_commands import steps

    group = get_command(app)
    named = {step.name.split()[0] for step in steps()} | {one.commands[0][0] for one in seeds()}
    assert set(group.commands) - {"dashboard"} <= named  # type: ignore[attr-defined]
