"""`recscale validate`: one row a case, worst first, and plain answers to wrong folders."""

import csv
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from analysis.cli.running import run
from analysis.validating import validate_folder

Command = Callable[..., Any]
GEMM = "device,batch,m,n,k,dtypes,time_us\n"


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in 100 columns; return exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "100")

    def command(*words: str) -> tuple[int, str, str]:
        code = run(["validate", *words])
        return (code, *capsys.readouterr())

    return command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of matrix products on a device of the catalog, of shapes that it has never seen."""
    (tmp_path / "kernels").mkdir()
    lines = [f"H100-SXM,1,{m},{n},384,bf16xbf16->bf16,{m * n / 1e4}" for m in (300, 6000) for n in (300, 700)]
    (tmp_path / "kernels" / "gemm_new.csv").write_text(GEMM + "\n".join(lines), encoding="utf-8")
    return tmp_path


def test_json_has_one_row_a_case_with_the_promised_keys(told: Command, folder: Path) -> None:
    code, out, _ = told("--data", str(folder), "--format", "json")
    rows = json.loads(out)
    assert (code, len(rows)) == (0, 4)
    wanted = {"case_id", "measured_ms", "predicted_ms", "error", "low", "high", "role", "extrapolated"}
    assert all(wanted <= row.keys() for row in rows)
    assert all(row["low"] < row["predicted_ms"] < row["high"] for row in rows)
    assert {row["extrapolated"] for row in rows if "x300x" in row["case_id"]} == {False, True}


def test_cases_stand_worst_first(told: Command, folder: Path) -> None:
    _, out, _ = told("--data", str(folder), "--format", "csv")
    errors = [abs(float(row["error"])) for row in csv.DictReader(StringIO(out))]
    assert errors == sorted(errors, reverse=True)


def test_the_table_gives_scores_and_fits_on_a_terminal(told: Command, folder: Path) -> None:
    code, out, _ = told("--data", str(folder))
    assert code == 0
    assert "gemm: H100-SXM bf16xbf16->bf16" in out
    assert max(map(len, out.splitlines())) <= 100


def test_wrong_folders_are_refused_in_one_line(told: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    wrong = {
        "nothing": "no such folder",
        "file": "is a file; a folder is needed",
        "empty": "none of training, collectives, kernels",
    }
    for name, message in wrong.items():
        code, out, error = told("--data", str(tmp_path / name))
        assert (code, out) == (2, "")
        assert message in error
        assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device,m\nx,1\n", "no column batch, n, k, dtypes, time_us"),
        (GEMM + "H100-SXM,1,256,256,many,bf16xbf16->bf16,3\n", "k: a positive number is needed"),
        (GEMM + "H100-SXM,1,256,256,256,posit16,3\n", "number formats"),
    ],
)
def test_bad_tables_are_refused_in_one_line(told: Command, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "gemm.csv").write_text(text, encoding="utf-8")
    code, out, error = told("--data", str(tmp_path))
    assert (code, out) == (2, "")
    assert message in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize("columns", [80, 100])
def test_on_a_narrow_terminal_every_case_has_its_name_numbers_and_band(
    told: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    rows = json.loads(told("--data", str(folder), "--format", "json")[1])
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = told("--data", str(folder))
    assert max(map(len, out.splitlines())) <= columns
    packed = "".join(line.split("  ")[0] for line in out.splitlines())
    for row in rows:
        assert row["case_id"] in packed, "names fold and are whole"
        assert f"{row['low']:.4g} to {row['high']:.4g}" in out


def test_the_share_that_is_done_is_heard_of(folder: Path) -> None:
    heard: list[tuple[int, int]] = []
    validate_folder(folder, lambda done, of: heard.append((done, of)))
    assert heard == [(done, 5) for done in range(1, 6)]
