"""The command line as such: what goes where, exit codes, errors in one line, nothing but text when piped."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from analysis.cli import progress, running
from simulator.errors import InfeasibleError
from simulator.scenario.shipped_files import shipped_folder

QUICKSTART = str(shipped_folder() / "quickstart.yaml")
CONTRACT = {
    *("scenario", "engine", "seed", "ranks", "batches", "fidelity", "consistency", "step_ms", "latency_ms"),
    *("throughput_samples_per_s", "raw_ms", "exposed_ms", "interference_ms", "busy_share", "staleness_steps"),
    *("peak_memory_bytes", "collectives", "lower_bound_ms", "bottleneck", "extrapolated", "interval_ms"),
    *("cost", "events"),
}


@dataclass(frozen=True)
class Told:
    """What a command left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Told]


@pytest.fixture
def recscale(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command line in this process, in 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str) -> Told:
        code = running.run(list(words))
        return Told(code, *capsys.readouterr())

    return run


def process(*words: str) -> list[str]:
    return [sys.executable, "-m", "simulator", *words]


def test_json_is_one_object_with_every_field_of_the_contract(recscale: Command) -> None:
    told = recscale("run", QUICKSTART, "--format", "json")
    report = json.loads(told.out)
    assert told.code == 0
    assert report.keys() >= CONTRACT
    assert report["step_ms"].keys() == {"mean", "p50", "p95", "p99"}
    assert report["compute_ms"] + sum(report["exposed_ms"].values()) == pytest.approx(
        report["step_ms"]["mean"]
    )


def test_the_quickstart_predicts_a_step_of_the_published_order(recscale: Command) -> None:
    report = json.loads(recscale("run", QUICKSTART, "--format", "json").out)
    assert (
        6.0 / 3 <= report["step_ms"]["mean"] <= 6.0
    )  # published with TF32: 6.0 ms, frameworks' time included


def test_csv_is_a_header_and_one_record_with_dotted_names(recscale: Command) -> None:
    header, record, *more = recscale("run", QUICKSTART, "--format", "csv").out.splitlines()
    assert header.startswith("scenario,engine,seed") and "step_ms.mean" in header.split(",")
    assert record.startswith("quickstart,events,7") and more == []


def test_the_table_for_people_fits_80_columns_and_names_step_parts_and_bottleneck(recscale: Command) -> None:
    out = recscale("run", QUICKSTART).out
    assert max(map(len, out.splitlines())) <= 80
    for words in ("step  ", "throughput", "waits for all-to-all", "bottleneck", "memory", "staleness"):
        assert words in out
    assert "\x1b" not in out


def test_a_note_about_unexplained_time_stands_under_the_table(recscale: Command) -> None:
    out = recscale("run", str(shipped_folder() / "nestpipe" / "npu.yaml")).out
    assert re.search(r"^! [\d,]+ ms of each batch's lookup, hidden or not, is host", out, flags=re.MULTILINE)


def test_without_room_on_one_host_there_is_no_baseline_and_none_is_needed_on_one(recscale: Command) -> None:
    npu = recscale("run", str(shipped_folder() / "nestpipe" / "npu.yaml"), "--workers", "128").out
    assert "one host    no baseline: does not fit on one host\n" in npu
    assert "one host" not in recscale("run", QUICKSTART).out


def test_the_baseline_on_one_host_is_run_with_the_same_settings(recscale: Command) -> None:
    words = ("--set", "run.contention=true", "--set", "run.jitter.compute=10%")
    one, two = (
        json.loads(recscale("run", QUICKSTART, "--workers", n, *words, "--format", "json").out)
        for n in ("8", "16")
    )
    share = two["throughput_samples_per_s"] / one["throughput_samples_per_s"] / 2
    told = recscale("run", QUICKSTART, "--workers", "16", *words).out
    assert f"{100 * share:.1f}% of the throughput per worker on one host of 8, run alike" in told


def test_the_table_says_what_a_wait_is_and_why_one_may_be_longer_than_its_stages(recscale: Command) -> None:
    words = ("run", QUICKSTART, "--workers", "16")
    alone = " ".join(recscale(*words, "--set", "run.contention=false").out.split())
    shared = " ".join(recscale(*words, "--set", "run.contention=true").out.split())
    assert "no promise of a gain" in alone and "longer than all such stages" not in alone
    assert "A wait longer than all such stages: sharing slows these stages down" in shared


def test_no_line_ends_in_blanks_and_times_are_in_milliseconds(recscale: Command) -> None:
    npu = str(shipped_folder() / "nestpipe" / "npu.yaml")
    commands = (
        ("run", npu),
        ("explain", npu, "--set", "run.batches=20", "--set", "run.warm_up=8"),
        ("check", npu),
        ("catalog", "list", "nic"),
        ("shard", QUICKSTART),
    )
    for words in commands:
        assert not re.search(r" $", recscale(*words).out, flags=re.MULTILINE), words
    out = recscale("run", npu, "--set", "policy={kind: serialized}").out
    assert re.search(r"^latency +5,7\d\d\.\d ms from", out, flags=re.MULTILINE)


def test_settings_seed_and_workers_change_the_run(recscale: Command) -> None:
    words = ("--set", "workload.batch=4096", "--seed", "11", "--workers", "16", "--engine", "vector")
    report = json.loads(recscale("run", QUICKSTART, *words, "--format", "json").out)
    assert (report["ranks"], report["seed"], report["engine"]) == (16, 11, "vector")
    assert report["throughput_samples_per_s"] * report["step_ms"]["mean"] / 1e3 == pytest.approx(16 * 4096)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rum"], "no such command 'rum'"),
        (["run"], "missing argument 'SCENARIO'"),
        (["run", QUICKSTART, "--seeed", "3"], "no such option: --seeed"),
        (["run", QUICKSTART, "--format", "xml"], "'xml' is not one of 'table', 'json', 'csv'"),
        (["run", "missing.yaml"], "missing.yaml: there is no such file"),
        (["run", "."], "is a directory"),
        (["run", QUICKSTART, "--seed", "-1"], "--seed: run.seed: must be a whole number"),
        (["run", QUICKSTART, "--workers", "12"], "recscale: --workers: 12 workers do not fill hosts of 8"),
        (
            ["run", QUICKSTART, "--set", "cluster.accelerator=a101"],
            "--set: cluster.accelerator: the catalog has no accelerator",
        ),
        (["run", QUICKSTART, "--set", "cluster.host=dgx"], "--set: cluster.host: the catalog has no host"),
        (["run", QUICKSTART, "--set", "sharding.replicas=3"], "--set: sharding.replicas: 8 ranks do not"),
        (["run", QUICKSTART, "--set", "workload.bach=3"], 'unknown key "bach" (did you mean "batch"?)'),
        (["check", QUICKSTART, "--set", "run.warm_up=0"], "run.warm_up: warm_up must be at least 1"),
        (["check", QUICKSTART, "--set", "cluster.hosts=1e15"], "workers are too many"),
        (["explain", QUICKSTART, "--set", "nonsense"], 'is not of the form "path.to.key=value"'),
        (["trace", QUICKSTART, "-o", "/dev/null/trace.json"], "/dev/null"),
        (["catalog", "show", "a100"], 'did you mean "a100_'),
        (["catalog", "list", "gpus"], 'the catalog has no kind "gpus"'),
        (["keys", "missing.csv"], "missing.csv: there is no such file"),
    ],
)
def test_wrong_input_is_answered_in_one_line_with_exit_code_2(
    recscale: Command, words: list[str], says: str
) -> None:
    told = recscale(*words)
    assert told.code == 2 and told.out == ""
    assert re.fullmatch(r"recscale: [^\n]+\n", told.err)
    assert says in told.err


def test_what_cannot_fit_is_exit_code_1_and_names_the_shortage(recscale: Command) -> None:
    told = recscale("check", QUICKSTART, "--set", "workload.batch=4_000_000")
    assert told.code == 1 and told.out == ""
    assert "does not fit in device memory" in told.err and told.err.count("\n") == 1


def test_check_says_what_was_understood_and_runs_nothing(recscale: Command) -> None:
    told = recscale("check", QUICKSTART, "--set", "run.batches=100_000")
    assert told.code == 0
    for words in ("8 x a100_80: 8 workers", "26 tables", "12 stages", "no deadlock", "100,000 batches"):
        assert words in told.out


def test_a_defect_asks_for_a_report_and_hides_the_traceback_unless_asked(
    recscale: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(words: list[str]) -> int:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(running, "_invoke", fail)
    told = recscale("run")
    assert told.code == 70 and told.err.count("\n") == 1
    assert "please report it" in told.err and "ZeroDivisionError: division by zero" in told.err
    monkeypatch.setenv("RECSCALE_DEBUG", "1")
    assert "Traceback" in recscale("run").err


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141), (InfeasibleError("no"), 1), (MemoryError(), 1)],
)
def test_every_way_to_end_has_its_exit_code(
    recscale: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def end(words: list[str]) -> int:
        raise error

    monkeypatch.setattr(running, "_invoke", end)
    assert recscale("run").code == code


@pytest.mark.slow
def test_an_interrupt_ends_with_130_and_one_line() -> None:
    words = process("run", QUICKSTART, "--engine", "vector", "--set", "run.batches=100000")
    started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stderr is not None
    assert "simulating quickstart" in started.stderr.readline()  # the first sign of life, after some seconds
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "recscale: interrupted" and "Traceback" not in err


def test_a_reader_that_goes_away_is_no_error() -> None:
    started = subprocess.Popen(process("schema"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout is not None and started.stderr is not None
    started.stdout.close()
    assert started.stderr.read() == b""
    assert started.wait(timeout=60) == 141


@pytest.mark.parametrize(("no_color", "escapes"), [(None, True), ("1", False)])
def test_a_terminal_gets_bold_text_unless_no_color_is_set(no_color: str | None, escapes: bool) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    env |= {"TERM": "xterm", "COLUMNS": "80"} | ({"NO_COLOR": no_color} if no_color else {})
    leader, follower = pty.openpty()
    subprocess.run(process("catalog", "list", "nic"), stdout=follower, env=env, timeout=60, check=True)
    os.close(follower)
    written = os.read(leader, 100_000)
    assert (b"\x1b" in written) is escapes


def test_help_names_every_command_and_stays_within_80_columns(recscale: Command) -> None:
    out = recscale("--help").out
    for name in ("init", "run", "check", "explain", "trace", "compare", "keys", "catalog", "schema"):
        assert re.search(rf"^  {name} ", out, flags=re.MULTILINE)
        told = recscale(name, "--help").out
        assert told.startswith(f"Usage: recscale {name} ") and max(map(len, told.splitlines())) <= 80


def test_without_a_command_the_help_is_shown(recscale: Command) -> None:
    assert recscale().out == recscale("--help").out


def test_help_loads_no_heavy_library() -> None:
    script = "import sys; from analysis.cli.running import run; run(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {
        "numpy",
        "pandas",
        "scipy",
        "pyarrow",
        "matplotlib",
        "networkx",
        "pint",
        "pydantic",
        "simpy",
    }


def test_progress_says_how_far_the_work_is_and_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.time, "monotonic", lambda: 110.0)
    work = progress.Progress("comparing", 4, started=100.0)
    work.within(50, 100)
    work.advance()
    work.within(50, 50)
    assert str(work) == "comparing: 50% after 10 s, 10 collectives/s, about 10 s left"


def test_long_work_shows_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "FIRST_LINE_S", 0.01)
    with progress.progress("simulating x"):
        time.sleep(0.3)
    assert capsys.readouterr().err.startswith("recscale: simulating x: 0% after")
