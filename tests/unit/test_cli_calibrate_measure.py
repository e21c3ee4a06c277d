"""`recscale calibrate measure` and `calibrate train`: words in, a file and a table out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.cli.running import run
from simulator.calibration.local.schema import read_measurement
from simulator.calibration.measure import load

pytestmark = pytest.mark.slow

Command = Callable[..., Any]
SMALL = (
    "--tables",
    "3",
    "--rows",
    "400",
    "--dimension",
    "8",
    "--hidden",
    "8",
    "--batch",
    "32",
    "--steps",
    "16",
)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in 100 columns; return exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "100")

    def command(*words: str) -> tuple[int, str, str]:
        code = run(["calibrate", *words])
        return (code, *capsys.readouterr())

    return command


def test_measure_writes_a_file_of_the_documented_form_and_shows_it(told: Command, tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    words = ("measure", "--quick", "--allow-load", "--network", "20-8-1", "--dimension", "8")
    code, out, _ = told(*words, "--out", str(file))
    assert code == 0 and "all_to_all" in out and "mlp_forward 20-8-1" in out
    found = read_measurement(file)
    assert found["launch"]["ranks"] == 2 and found["launch"]["pinned"]
    assert found["environment"]["variables"]["OPENBLAS_NUM_THREADS"] == "1"
    assert {run["settings"]["policy"] for run in found["software"]} >= {"serialized", "nestpipe"}


def test_measure_refuses_a_busy_machine(told: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "busy_share", lambda: 0.7)
    monkeypatch.setattr(load.time, "sleep", lambda seconds: None)
    code, out, error = told("measure", "--quick")
    assert (code, out) == (1, "") and "70 % of this machine busy" in error


@pytest.mark.parametrize(("words", "said"), [
    (("measure", "--links", "wet"), 'unknown links "wet"'),
    (("measure", "--substrate", "smoke"), 'no substrate "smoke"'),
    (("measure", "--network", "20"), "no widths"),
    (("measure", "--record", "x", "--only", "tcp"), 'no launch is called "tcp"'),
    (("train", "--policies", "nestpip"), 'did you mean "nestpipe"'),
    (("train", "--hidden", "a-b"), "no widths"),
    (("train", "--optimizer", "adam"), 'no optimizer "adam"'),
    (("train", "--exponent", "inf"), "between 0 and 20"),
    (("train", "--rate", "nan"), "learning rate"),
    (("train", "--rate", "0"), "learning rate"),
    (("train", "--policies", "nestpipe", "--batch", "64", "--micro-batches", "65"), "65 micro-batches"),
    (("train", "--policies", "serialized", "--keys", "/no/log.csv"), "/no/log.csv: "),
])  # fmt: skip
def test_wrong_words_are_refused_in_one_line_with_exit_code_2(
    told: Command, words: tuple[str, ...], said: str
) -> None:
    code, out, error = told(*words)
    last = error.strip().splitlines()[-1]
    assert (code, out) == (2, "") and said in last and "Traceback" not in error


def test_train_holds_policies_against_the_serialized_run(told: Command, tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    code, out, _ = told(
        "train",
        *SMALL,
        "--policies",
        "dual_buffer,nestpipe,stale_prefetch",
        "--format",
        "json",
        "--out",
        str(file),
    )
    assert code == 0
    rows = {row["policy"]: row for row in json.loads(out)["runs"]}
    assert list(rows) == ["serialized", "dual_buffer", "nestpipe-4", "stale_prefetch"]
    verdicts = {name: row["verdict"] for name, row in rows.items()}
    assert verdicts == {
        "serialized": "equal", "dual_buffer": "equal", "nestpipe-4": "equal", "stale_prefetch": "stale",
    }  # fmt: skip
    assert len(read_measurement(file)["runs"]) == 4


@pytest.mark.nightly
def test_train_predicts_what_it_has_measured(told: Command) -> None:
    words = ("--policies", "nestpipe", "--predict", "--allow-load", "--format", "json")
    code, out, _ = told("train", *SMALL, *words)
    rows = json.loads(out)["runs"]
    assert code == 0
    assert all(0.2 < row["predicted_ms"] / row["step_ms"] < 5.0 for row in rows)


def test_a_synchronous_policy_that_learned_something_else_gives_exit_code_1(
    told: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.cli.views.training.TOLERANCE", 1e-12)
    code, out, error = told("train", *SMALL, "--policies", "nestpipe")
    assert code == 1 and "differs" in out and "nestpipe-4" in error.splitlines()[-1]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("--record", "x", "--quick"), "--quick"),
        (("--record", "x", "--ranks", "4"), "--ranks"),
        (("--record", "x", "--out", "y.json"), "--out"),
        (("--only", "tcp_1gbit_2"), "--record"),
    ],
)
def test_options_that_would_be_ignored_are_refused(told: Command, given: tuple[str, ...], named: str) -> None:
    code, out, errors = told("measure", *given)
    assert code == 2 and not out
    assert named in errors and errors.count("\n") == 1
