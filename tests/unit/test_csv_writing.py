"""CSV that is opened in a spreadsheet: no cell runs, and what was written comes back."""

import csv
import io
from pathlib import Path

import pytest

from analysis.cli.options import Format
from analysis.cli.output import Answer
from simulator.calibration.csv_table import read_lines
from simulator.results.csv_writing import inert, meant, write_csv

ROOT = Path(__file__).resolve().parents[2]
FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\n=1", "=HYPERLINK(1)", "＝1"]  # noqa: RUF001


@pytest.mark.parametrize("cell", FORMULAS)
def test_text_that_begins_like_a_formula_is_written_as_text(cell: str) -> None:
    stream = io.StringIO()
    write_csv(["=name", "value"], [{"=name": cell, "value": 1}], stream)
    head, row = list(csv.reader(io.StringIO(stream.getvalue(), newline="")))
    assert (head[0], row[0]) == ("'=name", f"'{cell}")
    assert meant(inert(cell)) == cell


@pytest.mark.parametrize("cell", [-1.5, -3, "-3.5", "+1e9", "-inf", "-", "a=b", "", None, True, "'quoted'"])
def test_numbers_and_plain_text_are_written_as_they_are(cell: object) -> None:
    assert inert(cell) == cell


def test_answers_in_csv_escape_names_that_are_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    Answer({}, [{"scenario": "=1+1", "step_ms": -1.0, "note": None}], lambda console: None).show(Format.csv)
    assert capsys.readouterr().out == "scenario,step_ms,note\n'=1+1,-1.0,\n"


def test_the_reader_takes_the_apostrophe_off_again(tmp_path: Path) -> None:
    with (tmp_path / "t.csv").open("w", newline="") as file:
        write_csv(["a"], [{"a": "=x"}, {"a": "'tis"}], file)
    assert [line.text("a") for line in read_lines(tmp_path / "t.csv")] == ["=x", "'tis"]


def test_a_carriage_return_starts_no_row() -> None:
    stream = io.StringIO()
    write_csv(["a"], [{"a": "x\r=1"}, {"a": "\r=1"}], stream)
    assert list(csv.reader(io.StringIO(stream.getvalue(), newline=""))) == [["a"], ["x\n=1"], ["'\n=1"]]


def test_nothing_else_in_the_package_writes_csv() -> None:
    texts = {
        path.name: path.read_text()
        for room in ("simulator", "analysis")
        for path in (ROOT / room).rglob("*.py")
    }
    writers = ("csv.writer(", "to_csv(", "DictWriter(", "write_csv(pyarrow")
    assert [name for name, text in texts.items() if any(one in text for one in writers)] == ["csv_writing.py"]
