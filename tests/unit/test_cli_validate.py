"""`recscale validate`: one row a case, worst first, and plain answers to wrong folders."""

import csv
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from analysis.cli.running import run
from analysis.cli.views.validation import draw_validation, worst_first, worst_of_each
from analysis.validated import Validated
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


def case(number: int, kind: str = "gemm", reason: str = "", error: float = 0.5) -> Validated:
    found = Validated(f"{kind} {number}", kind, "some", f"{kind} {number}", 1.0)
    if reason:
        return found.not_predicted(reason)
    return found.with_prediction(1 + error, (0.5, 3.0))


@pytest.fixture
def drawn() -> Command:
    """Draw cases in 80 columns and return the text."""

    def draw(cases: list[Validated]) -> str:
        from rich.console import Console

        to = StringIO()
        draw_validation(worst_first(cases), Console(file=to, width=80))
        return to.getvalue()

    return draw


def test_each_kind_says_how_many_cases_are_not_predicted_and_mostly_why(drawn: Command) -> None:
    reasons = ["rare", *["line 7: common"] * 2, "line 9: common; it is loud", *"abcde"]
    told = drawn([case(n, reason=reason) for n, reason in enumerate(reasons)] + [case(1, "trace", "alone")])
    assert "gemm: 9 cases not predicted, for 7 reasons, of which the first 5:" in told
    assert "3 x common (as gemm 1)" in told
    assert "1 x e (" not in told, "five lines at most"
    assert "trace: 1 case not predicted, for 1 reason:" in told


def test_long_reasons_are_wrapped_to_the_terminal(drawn: Command) -> None:
    told = drawn([case(1, reason="a long story " * 20), case(2)])
    assert max(map(len, told.splitlines())) <= 80
    assert "".join(told.split()).count("alongstory") == 20


def test_the_words_of_the_tables_are_explained_once(drawn: Command) -> None:
    told = " ".join(drawn([case(1)]).split())
    assert told.count("role none: not predicted; sum: ") == 1 and "peer: that of a published" in told


def test_groups_without_a_prediction_have_no_scores(drawn: Command) -> None:
    told = drawn([case(1), case(1, "trace", "alone")])
    assert "gemm: some" in told and "trace: some" not in told
    assert "by configuration" not in drawn([case(1, "trace", "alone")])


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "holds 1 of 1 case not"), (4, "holds 4 of 4 cases not"), (5, "holds 100.0% of 5 cases not")],
)
def test_few_cases_give_no_percentage_of_bands(drawn: Command, count: int, words: str) -> None:
    assert f"the printed band {words} fitted" in drawn([case(n) for n in range(count)])


def test_the_worst_of_each_kind_are_shown_however_good_they_are(drawn: Command) -> None:
    cases = [case(n, error=2 + n) for n in range(60)] + [case(n, "training", error=0.01) for n in range(3)]
    shown = worst_of_each(worst_first(cases))
    assert [one.case_id for one in shown[:2]] == ["gemm 59", "gemm 58"]
    assert [one.kind for one in shown].count("gemm") == 20
    assert [one.kind for one in shown].count("training") == 3
    assert "40 more cases and notes" in " ".join(drawn(cases).split())
