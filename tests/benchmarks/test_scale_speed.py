"""What sharing costs in CPU time and memory, from 256 to 16,384 ranks: NestPipe with eight micro-batches."""

import json
import subprocess
import sys
from collections.abc import Callable
from math import log
from pathlib import Path
from time import process_time

import pytest

from simulator.engine.contention import Contention
from simulator.engine.events import run_events
from simulator.engine.recurrence import run_recurrence
from simulator.scenario import Scenario, load
from simulator.scenario.simulate import tabulated

PARTS = 8
FOLDED_MS, UNFOLDED_MS, LARGE_MS, VECTOR_MS = 110.0, 600.0, 400.0, 2.0  # aims: 30, 100, -, 0.1
MOST_BYTES = 1e9
STEEPEST = 1.15
DRAWN = "sharding.owners=drawn"
CLASSES = "run.fold={within: 1 %}"
JITTER = "run.jitter={compute: 2 %, lookup: 10 %}"


@pytest.fixture(scope="module")
def nestpipe(checkout: Path) -> Scenario:
    scenario = load(checkout / "scenarios/nestpipe/npu.yaml")
    return scenario.with_policy({"kind": "nestpipe", "micro_batches": PARTS})


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """CPU seconds of the quickest of some runs: what the machine does beside them is not ours."""
    taken = []
    for _ in range(repeats):
        begin = process_time()
        work()
        taken.append(process_time() - begin)
    return min(taken)


def say(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with capsys.disabled():
        print(f"\n  {text}")


def ms_per_step(scenario: Scenario, batches: int, repeats: int = 2, folded: bool = True) -> float:
    """CPU milliseconds per step of a run in which ranks and collectives share what they use."""
    durations = tabulated(scenario, batches)
    shared = Contention.of(scenario.graph, scenario.costs)
    taken = best_of(repeats, lambda: run_events(scenario.graph, durations, folded, shared))
    return taken / batches * 1e3


def test_a_folded_step_with_sharing_costs_at_most_a_tenth_of_a_second(
    nestpipe: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = ms_per_step(nestpipe.with_workers(1536), 60)
    say(capsys, f"1,536 ranks folded, shared: {cost:.2f} ms per step")
    assert cost <= FOLDED_MS


def test_a_step_with_sharing_of_every_rank_on_its_own_costs_at_most_six_tenths_of_a_second(
    nestpipe: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = ms_per_step(nestpipe.with_workers(1536), 12, folded=False)
    say(capsys, f"1,536 ranks each on its own, shared: {cost:.0f} ms per step")
    assert cost <= UNFOLDED_MS


@pytest.mark.parametrize("setting", [DRAWN, JITTER])
def test_ranks_that_differ_cost_no_more_than_ranks_each_on_its_own(
    nestpipe: Scenario, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = ms_per_step(nestpipe.with_workers(1536).with_overrides([setting]), 12)
    say(capsys, f"1,536 ranks that differ, shared ({setting}): {cost:.0f} ms per step")
    assert cost <= UNFOLDED_MS


def test_a_folded_step_of_4096_ranks_costs_at_most_four_tenths_of_a_second(
    nestpipe: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = ms_per_step(nestpipe.with_workers(4096), 60)
    say(capsys, f"4,096 ranks folded, shared: {cost:.2f} ms per step")
    assert cost <= LARGE_MS


def test_classes_of_nearly_alike_ranks_make_16384_drawn_owners_cheap(
    nestpipe: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = ms_per_step(nestpipe.with_workers(16_384).with_overrides([DRAWN, CLASSES]), 30)
    say(capsys, f"16,384 drawn owners in classes within 1 %: {cost:.1f} ms per step")
    assert cost <= LARGE_MS


@pytest.mark.parametrize("setting", ["sharding.owners=expected", DRAWN])
def test_the_cost_of_a_step_grows_hardly_faster_than_the_number_of_ranks(
    nestpipe: Scenario, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Alike ranks fold into one and cost nothing; with drawn owners every rank differs from the others."""
    few, many = 256, 16_384
    costs = {
        ranks: ms_per_step(nestpipe.with_workers(ranks).with_overrides([setting]), 6, repeats)
        for ranks, repeats in ((few, 5), (many, 2))
    }
    growth = log(costs[many] / costs[few]) / log(many / few)
    say(
        capsys,
        f"{setting}: {few} ranks {costs[few]:.1f}, {many:,} ranks {costs[many]:,.1f} ms per step: "
        f"ranks to the power of {growth:.2f}",
    )
    assert growth <= STEEPEST


RUN = """
import json, re, sys
from pathlib import Path
from simulator.scenario import load, run_scenario
scenario = load(sys.argv[1], ["run.contention=true", "run.warm_up=8", *sys.argv[3:]]).with_workers(16384)
report = run_scenario(scenario).report
used = 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps({"ranks": report.ranks, "bytes": used, "fidelity": report.fidelity}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("settings", [["run.batches=60"], ["run.batches=20", DRAWN]])
def test_16384_ranks_with_their_report_fit_in_a_gigabyte(
    checkout: Path, settings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = str(checkout / "scenarios/nestpipe/npu.yaml")
    run = subprocess.run(
        [sys.executable, "-c", RUN, scenario, "--", *settings], capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout)
    say(capsys, f"{' '.join(settings)}: {found['bytes'] / 1e6:.0f} MB; {found['fidelity']}")
    assert found["ranks"] == 16_384
    assert found["bytes"] <= MOST_BYTES


def test_a_step_of_the_vector_engine_costs_at_most_two_milliseconds(
    nestpipe: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = nestpipe.with_workers(1536)
    durations = tabulated(scenario, 60)
    cost = best_of(3, lambda: run_recurrence(scenario.graph, durations)) / 60 * 1e3
    say(capsys, f"vector engine, 1,536 ranks folded into {durations.ns.shape[2]}: {cost:.2f} ms per step")
    assert cost <= VECTOR_MS
    drawn = tabulated(scenario.with_overrides([DRAWN]), 20)
    cost = best_of(3, lambda: run_recurrence(scenario.graph, drawn)) / 20 * 1e3
    say(capsys, f"vector engine, {drawn.ns.shape[2]:,} ranks that differ: {cost:.2f} ms per step")
    assert cost <= VECTOR_MS
