"""Whole scenarios, drawn at random: nothing is lost, nothing depends on how ranks are carried."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.costs import CostModel
from simulator.engine import Variation, tabulate
from simulator.engine.contention import Contention
from simulator.engine.events import run_events
from simulator.engine.recurrence import run_recurrence
from simulator.hardware import Cluster, TwoLevel
from simulator.quantities import AllToAllWork, InTurn, Work
from simulator.results.exposed import break_down
from simulator.scenario import Scenario, load
from simulator.scenario.simulate import Run, run_scenario

FEW = settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))

TEXT = """
cluster:
  accelerator: a100_80
  per_host: 2
  hosts: 2
  fabric: {kind: two_level, within: 100 GB/s, between: 1 GB/s, latency: 10 us}
workload:
  model: {kind: mlp, inputs: 256, layers: [1024, 512, 1], precision: tf32}
  tables:
    - {name: users, rows: 1e6, dimension: 64}
    - {name: items, rows: 1e5, dimension: 128}
  keys: {kind: zipf, exponent: 1.0}
  batch: 512
  input: {bytes: 400 B, cpu_time: 2 us}
sharding: {kind: row_wise}
policy: {kind: serialized}
run: {batches: 40, warm_up: 12}
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    path = tmp_path_factory.mktemp("scenarios") / "random.yaml"
    path.write_text(TEXT)
    return load(path)


policies: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.sampled_from([{"kind": kind} for kind in ("serialized", "stale_prefetch", "dual_buffer")]),
    st.builds(lambda n: {"kind": "frozen_window", "micro_batches": n}, st.integers(1, 4)),
    st.builds(
        lambda n, slots: {"kind": "nestpipe", "micro_batches": n, "buffers": slots},
        st.integers(1, 4),
        st.sampled_from((1, 2)),
    ),
)


@st.composite
def changes(draw: Any, jitter: bool = True) -> list[str]:
    """Settings that move the bottleneck about: network, host, batch, owners, jitter, memory tier."""
    between = draw(st.sampled_from(("20 MB/s", "1 GB/s", "50 GB/s")))
    chosen = [
        f"cluster.fabric.between={between}",
        f"workload.batch={draw(st.sampled_from((64, 512, 4096)))}",
        f"workload.input.cpu_time={draw(st.sampled_from(('0 us', '2 us', '50 us')))}",
        f"sharding.tier={draw(st.sampled_from(('dram', 'hbm')))}",
        f"sharding.owners={draw(st.sampled_from(('expected', 'drawn')))}",
        f"run.seed={draw(st.integers(0, 99))}",
    ]
    spreads = draw(st.sampled_from((0.0, 0.05, 0.6))) if jitter else 0.0
    kinds = ("compute", "input", "lookup", "all_to_all", "all_reduce")
    return chosen + ([f"run.jitter.{kind}={spreads}" for kind in kinds] if spreads else [])


def drawn(base: Scenario, policy: dict[str, Any], settings_: list[str]) -> Scenario:
    return base.with_policy(policy).with_overrides(settings_)


def times(run: Run) -> np.ndarray:
    return run.timeline.end_ns[:, :, run.timeline.column_of]


# ---------------------------------------------------------------- nothing is lost


@MANY
@given(policies, changes(), st.booleans())
def test_compute_and_exposed_time_add_up_to_the_step(
    base: Scenario, policy: dict[str, Any], settings_: list[str], contention: bool
) -> None:
    scenario = drawn(base, policy, [*settings_, f"run.contention={str(contention).lower()}"])
    run = run_scenario(scenario)
    report = run.report
    parts = report.compute_ms + sum(report.exposed_ms.values())
    assert parts == pytest.approx(report.step_ms["mean"], rel=1e-9)
    assert run.breakdown.step_ns == pytest.approx(float(np.mean(run.step_ns)), rel=1e-12)
    assert all(value >= 0 for value in (report.compute_ms, *report.exposed_ms.values()))
    for column in range(run.timeline.end_ns.shape[2]):
        found = break_down(run.timeline, column, run.first, run.last)
        assert found.compute_ns + sum(found.exposed_ns.values()) == pytest.approx(found.step_ns, rel=1e-12)


def all_to_alls(work: Work) -> list[AllToAllWork]:
    if isinstance(work, AllToAllWork):
        return [work]
    return [one for part in work.parts for one in all_to_alls(part)] if isinstance(work, InTurn) else []


def total(amount: Any, ranks: int) -> float:
    return float(np.broadcast_to(np.asarray(amount, dtype=float), (ranks,)).sum())


@MANY
@given(policies, changes(jitter=False))
def test_all_bytes_that_ranks_send_are_received(
    base: Scenario, policy: dict[str, Any], settings_: list[str]
) -> None:
    scenario = drawn(base, policy, settings_)
    exchanges = [one for node in scenario.graph.nodes for one in all_to_alls(node.stage.work)]
    assert len(exchanges) >= 3
    for one in exchanges:
        received = one.bytes if one.received_bytes is None else one.received_bytes
        ranks = scenario.cluster.ranks
        assert total(received, ranks) == pytest.approx(total(one.bytes, ranks), rel=1e-9)


@FEW
@given(changes(jitter=False))
def test_owners_are_asked_for_as_many_keys_as_sources_ask_for(base: Scenario, settings_: list[str]) -> None:
    scenario = drawn(base, {"kind": "serialized"}, settings_)
    traffic, ranks = scenario.step.traffic, scenario.cluster.ranks
    assert total(traffic.requests, ranks) == pytest.approx(traffic.distinct * ranks, rel=1e-9)


# ---------------------------------------------------------------- engines and folding


@MANY
@given(policies, changes())
def test_both_engines_folded_or_not_give_the_same_times(
    base: Scenario, policy: dict[str, Any], settings_: list[str]
) -> None:
    scenario = drawn(base, policy, [*settings_, "run.contention=false"])
    folded = run_scenario(scenario)
    unfolded = run_scenario(scenario.with_overrides(["run.fold=off"]))
    vector = run_scenario(scenario, "vector")
    assert np.array_equal(times(folded), times(unfolded))
    assert np.array_equal(times(folded), times(vector))
    assert folded.report.step_ms == unfolded.report.step_ms == vector.report.step_ms
    assert folded.report.exposed_ms == unfolded.report.exposed_ms == vector.report.exposed_ms


@FEW
@given(policies, changes())
def test_folded_and_unfolded_agree_when_resources_are_shared(
    base: Scenario, policy: dict[str, Any], settings_: list[str]
) -> None:
    scenario = drawn(base, policy, [*settings_, "run.contention=true"])
    folded = run_scenario(scenario)
    assert np.array_equal(times(folded), times(run_scenario(scenario.with_overrides(["run.fold=off"]))))


@MANY
@given(policies, changes())
def test_sharing_only_ever_delays_where_ranks_keep_to_their_part_of_a_host(
    base: Scenario, policy: dict[str, Any], settings_: list[str]
) -> None:
    scenario = drawn(base, policy, [*settings_, "run.contention=true", "cluster.host_limit=1"])
    shared = run_scenario(scenario)
    alone = run_scenario(scenario, "vector")
    assert (times(shared) >= times(alone)).all()


@FEW
@given(policies, changes(jitter=False))
def test_no_step_is_shorter_than_its_critical_cycle(
    base: Scenario, policy: dict[str, Any], settings_: list[str]
) -> None:
    """The bound is that of the long run: a window may begin after a late step, and catch up."""
    run = run_scenario(drawn(base, policy, settings_))
    steps, late = len(run.step_ns), float(run.step_ns.max() - run.step_ns.min())
    slack = run.timeline.graph.period + 2 * late / steps  # whole ns, and what was late before the window
    assert run.report.step_ms["mean"] * 1e6 >= float(run.bottleneck.period_ns) * (1 - 1e-9) - slack


# ---------------------------------------------------------------- scale


def twice_as_slow(cluster: Cluster) -> Cluster:
    """Every rate halved, every latency doubled."""
    chip, host, fabric = cluster.accelerator, cluster.host, cluster.fabric
    assert isinstance(fabric, TwoLevel)
    return replace(
        cluster,
        accelerator=replace(
            chip,
            peak_flops={precision: peak / 2 for precision, peak in chip.peak_flops.items()},
            hbm_bandwidth=chip.hbm_bandwidth / 2,
            host_link_bandwidth=chip.host_link_bandwidth / 2,
            launch_time=chip.launch_time * 2,
        ),
        host=replace(host, cores=host.cores // 2, dram_bandwidth=host.dram_bandwidth / 2),
        fabric=replace(
            fabric,
            within=fabric.within / 2,
            between=fabric.between / 2,
            within_latency=fabric.within_latency * 2,
            between_latency=fabric.between_latency * 2,
        ),
    )


@MANY
@given(policies, changes(jitter=False), st.booleans())
def test_halving_every_rate_and_doubling_every_latency_doubles_the_time(
    base: Scenario, policy: dict[str, Any], settings_: list[str], contention: bool
) -> None:
    scenario = drawn(base, policy, settings_)
    graph, ranks = scenario.graph, scenario.cluster.ranks
    assert scenario.cluster.host.cores % 2 == 0
    ends = []
    for cluster in (scenario.cluster, twice_as_slow(scenario.cluster)):
        costs = replace(scenario.costs, cluster=cluster)
        durations = tabulate(graph, costs.seconds, ranks, 20, Variation())
        shared = Contention.of(graph, costs) if contention else None
        timeline = run_events(graph, durations, contention=shared)
        ends.append(timeline.end_ns[:, :, timeline.column_of])
    if contention:
        assert np.allclose(ends[1], 2 * ends[0], rtol=1e-5, atol=20 * len(graph.nodes))
    else:  # each of at most 20 x nodes stages in line may be rounded by half a nanosecond, twice
        assert np.abs(ends[1] - 2 * ends[0]).max() <= 1.5 * 20 * len(graph.nodes)


@MANY
@given(policies, changes(jitter=False))
def test_every_amount_takes_exactly_twice_as_long_on_hardware_of_half_the_speed(
    base: Scenario, policy: dict[str, Any], settings_: list[str]
) -> None:
    scenario = drawn(base, policy, settings_)
    fast, slow = scenario.costs, CostModel(twice_as_slow(scenario.cluster), scenario.costs.dense)
    for node in scenario.graph.nodes:
        expected = 2 * np.asarray(fast.seconds(node.stage.work))
        assert np.asarray(slow.seconds(node.stage.work)) == pytest.approx(expected, rel=1e-12)


# ---------------------------------------------------------------- random draws


JITTER = {"compute": 0.2, "lookup": 0.3, "input": 0.1, "all_to_all": 0.25, "all_reduce": 0.15}


def durations_of(scenario: Scenario, ranks: int, cycles: int, seed: int = 5) -> np.ndarray:
    graph, costs = scenario.graph, scenario.costs
    return tabulate(graph, costs.seconds, ranks, cycles, Variation(JITTER, seed)).ns


@FEW
@given(policies, st.integers(1, 4), st.integers(2, 8))
def test_a_draw_depends_on_seed_rank_batch_and_stage_and_on_nothing_else(
    base: Scenario, policy: dict[str, Any], ranks: int, cycles: int
) -> None:
    scenario = base.with_policy(policy)
    many = durations_of(scenario, 4, 8)
    assert np.array_equal(durations_of(scenario, ranks, cycles), many[:, :cycles, :ranks])
    assert not np.array_equal(durations_of(scenario, 4, 8, seed=6), many)


@FEW
@given(policies, policies)
def test_a_stage_is_drawn_alike_in_whatever_pipeline_it_stands(
    base: Scenario, one: dict[str, Any], other: dict[str, Any]
) -> None:
    """The loader's time of a batch does not change because something else overlaps with it."""
    found = []
    for policy in (one, other):
        scenario = base.with_policy(policy)
        at = next(index for index, node in enumerate(scenario.graph.nodes) if node.name == "read")
        found.append(durations_of(scenario, 4, 6)[at])
    assert np.array_equal(*found)


def test_draws_of_ranks_batches_and_stages_differ(base: Scenario) -> None:
    drawn_ns = durations_of(base, 4, 8).astype(float)
    varied = [
        row
        for row, node in zip(drawn_ns, base.graph.nodes, strict=True)
        if node.stage.kind in JITTER and row.min() > 1e4
    ]
    assert len(varied) >= 4
    for row in varied:
        assert len(np.unique(row)) == row.size


def test_drawn_durations_have_the_mean_and_the_spread_that_were_asked_for(base: Scenario) -> None:
    scenario = base.with_overrides(["workload.batch=4096"])
    graph, costs = scenario.graph, scenario.costs
    many = tabulate(graph, costs.seconds, 4, 4000, Variation(JITTER, 3))
    for row, nominal, node in zip(many.ns, many.nominal_ns, graph.nodes, strict=True):
        if nominal.min() > 1e4:
            ratio = row / nominal.mean()
            assert ratio.mean() == pytest.approx(1.0, abs=0.01)
            assert ratio.std() == pytest.approx(JITTER[node.stage.kind], rel=0.06)


def test_two_runs_with_the_same_seed_are_the_same_and_another_seed_is_another_run(base: Scenario) -> None:
    scenario = base.with_overrides(["run.jitter.compute=0.3", "run.jitter.lookup=0.3", "run.seed=4"])
    first, second = run_scenario(scenario), run_scenario(scenario)
    assert np.array_equal(times(first), times(second))
    assert first.report == second.report
    other = run_scenario(scenario.with_overrides(["run.seed=5"]))
    assert not np.array_equal(times(first), times(other))


def test_the_recurrence_is_exact_for_a_scenario_with_slow_ranks(base: Scenario) -> None:
    graph = base.graph
    seconds = {
        id(node.stage.work): np.linspace(1, 2, 4) * 1e-3 * (index + 1)
        for index, node in enumerate(graph.nodes)
    }
    durations = tabulate(graph, lambda work: seconds[id(work)], 4, 12, Variation())
    assert durations.ns.shape[2] == 4
    assert np.array_equal(run_events(graph, durations).end_ns, run_recurrence(graph, durations).end_ns)
