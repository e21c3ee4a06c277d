"""The same seed gives the same bytes, in any process and under any hash seed of Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import some

from simulator.scenario.shipped_files import shipped_folder

VARIED = ["--set", "run.jitter={compute: 5 %, lookup: 20 %}", "--set", "sharding.owners=drawn"]
CASES = {
    "quickstart": ["quickstart.yaml", "--workers", "16", *VARIED],
    "recorded": ["recorded_keys.yaml", "--set", "run.batches=40"],
    "nestpipe": ["nestpipe/npu.yaml", "--workers", "128", "--set", "run.batches=32"],
}
FILES = ("run.json", "steps.parquet", "stages.parquet", "trace.json.gz", "gantt.png")


def output_of(words: list[str], hash_seed: str) -> bytes:
    """Return what a fresh process prints on standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "simulator", *words],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("case", some(list(CASES), gate=2))
def test_two_processes_print_the_same_json_and_write_the_same_files(case: str, tmp_path: Path) -> None:
    scenario, *settings = CASES[case]
    words = ["run", str(shipped_folder() / scenario), *settings, "--format", "json", "--out"]
    one, other = (output_of([*words, str(tmp_path / seed)], seed) for seed in ("1", "4242"))
    assert one == other
    for name in FILES:
        written = [(tmp_path / seed / name).read_bytes() for seed in ("1", "4242")]
        assert written[0] == written[1], name


def test_two_processes_print_the_same_comparison() -> None:
    words = ["compare", str(shipped_folder() / "nestpipe" / "npu.yaml"), "--workers", "128,512"]
    words += ["--policies", "dual_buffer,nestpipe", "--format", "json"]
    assert output_of(words, "1") == output_of(words, "4242")


def test_another_seed_gives_other_steps_where_durations_vary() -> None:
    words = ["run", str(shipped_folder() / "quickstart.yaml"), *VARIED, "--format", "json"]
    one, other = (output_of([*words, "--seed", seed], "0") for seed in ("1", "2"))
    assert one != other
