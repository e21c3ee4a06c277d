"""What starting the command costs, in CPU seconds of the whole process: they do not depend on who else runs.

The best of a few tries counts: the first ones may still read the libraries from disk.
"""

import resource
import subprocess
import sys

import pytest

from simulator.scenario.shipped_files import shipped_folder

TRIES = 3


def cpu_seconds(words: list[str]) -> float:
    """Return user and system time of `recscale` with `words`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "simulator", *words], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["--help"], 0.5),
        (["catalog", "list"], 1.0),
        (["run", str(shipped_folder() / "quickstart.yaml")], 2.0),
        (["explain", str(shipped_folder() / "quickstart.yaml")], 2.0),
        (["explain", str(shipped_folder() / "nestpipe" / "npu.yaml")], 5.0),
    ],
    ids=["help", "catalog", "run the quickstart", "explain the quickstart", "explain nestpipe"],
)
def test_the_command_answers_quickly(words: list[str], allowed: float) -> None:
    spent = min(cpu_seconds(words) for _ in range(TRIES))
    print(f"recscale {words[0]}: {spent:.2f} s of {allowed} s")
    assert spent <= allowed
