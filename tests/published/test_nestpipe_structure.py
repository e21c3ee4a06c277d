"""What a sum of parts cannot say about NestPipe, on the fitted NPU system.

Nothing here was published; each test states what the mechanism implies and checks that it emerges.
What a mechanism implies holds exactly only while nothing is shared, so these run without contention.
"""

from pathlib import Path

import pytest

from simulator.errors import InfeasibleError
from simulator.scenario import Run, Scenario, load, run_scenario

NESTPIPE = {"kind": "nestpipe", "micro_batches": 8}
FROZEN = {"kind": "frozen_window", "micro_batches": 8}


@pytest.fixture(scope="module")
def system(checkout: Path) -> Scenario:
    return load(checkout / "scenarios/nestpipe/npu.yaml")


def simulated(scenario: Scenario, *settings: str) -> Run:
    return run_scenario(scenario.with_overrides(list(settings)), "vector")


def step_ms(run: Run) -> float:
    return run.report.step_ms["mean"]


def stage_ms(run: Run, name: str) -> float:
    """Return how long stages called `name`, or `name.0`, `name.1`, ..., take together."""
    nodes = enumerate(run.timeline.graph.nodes)
    mine = [i for i, node in nodes if node.stage.name.split(".")[0] == name]
    return float(run.durations.nominal_ns[mine, run.column].sum()) / 1e6


@pytest.mark.parametrize("policy", [NESTPIPE, FROZEN], ids=lambda policy: policy["kind"])
def test_micro_batches_hide_all_but_one_exchange_while_compute_is_the_longer(
    system: Scenario, policy: dict[str, object]
) -> None:
    run = simulated(system.with_policy(policy))
    shown, raw = run.report.exposed_ms["all_to_all"], run.report.raw_ms["all_to_all"]
    assert run.report.compute_ms > raw
    assert shown == pytest.approx(raw / 8, rel=0.02)


QUICK_HOST = "cluster.unexplained_host_time=0.1 ms"  # so that compute and network alone decide


def test_hiding_stops_when_a_micro_batch_computes_for_less_time_than_it_exchanges(system: Scenario) -> None:
    slow, fast = simulated(system, QUICK_HOST), simulated(system, QUICK_HOST, "cluster.compute.share=0.8")
    raw = fast.report.raw_ms["all_to_all"]
    assert slow.report.compute_ms > raw > 2 * fast.report.compute_ms
    assert fast.report.exposed_ms["all_to_all"] > 4 * slow.report.exposed_ms["all_to_all"]
    assert raw < step_ms(fast) < 1.01 * raw  # the exchanges of a step follow each other without a gap
    plain_sum = fast.report.compute_ms + raw / 8
    assert step_ms(fast) > 1.8 * plain_sum
    on_the_cycle = [name for name in fast.report.bottleneck if name.startswith(("exchange", "send"))]
    assert len(on_the_cycle) == 2 * 8


def test_faster_compute_is_worth_less_and_less_as_the_network_takes_over(system: Scenario) -> None:
    shares = (0.2, 0.3, 0.4, 0.6, 0.9)
    runs = [simulated(system, QUICK_HOST, f"cluster.compute.share={share}") for share in shares]
    utilised = [run.report.compute_ms / step_ms(run) for run in runs]
    assert utilised == sorted(utilised, reverse=True)
    assert utilised[0] > 0.9 and utilised[-1] < 0.4


def test_one_monolithic_prefetch_stage_one_batch_deep_cannot_reach_the_step_of_nestpipe(
    system: Scenario,
) -> None:
    nestpipe = simulated(system)
    stale = {"kind": "stale_prefetch"}
    monolithic = simulated(
        system.with_policy({"kind": "nested", "inter_batch": stale, "intra_batch": FROZEN})
    )
    prefetch = sum(stage_ms(monolithic, name) for name in ("read", "inputs", "route", "retrieve"))
    assert step_ms(monolithic) == pytest.approx(prefetch, abs=1e-5)
    assert step_ms(monolithic) > 1.4 * step_ms(nestpipe)
    # without micro-batches the step is long enough for the same prefetcher to hide everything
    whole = simulated(system.with_policy(stale))
    assert step_ms(whole) > prefetch and whole.report.exposed_ms["lookup"] < 0.001 * step_ms(whole)


def test_a_lookup_stage_longer_than_the_window_sets_the_period(system: Scenario) -> None:
    run = simulated(system, "cluster.unexplained_host_time=3 ms")
    host = stage_ms(run, "retrieve") + stage_ms(run, "write_back")
    window = step_ms(simulated(system))
    assert host > stage_ms(run, "route") > window
    assert step_ms(run) == pytest.approx(host, abs=1e-5)
    assert sorted(run.report.bottleneck) == ["retrieve", "write_back"]


def test_lookup_stages_together_may_exceed_the_window_as_long_as_none_does_alone(system: Scenario) -> None:
    run = simulated(system)
    stages = [stage_ms(run, name) for name in ("route", "retrieve")]
    assert sum(stages) > step_ms(run) > max(stages)
    assert run.report.exposed_ms["lookup"] < 1


def test_one_row_buffer_instead_of_two_costs_what_the_cycle_says(system: Scenario) -> None:
    two = simulated(system)
    one = simulated(system.with_policy({**NESTPIPE, "buffers": 1}))
    # with one buffer the next batch's rows are read only when this batch's are written back
    in_turn = stage_ms(one, "retrieve") + stage_ms(one, "write_back")
    alone = step_ms(two) - stage_ms(two, "refresh")
    lost = step_ms(one) - step_ms(two)
    assert lost == pytest.approx(in_turn - stage_ms(two, "refresh"), rel=0.01)
    assert step_ms(one) == pytest.approx(alone + in_turn, rel=0.01)
    assert one.report.lower_bound_ms == pytest.approx(step_ms(one), abs=1e-5)
    assert {"retrieve", "write_back"} <= set(one.report.bottleneck)


@pytest.mark.parametrize("workers", [128, 512, 1536])
def test_the_copy_between_row_buffers_is_short_at_all_sizes(workers: int, system: Scenario) -> None:
    run = simulated(system.with_workers(workers))
    assert 0 < stage_ms(run, "refresh") < 2
    assert run.report.staleness_steps["observed_max"] == 0


def test_without_recomputation_the_whole_batch_is_refused_and_the_shortage_named(system: Scenario) -> None:
    whole = system.with_policy({"kind": "serialized"})
    with pytest.raises(InfeasibleError, match=r"device memory.*53\.\d GiB short.*activations.*recompute"):
        simulated(whole, "workload.model.recompute=none")
    simulated(whole)  # with recomputation per layer it fits


def test_without_recomputation_micro_batches_fit_and_the_host_becomes_the_bottleneck(
    system: Scenario,
) -> None:
    run = simulated(system, "workload.model.recompute=none")
    assert run.report.peak_memory_bytes["hbm"] < 20 * 2**30
    assert run.report.compute_ms < 0.8 * simulated(system).report.compute_ms
    assert sorted(run.report.bottleneck) == ["retrieve", "write_back"]
