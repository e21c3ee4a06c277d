"""Reports as they were: every number to a relative 1e-9, every word as it stands.

A change here is either a mistake or the point of your change. In the second case look at what
moved, and freeze the reports anew:

    RECSCALE_FREEZE=1 python -m pytest tests/golden

which rewrites tests/golden/reports and skips the comparisons; `git diff` then shows what moved.
"""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from analysis.cli.running import run
from simulator.scenario.shipped_files import shipped_folder

REPORTS = Path(__file__).with_name("reports")
RELATIVE = 1e-9
CASES = {
    "quickstart": ["quickstart.yaml"],
    "quickstart_nestpipe": [
        "quickstart.yaml",
        "--set",
        "policy={kind: nestpipe, micro_batches: 4}",
        "--workers",
        "64",
    ],
    "quickstart_jitter": ["quickstart.yaml", "--set", "run.jitter={compute: 5 %, all_to_all: 10 %}"],
    "quickstart_hot_owners": ["quickstart.yaml", "--set", "sharding.owners=drawn", "--workers", "32"],
    "recorded_keys": ["recorded_keys.yaml"],
    "nestpipe_npu": ["nestpipe/npu.yaml"],
    "nestpipe_npu_128": ["nestpipe/npu.yaml", "--workers", "128"],
    "nestpipe_npu_serialized": ["nestpipe/npu.yaml", "--set", "policy={kind: serialized}"],
    "nestpipe_npu_stale_prefetch": ["nestpipe/npu.yaml", "--set", "policy={kind: stale_prefetch}"],
    "nestpipe_gpu": ["nestpipe/gpu.yaml"],
}


@pytest.mark.parametrize("name", CASES)
def test_a_report_is_what_it_was(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, *settings = CASES[name]
    code = run(["run", str(shipped_folder() / scenario), *settings, "--format", "json"])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    frozen = REPORTS / f"{name}.json"
    if os.environ.get("RECSCALE_FREEZE") == "1":
        frozen.write_text(printed.out, encoding="utf-8")
        pytest.skip("frozen anew")
    moved = list(differences(json.loads(frozen.read_text(encoding="utf-8")), json.loads(printed.out)))
    assert moved == []


def differences(was: Any, now: Any, path: str = "") -> list[str]:
    """Return one line for each place where two reports differ."""
    if isinstance(was, dict) and isinstance(now, dict):
        keys = [key for key in {**was, **now}]
        return [line for key in keys for line in differences(was.get(key), now.get(key), f"{path}.{key}")]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = enumerate(zip(was, now, strict=True))
        return [line for place, pair in pairs for line in differences(*pair, f"{path}[{place}]")]
    return [] if same(was, now) else [f"{path}: {was!r} became {now!r}"]


def same(was: Any, now: Any) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (was, now)]
    if all(numbers):
        return math.isclose(was, now, rel_tol=RELATIVE, abs_tol=0.0)
    return type(was) is type(now) and bool(was == now)


def test_every_frozen_report_belongs_to_a_case() -> None:
    assert {path.stem for path in REPORTS.glob("*.json")} == set(CASES)


def test_a_number_that_moved_by_a_millionth_is_found_and_one_by_less_than_a_billionth_is_not() -> None:
    was = {"step_ms": {"mean": 1.0}, "bottleneck": ["send"], "interval_ms": None}
    assert differences(was, {**was, "step_ms": {"mean": 1.000001}}) == [".step_ms.mean: 1.0 became 1.000001"]
    assert differences(was, {**was, "step_ms": {"mean": 1.0 + 1e-10}}) == []
    assert differences(was, {**was, "bottleneck": []}) == [".bottleneck: ['send'] became []"]
    assert differences(was, {**was, "interval_ms": 1.0}) == [".interval_ms: None became 1.0"]
