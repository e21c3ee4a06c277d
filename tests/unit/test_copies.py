"""Averaging the copies of tables: which rows it moves, when, and what rows lack of other copies."""

from dataclasses import replace

import numpy as np
import pytest

from simulator.engine.durations import Durations
from simulator.engine.recurrence import run_recurrence
from simulator.pipeline import MarkedGraph, compile_pipeline
from simulator.policies import catalog
from simulator.policies.base import Policy
from simulator.quantities import AllReduceWork, CopyWork, RowWork, leaves
from simulator.results.copies import declared_steps, with_copies
from simulator.results.staleness import Staleness
from simulator.results.timeline import Timeline
from simulator.sharding import Kind, Replicas, RowWise, Rule, ShardingPlan, TrainStep
from simulator.testing import example_steps

CYCLES, SLOW = 60, 5_000


def step_on(kind: Kind, every: int = 1, touched: bool = True, rules: tuple[Rule, ...] = ()) -> TrainStep:
    plan = ShardingPlan(kind, rules, replicas=Replicas(2, every, touched))
    return replace(next(example_steps(ranks=4)), plan=plan)


def bytes_copied(step: TrainStep, path: str) -> float:
    copies = [one for one in leaves(step.synchronize) if isinstance(one, CopyWork) and one.path == path]
    return sum(float(np.mean(one.bytes)) for one in copies)


def bytes_reduced(step: TrainStep) -> float:
    return sum(one.bytes for one in leaves(step.synchronize) if isinstance(one, AllReduceWork))


def buffered_bytes(step: TrainStep) -> float:
    """Rows of the last batch, with their state."""
    return sum(
        float(np.mean(flow.missed))
        * (flow.piece.row_bytes + step.workload.optimizer.row_state_bytes(flow.piece.values))
        for flow in step.traffic.flows
    )


def test_rows_of_the_last_batch_are_averaged_in_their_buffer_and_others_fetched_and_taken_back() -> None:
    step = step_on(RowWise("dram"))
    fetched, returned = (bytes_copied(step, path) for path in ("host_to_device", "device_to_host"))
    assert fetched == returned == pytest.approx(bytes_reduced(step) - buffered_bytes(step))
    assert 0 < fetched < bytes_reduced(step)
    read = [one for one in leaves(step.synchronize) if isinstance(one, RowWork)]
    assert {one.tier for one in read} == {"dram"} and len(read) == 4  # two widths, there and back


def test_an_averaging_of_tables_in_device_memory_copies_nothing() -> None:
    step = step_on(RowWise("hbm"))
    assert isinstance(step.synchronize, AllReduceWork)
    assert bytes_reduced(step) == pytest.approx(bytes_reduced(step_on(RowWise("dram"))))


@pytest.mark.parametrize("touched", [True, False])
def test_of_tables_in_several_tiers_only_those_outside_of_device_memory_are_fetched(touched: bool) -> None:
    users = (Rule(("users",), RowWise("hbm")),)
    both, mixed = (step_on(RowWise("dram"), 1, touched, rules) for rules in ((), users))
    assert 0 < bytes_copied(mixed, "host_to_device") < bytes_copied(both, "host_to_device")
    assert bytes_reduced(mixed) == pytest.approx(bytes_reduced(both))


def test_whole_shards_cross_the_host_link_but_for_what_lies_in_the_buffer() -> None:
    step = step_on(RowWise("dram"), touched=False)
    assert bytes_copied(step, "host_to_device") == pytest.approx(bytes_reduced(step) - buffered_bytes(step))


def test_rows_used_by_both_copies_are_averaged_once() -> None:
    one, three = bytes_reduced(step_on(RowWise("hbm"))), bytes_reduced(step_on(RowWise("hbm"), every=3))
    assert one < three < 3 * one


def timeline_of(policy: Policy, step: TrainStep, slow: str = "") -> Timeline:
    graph = compile_pipeline(policy.plan(step))
    nominal = np.array([[SLOW if node.stage.name == slow else 100] for node in graph.nodes])
    ns = np.broadcast_to(nominal[:, None, :], (len(graph.nodes), CYCLES // graph.period, 1))
    return run_recurrence(graph, Durations(ns, np.zeros(step.ranks, dtype=np.int64), nominal))


def times(timeline: Timeline, name: str) -> dict[int, tuple[int, int]]:
    """Start and end of each run by batch."""
    graph: MarkedGraph = timeline.graph
    return {
        node.residue + cycle * graph.period: (
            int(timeline.start_ns[index, cycle, 0]),
            int(timeline.end_ns[index, cycle, 0]),
        )
        for index, node in enumerate(graph.nodes)
        if node.stage.name == name
        for cycle in range(timeline.cycles)
    }


@pytest.mark.parametrize("name", sorted(catalog.ONE_COPY))
@pytest.mark.parametrize("every", [1, 3])
def test_an_averaging_waits_for_the_rows_that_the_batch_before_still_writes_back(
    name: str, every: int
) -> None:
    timeline = timeline_of(catalog.build(name), step_on(RowWise("dram"), every), slow="write_back")
    averaged, written = times(timeline, "synchronize"), times(timeline, "write_back")
    assert averaged
    assert all(start >= written[batch - 1][1] for batch, (start, _) in averaged.items() if batch > 0)


def seen_on_copies(policy: Policy, step: TrainStep, slow: str) -> int:
    timeline = timeline_of(policy, step, slow)
    found = with_copies(Staleness(0, 0.0), timeline, 0, range(20, 20 + 6 * step.synchronize_every))
    assert found is not None
    return found.observed_max


@pytest.mark.parametrize("tier", ["dram", "hbm"])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize(
    "name", sorted({*catalog.ONE_COPY, "sparse_core", "sparse_core_pipelined", "hugectr"})
)
def test_no_policy_lacks_more_updates_of_other_copies_than_it_declares(
    name: str, every: int, tier: str
) -> None:
    policy, step = catalog.build(name), step_on(RowWise(tier), every)
    declared = declared_steps(policy.staleness_steps, step, policy.plan(step))
    found = {slow: seen_on_copies(policy, step, slow) for slow in ("", "synchronize", "retrieve", "forward")}
    assert max(found.values()) <= declared, found
    assert found["synchronize"] == declared


@pytest.mark.parametrize(("tier", "one_more"), [("dram", 1), ("hbm", 0)])
def test_rows_read_ahead_of_an_averaging_are_one_update_of_the_other_copies_staler(
    tier: str, one_more: int
) -> None:
    policy, step = catalog.build("dual_buffer"), step_on(RowWise(tier), every=4)
    assert policy.staleness_steps == 0
    assert declared_steps(0, step, policy.plan(step)) == 3 + one_more
    assert seen_on_copies(policy, step, "synchronize") == 3 + one_more


def test_on_one_copy_nothing_is_added_to_what_a_policy_declares() -> None:
    step, policy = next(example_steps(ranks=4)), catalog.build("stale_prefetch")
    assert declared_steps(1, step, policy.plan(step)) == 1
    seen = Staleness(1, 0.5, "somewhere")
    assert with_copies(seen, timeline_of(policy, step), 0, range(20, 25)) is seen
