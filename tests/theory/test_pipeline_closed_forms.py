"""Pipelines whose period can be written down: what one, two and many stages in flight take, and why.

Every period is checked three ways: by the formula, by the critical cycle, and by a run.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.costs import CostModel
from simulator.engine import Durations
from simulator.engine.events import run_events
from simulator.errors import InfeasibleError
from simulator.hardware import Cluster, TwoLevel, catalog
from simulator.pipeline import Buffer, Carry, MarkedGraph, Pipeline, Stage, compile_pipeline, critical_cycle
from simulator.quantities import AllReduceWork

NS = st.integers(0, 1000)
STEADY = 240  # batches from which to which a period is measured: divisible by every number of batches here


def stage(name: str, after: Sequence[Stage] = (), **settings: int) -> Stage:
    return Stage(name, "compute", after=after, **settings)


def fixed(graph: MarkedGraph, ns: Mapping[str, int], cycles: int) -> Durations:
    nominal = np.array([[ns[node.name]] for node in graph.nodes], dtype=np.int64)
    return Durations(
        np.broadcast_to(nominal[:, None, :], (len(nominal), cycles, 1)), np.zeros(1, dtype=np.int64), nominal
    )


def period(pipeline: Pipeline, ns: Mapping[str, int]) -> Fraction:
    """Nanoseconds per batch by the critical cycle, after a run has shown the same."""
    graph = compile_pipeline(pipeline)
    durations = fixed(graph, ns, 3 * STEADY // graph.period)
    promised = critical_cycle(len(graph.nodes), graph.edges, durations.nominal_ns[:, 0].tolist())
    done = run_events(graph, durations).end_ns[graph.updates[-1], :, 0]
    steady = STEADY // graph.period
    assert Fraction(int(done[-20] - done[-20 - steady]), STEADY) == promised.period_ns(graph)
    return promised.period_ns(graph)


@given(st.lists(NS, min_size=1, max_size=6))
def test_a_serial_pipeline_takes_the_sum_of_its_stages(times: list[int]) -> None:
    chain: list[Stage] = []
    for index in range(len(times)):
        chain.append(stage(f"s{index}", chain[-1:]))
    streams = {"compute": chain[-1:]} | {one.name: [one] for one in chain[:-1]}
    pipeline = Pipeline(streams, [Carry(chain[-1], to=chain[0])])
    ns = {one.name: time for one, time in zip(chain, times, strict=True)}
    assert period(pipeline, ns) == sum(times)
    graph = compile_pipeline(pipeline)
    done = run_events(graph, fixed(graph, ns, 9)).end_ns[graph.updates[0], :, 0]
    assert done.tolist() == [sum(times) * (batch + 1) for batch in range(9)]


@given(NS, NS, NS, NS)
def test_with_room_enough_the_busiest_stream_sets_the_period(
    read: int, copy: int, look: int, train: int
) -> None:
    """With k batches of lookahead the whole chain may take k + 1 periods, so only streams bind."""
    first = stage("read", ahead=4)
    second = stage("copy", [first], ahead=4)
    third = stage("look", [second], ahead=4)
    fourth = stage("train", [third])
    pipeline = Pipeline({"host": [first, second], "network": [third], "compute": [fourth]})
    times = {"read": read, "copy": copy, "look": look, "train": train}
    assert period(pipeline, times) == max(read + copy, look, train)


@given(st.integers(0, 4), NS, NS)
def test_a_lookahead_of_a_batches_divides_the_chain_by_a_plus_one(ahead: int, fetch: int, train: int) -> None:
    """Pace: fetch(k) -> train(k) -> fetch(k + a + 1); beside it each stream repeats itself."""
    first = stage("fetch", ahead=ahead)
    second = stage("train", [first])
    carries = [] if ahead else [Carry(second, to=first)]
    pipeline = Pipeline({"network": [first], "compute": [second]}, carries)
    expected = max(Fraction(fetch), Fraction(train), Fraction(fetch + train, ahead + 1))
    assert period(pipeline, {"fetch": fetch, "train": train}) == expected


@given(st.integers(1, 5), NS, NS, NS)
def test_a_buffer_of_s_slots_divides_the_time_for_which_a_slot_is_held(
    slots: int, fill: int, use: int, drain: int
) -> None:
    """A slot is held by fill, use and drain of one batch and then free for the batch `slots` later."""
    filled = stage("fill")
    used = stage("use", [filled])
    drained = stage("drain", [used])
    pipeline = Pipeline(
        {"in": [filled], "compute": [used], "out": [drained]}, [], [Buffer("slots", slots, filled, [drained])]
    )
    held = Fraction(fill + use + drain, slots)
    expected = max(Fraction(fill), Fraction(use), Fraction(drain), held)
    assert period(pipeline, {"fill": fill, "use": use, "drain": drain}) == expected


def test_a_second_buffer_is_worth_what_the_first_one_makes_wait() -> None:
    def with_slots(slots: int) -> Fraction:
        fill, use = stage("fill"), None
        use = stage("use", [fill])
        return period(
            Pipeline({"in": [fill], "compute": [use]}, [], [Buffer("rows", slots, fill, [use])]),
            {"fill": 30, "use": 70},
        )

    assert [with_slots(slots) for slots in (1, 2, 3)] == [100, 70, 70]


def test_a_slot_freed_by_the_next_batch_is_held_for_one_batch_more() -> None:
    """fill(k) waits for use(k - slots + 1): with one slot that is use(k), which needs fill(k)."""

    def pipeline(slots: int) -> Pipeline:
        fill = stage("fill")
        use = stage("use", [fill])
        return Pipeline({"in": [fill], "compute": [use]}, [], [Buffer("rows", slots, fill, [(use, 1)])])

    assert period(pipeline(2), {"fill": 30, "use": 70}) == 100
    assert period(pipeline(3), {"fill": 30, "use": 70}) == 70
    with pytest.raises(
        InfeasibleError, match=r'deadlock: .*fill waits for use [(]buffer "rows", same batch[)]'
    ):
        compile_pipeline(pipeline(1))


@given(st.sampled_from((1, 2, 3, 4, 6)), NS, NS, st.data())
def test_gradients_accumulated_over_p_batches_cost_a_pth_of_the_update_per_batch(
    every: int, train: int, update: int, data: st.DataObject
) -> None:
    phase = data.draw(st.integers(0, every - 1))
    work = stage("train")
    step = stage("update", [work], every=every, phase=phase)
    pipeline = Pipeline({"compute": [work, step]})
    assert period(pipeline, {"train": train, "update": update}) == train + Fraction(update, every)


@given(NS, NS)
def test_a_sync_in_every_fourth_batch_hides_behind_those_that_need_not_wait_for_it(
    train: int, sync: int
) -> None:
    """Sync runs in batches 3, 7, ... and serves them and the next three.

    train(k) waits for the sync that serves k - 2, so train(4) runs beside it and train(5) waits:
    of four trainings three and the sync are in line, or the four trainings alone.
    """
    work = stage("train")
    reduce = stage("sync", [work], every=4, phase=3)
    delayed = Pipeline({"compute": [work], "network": [reduce]}, [Carry(reduce, to=work, lag=2)])
    assert period(delayed, {"train": train, "sync": sync}) == Fraction(max(4 * train, 3 * train + sync), 4)
    at_once = Pipeline({"compute": [work], "network": [reduce]}, [Carry(reduce, to=work, lag=1)])
    assert period(at_once, {"train": train, "sync": sync}) == Fraction(4 * train + sync, 4)


def test_periods_of_two_and_three_unroll_over_six_batches() -> None:
    """In six batches: six trainings, three a's, two b's, all on one stream."""
    work = stage("train")
    a, b = stage("a", [work], every=2, phase=1), stage("b", [work], every=3)
    pipeline = Pipeline({"compute": [work, a, b]}, updates=[work])
    assert compile_pipeline(pipeline).period == 6
    assert period(pipeline, {"train": 10, "a": 7, "b": 5}) == Fraction(6 * 10 + 3 * 7 + 2 * 5, 6)


def test_a_stage_that_runs_every_other_batch_is_waited_for_at_its_latest_run() -> None:
    """Refresh runs in batches 1, 3, ...: batches 2 and 3 wait for those of 1 and 3, batch 0 for none."""
    refresh = stage("refresh", every=2, phase=1)
    train = stage("train", [refresh])
    pipeline = Pipeline({"cache": [refresh], "compute": [train]}, [Carry(train, to=refresh)])
    graph = compile_pipeline(pipeline)
    at = {(node.name, node.residue): index for index, node in enumerate(graph.nodes)}
    needs = {
        (graph.nodes[edge.source].residue, graph.nodes[edge.target].residue, edge.lag)
        for edge in graph.edges
        if edge.reason == "needs"
    }
    assert needs == {(1, 0, 1), (1, 1, 0)}
    end = run_events(graph, fixed(graph, {"refresh": 5, "train": 10}, 3)).end_ns[:, :, 0]
    assert end[at["train", 0]].tolist() == [10, 35, 60]
    assert end[at["refresh", 1]].tolist() == [15, 40, 65]
    assert end[at["train", 1]].tolist() == [25, 50, 75]


def test_a_stream_keeps_its_order_at_both_ends_of_a_run_too() -> None:
    """Fetch runs one batch early on the stream of write: f0 f1 w0 f2 w1 w2, one after the other."""
    fetch = stage("fetch", ahead=1)
    write = stage("write", [fetch])
    graph = compile_pipeline(Pipeline({"compute": [fetch, write]}))
    end = run_events(graph, fixed(graph, {"fetch": 10, "write": 1}, 3)).end_ns[:, :, 0]
    at = {node.name: index for index, node in enumerate(graph.nodes)}
    assert end[at["fetch"]].tolist() == [10, 20, 31]
    assert end[at["write"]].tolist() == [21, 32, 33]


def test_the_lags_between_neighbours_on_a_stream_follow_from_how_early_they_are_issued() -> None:
    """lag = later.ahead - earlier.ahead, and 1 + first.ahead - last.ahead from the last to the first."""
    early, now, middle = stage("early", ahead=3), stage("now"), stage("middle", ahead=1)
    graph = compile_pipeline(Pipeline({"compute": [early, now, middle]}, updates=[now]))
    lags = {(graph.nodes[edge.source].name, graph.nodes[edge.target].name): [] for edge in graph.edges}
    for edge in graph.edges:
        if edge.reason.startswith("stream"):
            lags[graph.nodes[edge.source].name, graph.nodes[edge.target].name].append(edge.lag)
    assert 0 - 3 in lags["early", "now"]
    assert 1 - 0 in lags["now", "middle"]
    assert 1 + 3 - 1 in lags["middle", "early"]


def test_a_cycle_whose_lags_sum_to_nothing_is_a_deadlock_and_is_spelled_out() -> None:
    first, second = stage("first"), stage("second")
    pipeline = Pipeline(
        {"a": [first], "compute": [second]}, [Carry(first, to=second, lag=2), Carry(second, to=first, lag=-2)]
    )
    with pytest.raises(InfeasibleError) as refusal:
        compile_pipeline(pipeline)
    assert "first waits for second (carry, 2 later)" in refusal.value.problem
    assert "second waits for first (carry, 2 earlier)" in refusal.value.problem


def test_a_queue_that_nothing_bounds_is_named_with_both_its_ends() -> None:
    read = stage("read")
    train = stage("train", [read])
    with pytest.raises(InfeasibleError, match="nothing holds read back when train is slower"):
        compile_pipeline(Pipeline({"loader": [read], "compute": [train]}))


def test_two_pipelines_in_one_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="never wait for each other"):
        compile_pipeline(Pipeline({"a": [stage("alone")], "compute": [stage("train")]}))


@given(st.integers(2, 4096), st.floats(1.0, 1e12))
def test_a_ring_all_reduce_moves_two_n_minus_one_nths_of_the_vector(ranks: int, size: float) -> None:
    machine = catalog.machine(catalog.names("machine")[0])
    fabric = TwoLevel(within=1e9, between=1e9)
    one_host = Cluster(machine.accelerator, machine.host, fabric, per_host=ranks, hosts=1)
    one_each = Cluster(machine.accelerator, machine.host, fabric, per_host=1, hosts=ranks)
    for cluster in (one_host, one_each):
        assert CostModel(cluster).seconds(AllReduceWork(size)) == pytest.approx(
            2 * (ranks - 1) / ranks * size / 1e9
        )
