"""`recscale calibrate fit`: curves of collectives from measured tables."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.cli.running import run

Command = Callable[..., Any]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in 80 columns; return exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "80")

    def command(*words: str) -> tuple[int, str, str]:
        code = run(["calibrate", *words])
        return (code, *capsys.readouterr())

    return command


@pytest.fixture
def tables(tmp_path: Path) -> str:
    """A folder with an all-reduce of 20 us + bytes / (5 GB/s) at two scales, and a table of noise."""
    folder = tmp_path / "tables"
    folder.mkdir()
    names = [("two", 2), ("four", 4), ("noisy", 2)]
    with (folder / "tables.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("table_id", "group", "collective", "accel", "n_ranks", "n_nodes", "notes"))
        for name, nodes in names:
            notes = "use for noise studies only" if name == "noisy" else ""
            writer.writerow((name, "lab", "all_reduce", "x", 8 * nodes, nodes, notes))
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("table_id", "size_bytes", "time_us"))
        for name, nodes in names:
            for power in range(10, 28):
                writer.writerow((name, 2**power, 10 * nodes + 2**power / 5e3))
    return str(folder)


def test_each_system_is_told_with_its_errors(told: Command, tables: str) -> None:
    code, out, err = told("fit", "--collectives", tables)
    assert code == 0 and err == ""
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith("lab\n") and "all_reduce" in out and "2, 4" in out
    assert "noise studies only, by their own notes: noisy" in out


def test_json_and_csv_hold_the_same_systems(told: Command, tables: str) -> None:
    data = json.loads(told("fit", "--collectives", tables, "--format", "json")[1])
    (system,) = {row["operation"]: row for row in data["systems"]}.values()
    assert system["operation"] == "all_reduce" and system["nodes"] == [2, 4]
    assert system["sizes_median_error"] < 0.05 and data["left_out"] == ["noisy"]
    header, record, *more = told("fit", "--collectives", tables, "--format", "csv")[1].splitlines()
    assert header.startswith("system,operation,nodes") and "2; 4" in record
    assert len(more) + 1 == len(data["systems"])


def test_the_curves_are_written_as_a_catalog_file(told: Command, tables: str, tmp_path: Path) -> None:
    out = tmp_path / "new" / "curves.yaml"
    code, _, err = told("fit", "--collectives", tables, "--out", str(out), "--format", "json")
    assert code == 0 and err == f"recscale: wrote {out}\n"
    (entry,) = yaml.safe_load(out.read_text(encoding="utf-8"))["entries"].values()
    first = entry["scales"][0]
    assert (entry["operation"], first["nodes"], first["range"]) == (
        "all_reduce",
        2,
        ["1024 B", "134217728 B"],
    )
    assert {"value", "interval", "source", "confidence"} <= first["lines"][0]["latency"].keys()


def test_wrong_folders_are_refused_in_one_line(told: Command, tmp_path: Path) -> None:
    code, out, err = told("fit", "--collectives", str(tmp_path))
    assert (code, out, err.count("\n")) == (2, "", 1) and "tables.csv" in err
    code, out, err = told("fit")
    assert (code, out, err.count("\n")) == (2, "", 1) and "give either --collectives" in err


def test_calibrate_alone_shows_its_help(told: Command) -> None:
    code, out, _ = told()
    assert code == 0 and out == told("--help")[1] and "fit " in out


def test_all_measured_tables_are_fitted_within_80_columns(told: Command, measured_data: Path) -> None:
    code, out, _ = told("fit", "--collectives", str(measured_data / "collectives"))
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    assert "all_to_all" in out and "noise studies" in out
