"""Sweeps and plans within their time: CPU and wall time of whole commands on the machine's cores."""

import json
import subprocess
import sys
import time
from pathlib import Path

from simulator.scenario.shipped_files import shipped_folder

POINTS = """
scenario: npu.yaml
engine: {engine}
vary:
  - path: policy
    values:
      - {{kind: serialized}}
      - {{kind: stale_prefetch}}
      - {{kind: dual_buffer}}
      - {{kind: frozen_window, micro_batches: 8}}
      - {{kind: nestpipe, micro_batches: 8}}
  - path: cluster.fabric.between
    range: {{from: 12.5 GB/s, to: 100 GB/s, points: {points}, scale: log}}
"""


def swept(folder: Path, points: int, engine: str) -> float:
    """Return the wall time of a sweep of 5 x `points` points at 1,536 workers, s."""
    (folder / "npu.yaml").write_text((shipped_folder() / "nestpipe/npu.yaml").read_text(), encoding="utf-8")
    (folder / "g.grid.yaml").write_text(POINTS.format(engine=engine, points=points), encoding="utf-8")
    words = [sys.executable, "-m", "simulator", "sweep", "g.grid.yaml", "--out", engine, "--format", "json"]
    begun = time.monotonic()
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, check=True)
    spent = time.monotonic() - begun
    assert [one["status"] for one in json.loads(done.stdout)] == ["done"] * 5 * points
    return spent


def test_a_thousand_points_take_a_minute_on_two_cores(tmp_path: Path) -> None:
    spent = swept(tmp_path, 200, "vector")
    print(f"\n1,000 points, 1,536 workers, 5 policies, vector engine: {spent:.1f} s (60)")
    assert spent <= 60


def test_twenty_points_are_confirmed_event_by_event_in_a_minute(tmp_path: Path) -> None:
    spent = swept(tmp_path, 4, "events")
    print(f"\n20 points, 1,536 workers, event engine: {spent:.1f} s (60 for 16)")
    assert spent <= 60


def test_the_shipped_question_is_answered_in_half_a_minute() -> None:
    question = shipped_folder() / "planning" / "retrain.plan.yaml"
    begun = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "simulator", "plan", str(question)], stdout=subprocess.PIPE, check=True
    )
    spent = time.monotonic() - begun
    print(f"\nthe shipped planning question: {spent:.1f} s (30)")
    assert spent <= 30
