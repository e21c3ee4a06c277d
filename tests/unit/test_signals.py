"""Ctrl-C and SIGTERM: every command ends within three seconds, in one line, and leaves no process behind."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.cli import ending
from simulator.scenario.shipped_files import shipped_folder

PROGRAM = "import os; os.write(1, b'up'); from analysis.cli.running import main; main()"
MOST_S = 3.0
LONG = ["--set", "run.batches=20000", "--set", "run.jitter.compute=10 %", "--set", "run.fold=off"]
GRID = """
scenario: s.yaml
engine: events
vary: [{path: workload.batch, range: {from: 1000, to: 9000, points: 400, whole: true}}]
"""
PLAN = """
scenario: s.yaml
target: {samples: 1e9}
hardware: [{name: a, workers: [8, 64, 512, 4096]}]
policies: [{kind: serialized}, {kind: dual_buffer}, {kind: hugectr}]
batch: [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000]
sharding: [{kind: row_wise, tier: hbm}, {kind: table_wise, tier: hbm}, {kind: row_wise, tier: dram}]
"""
COMMANDS = {
    "run": ["run", "s.yaml", "--workers", "256", *LONG],
    "sweep": ["sweep", "g.yaml", "--jobs", "2", "--out", "swept"],
    "plan": ["plan", "p.yaml", "--jobs", "2"],
    "keys": ["keys", "log.csv", "--batch", "8"],
}
MORE = {
    "compare": ["compare", "s.yaml", "--workers", "256", *LONG],
    "trace": ["trace", "s.yaml", "--workers", "256", *LONG],
    "explain": ["explain", "s.yaml", "--workers", "256", *LONG],
    **({"validate": ["validate"]} if "RECSCALE_DATA" in os.environ else {}),
    "shard": ["shard", "s.yaml", "--workers", "512", "--exact", "--seconds", "60"],
    "dashboard": ["dashboard", "--port", "18653"],
    "measure": ["calibrate", "measure", "--allow-load"],
    "train": ["calibrate", "train", "--allow-load"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("signals")
    (made / "s.yaml").write_text((shipped_folder() / "quickstart.yaml").read_text())
    (made / "g.yaml").write_text(GRID)
    (made / "p.yaml").write_text(PLAN)
    (made / "log.csv").write_text("a,b\n" + "".join(f"{n * 7919 % 999983},{n}\n" for n in range(700_000)))
    return made


def ended_by(
    number: int, words: Sequence[str], folder: Path, to_all: bool = False
) -> tuple[int, list[str], float]:
    """Return the exit code, the lines said and the seconds taken after a signal in the middle of the work."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None and process.stdout.read(2) == b"up"
    time.sleep(1.5)
    assert process.poll() is None, process.communicate()
    started = time.monotonic()
    (os.killpg if to_all else os.kill)(process.pid, number)
    _, told = process.communicate(timeout=60)
    seconds = time.monotonic() - started
    assert alive(process.pid) == []
    return process.returncode, told.decode().splitlines(), seconds


def alive(session: int) -> list[str]:
    """Return the processes of a session that still run half a second later."""
    time.sleep(0.5)
    words = ["ps", "-o", "stat=,args=", "-s", str(session)]
    listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return [line for line in listed.splitlines() if not line.startswith("Z")]


def check(name: str, words: Sequence[str], number: signal.Signals, folder: Path, to_all: bool) -> None:
    code, lines, seconds = ended_by(number, words, folder, to_all)
    said = [line for line in lines if not re.search(r"% after \d+ s|the dashboard is at", line)]
    assert (code, said) == (128 + number, [f"recscale: {ending.WORDS[number]}"]), name
    assert seconds < MOST_S + 2.0 * (os.getloadavg()[0] > 4), name  # a machine that is busy with others


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("number", list(ending.WORDS))
def test_a_signal_ends_a_command_in_one_line_and_seconds(
    name: str, number: signal.Signals, folder: Path
) -> None:
    check(name, COMMANDS[name], number, folder, False)


@pytest.mark.nightly
@pytest.mark.parametrize("name", {**COMMANDS, **MORE})
@pytest.mark.parametrize("number", list(ending.WORDS))
@pytest.mark.parametrize("to_all", [False, True])
def test_a_signal_ends_every_command_alone_and_with_its_processes(
    name: str, number: signal.Signals, to_all: bool, folder: Path
) -> None:
    check(name, {**COMMANDS, **MORE}[name], number, folder, to_all)


def test_ctrl_c_on_a_terminal_reaches_a_pool_without_a_traceback(folder: Path) -> None:
    check("plan", COMMANDS["plan"], signal.SIGINT, folder, True)


def test_what_a_process_has_started_is_found_down_to_the_last() -> None:
    inner = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    outer = subprocess.Popen([sys.executable, "-c", inner], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while len(found := ending.descendants(outer.pid)) < 1 and time.monotonic() < until:
        time.sleep(0.02)
    assert len(found) == 1 and {outer.pid, *found} <= set(ending.descendants(os.getpid()))
    outer.communicate(b"\n")


def test_an_interrupt_in_compiled_code_that_never_returns_ends_the_command_all_the_same() -> None:
    stuck = (
        "import os, signal, threading\n"
        "from analysis.cli import running\n"
        "lock = threading.Lock(); lock.acquire()\n"
        "def waits(words):\n"
        "    while True:\n"
        "        try: lock.acquire()\n"
        "        except KeyboardInterrupt: pass\n"
        "running._invoke = waits\n"
        "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()\n"
        "running.main([])\n"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", stuck],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert (done.returncode, done.stderr) == (143, "recscale: terminated\n")
    assert time.monotonic() - started > ending.GRACE_S


def test_nothing_is_installed_by_a_run_in_process() -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert threading.current_thread() is threading.main_thread()
