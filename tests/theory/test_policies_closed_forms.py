"""What each policy's step takes when all its stages have fixed lengths, derived by hand.

Letters: D read, I inputs, K route, H retrieve, R refresh, E exchange, F forward, B backward, G send
(gradients), U sparse_update, O optimizer, A reduce (all-reduce), W write_back. A period is checked
by the formula, by the critical cycle, and by a run.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.engine import Durations
from simulator.engine.events import run_events
from simulator.pipeline import MarkedGraph, compile_pipeline, critical_cycle
from simulator.policies import catalog
from simulator.policies.base import Policy
from simulator.policies.dual_buffer import DualBuffer
from simulator.policies.frozen_window import FrozenWindow
from simulator.policies.nested import Nested
from simulator.policies.serialized import Serialized
from simulator.policies.stale_prefetch import StalePrefetch
from simulator.results.exposed import Breakdown, break_down
from simulator.results.timeline import Timeline
from simulator.testing import example_steps

LETTERS = {
    "D": "read",
    "I": "inputs",
    "K": "route",
    "H": "retrieve",
    "R": "refresh",
    "E": "exchange",
    "F": "forward",
    "B": "backward",
    "G": "send",
    "U": "sparse_update",
    "O": "optimizer",
    "A": "reduce",
    "W": "write_back",
}
STEADY = 120
BRIEFLY = settings(max_examples=examples(40))
times = st.fixed_dictionaries({letter: st.integers(0, 500) for letter in LETTERS})


def graph_of(policy: Policy) -> MarkedGraph:
    """The policy's pipeline with all gradients in one bucket."""
    step = next(example_steps(ranks=1))
    return compile_pipeline(policy.plan(replace(step, workload=replace(step.workload, bucket_bytes=1e12))))


def run(graph: MarkedGraph, ns: Mapping[str, int]) -> Timeline:
    """A run with `ns` per letter; a stage in N parts takes its letter's time in each of them."""
    of_name = {name: ns.get(letter, 0) for letter, name in LETTERS.items()}
    nominal = np.array([[of_name[node.name.split(".")[0]]] for node in graph.nodes], dtype=np.int64)
    shape = (len(nominal), 3 * STEADY, 1)
    return run_events(
        graph, Durations(np.broadcast_to(nominal[:, None, :], shape), np.zeros(1, dtype=np.int64), nominal)
    )


def period(policy: Policy, ns: Mapping[str, int]) -> Fraction:
    graph = graph_of(policy)
    timeline = run(graph, ns)
    promised = critical_cycle(len(graph.nodes), graph.edges, timeline.duration_ns[:, 0, 0].tolist()).ratio
    done = timeline.update_ns[:, 0]
    assert Fraction(int(done[-20] - done[-20 - STEADY]), STEADY) == promised
    return promised


def breakdown(policy: Policy, ns: Mapping[str, int]) -> Breakdown:
    timeline = run(graph_of(policy), ns)
    return break_down(timeline, 0, STEADY, 2 * STEADY)


def waits(policy: Policy) -> set[tuple[str, str, int, str]]:
    """All (waiting stage, stage waited for, batches earlier, reason) except stream order."""
    graph = graph_of(policy)
    return {
        (graph.nodes[edge.target].name, graph.nodes[edge.source].name, edge.lag, edge.reason)
        for edge in graph.edges
        if not edge.reason.startswith("stream")
    }


# ---------------------------------------------------------------- serialized


@BRIEFLY
@given(times)
def test_serialized_is_the_sum_of_its_chain(ns: dict[str, int]) -> None:
    """Behind the backward pass three things end the step: all-reduce, optimizer and gradient exchange.

    The compute stream takes the optimizer (after the all-reduce) before the sparse update (after the
    gradient exchange): B + max(A + O, G) + U.
    """
    chain = sum(ns[letter] for letter in "DIKHEFBUW")
    assert period(Serialized(), ns) == chain + max(ns["A"] + ns["O"], ns["G"])


@BRIEFLY
@given(times)
def test_serialized_on_one_rank_without_an_all_reduce_is_the_plain_sum(ns: dict[str, int]) -> None:
    alone = ns | {"A": 0, "O": 0}
    assert period(Serialized(), alone) == sum(alone.values()) - alone["R"]


# ---------------------------------------------------------------- stale prefetch


@BRIEFLY
@given(times)
def test_stale_prefetch_overlaps_the_whole_lookup_with_the_batch_before(ns: dict[str, int]) -> None:
    """Cycles: the prefetcher alone; E F B G (the network takes E of k + 1 after G of k); the compute
    stream from forward to forward; and the life of a batch over two periods, since the prefetch of
    k + 2 begins when batch k is written back (pace).
    """
    look = sum(ns[letter] for letter in "DIKH")
    behind = max(ns["A"] + ns["O"], ns["G"]) + ns["U"]
    window = ns["F"] + ns["B"] + behind
    exchanges = ns["E"] + ns["F"] + ns["B"] + ns["G"]
    life = Fraction(look + ns["E"] + window + ns["W"], 2)
    assert period(StalePrefetch(), ns) == max(look, exchanges, window, life)


def test_the_all_to_alls_of_stale_prefetch_stay_exposed() -> None:
    ns = {"D": 5, "K": 10, "H": 40, "E": 30, "F": 50, "B": 100, "G": 30}
    found = breakdown(StalePrefetch(), ns)
    assert found.step_ns == 210
    assert found.exposed_ns == {"all_to_all": 60}
    assert found.compute_ns == 150


# ---------------------------------------------------------------- dual buffer: lags


def test_dual_buffer_has_the_lags_that_its_description_implies() -> None:
    """Derived by hand.

    - Pace: a stage issued a batches early waits for both updates of batch k - a - 1.
    - Freshness: rows that k shares with k - 1 are copied after k - 1's update: update -> refresh, lag 1.
    - Buffers: batch k reuses the buffer of k - 2. It is free when k - 2 has been written back, which
      also brings rows used by k - 2 and k (not k - 1) to host memory before they are read: lag 2; and
      when k - 1 has copied what it shares with k - 2: refresh of k - 1, lag 1.
    """
    pace = {
        (stage, update, lag, "pace")
        for stage, lag in (("read", 5), ("inputs", 4), ("route", 3), ("retrieve", 2), ("refresh", 2))
        for update in ("sparse_update", "optimizer")
    }
    needs = {
        (after, before, 0, "needs")
        for after, before in (
            ("inputs", "read"),
            ("route", "inputs"),
            ("retrieve", "route"),
            ("refresh", "retrieve"),
            ("exchange", "refresh"),
            ("forward", "exchange"),
            ("backward.0", "forward"),
            ("reduce.0", "backward.0"),
            ("send", "backward.0"),
            ("optimizer", "reduce.0"),
            ("optimizer", "backward.0"),
            ("sparse_update", "send"),
            ("write_back", "sparse_update"),
        )
    }
    rows = {
        ("refresh", "sparse_update", 1, "carry"),
        ("retrieve", "write_back", 2, 'buffer "rows"'),
        ("retrieve", "refresh", 1, 'buffer "rows"'),
    }
    assert waits(DualBuffer()) == pace | needs | rows


def test_on_the_host_stream_the_next_read_comes_before_the_write_back() -> None:
    """retrieve is issued a batch early: host order is retrieve(k + 1), write_back(k), retrieve(k + 2)."""
    timeline = run(graph_of(DualBuffer()), {"H": 30, "W": 20, "F": 5})
    order = sorted(
        (int(timeline.start_ns[index, batch, 0]), node.name, batch)
        for index, node in enumerate(timeline.graph.nodes)
        if node.stream == "host"
        for batch in range(10, 13)
    )
    assert [(name, batch) for _, name, batch in order] == [
        ("retrieve", 10),
        ("retrieve", 11),
        ("write_back", 10),
        ("retrieve", 12),
        ("write_back", 11),
        ("write_back", 12),
    ]


def test_with_one_buffer_the_read_waits_for_the_write_back_of_the_batch_before() -> None:
    """One buffer: rows are read into it when the last batch's have left it, so nothing needs copying."""
    found = waits(DualBuffer(1))
    assert ("retrieve", "write_back", 1, 'buffer "rows"') in found
    assert not any(target == "retrieve" and reason == "pace" for target, _, _, reason in found)
    assert ("retrieve", "refresh", 1, 'buffer "rows"') not in found


# ---------------------------------------------------------------- dual buffer: periods


def dual_buffer_period(ns: Mapping[str, int]) -> Fraction:
    """The largest of its cycles.

    Streams: D, I, K, H + W. Training: refresh(k) waits for update(k - 1), which follows the optimizer on
    the compute stream: R + E + F + B + max(A + O, G) + U. Buffer: H + R (refresh(k) frees the second
    slot for retrieve(k + 1)), and the whole life of rows, H + training + W, over two batches. Pace: the
    lookup from the stage that is a batches ahead to the update, over a + 1 batches.
    """
    rows = ns["R"] + ns["E"] + ns["F"] + ns["B"] + max(ns["A"] + ns["O"], ns["G"]) + ns["U"]
    return max(
        *(Fraction(ns[letter]) for letter in "DIK"),
        Fraction(ns["H"] + ns["W"]),
        Fraction(ns["H"] + ns["R"]),
        Fraction(rows),
        Fraction(ns["H"] + rows + ns["W"], 2),
        Fraction(ns["K"] + ns["H"] + rows, 3),
        Fraction(ns["I"] + ns["K"] + ns["H"] + rows, 4),
        Fraction(ns["D"] + ns["I"] + ns["K"] + ns["H"] + rows, 5),
    )


@BRIEFLY
@given(times)
def test_dual_buffer_takes_the_largest_of_its_derived_cycles(ns: dict[str, int]) -> None:
    assert period(DualBuffer(), ns) == dual_buffer_period(ns)


@BRIEFLY
@given(times)
def test_one_buffer_puts_the_read_and_the_write_back_into_the_training_chain(ns: dict[str, int]) -> None:
    """H E F B (A O | G) U W in line, because the next read waits for this write-back; input and route
    stay ahead. There is no copy to make: the refresh takes no time.
    """
    ns = ns | {"R": 0}
    behind = max(ns["A"] + ns["O"], ns["G"]) + ns["U"]
    chain = ns["H"] + ns["E"] + ns["F"] + ns["B"] + behind + ns["W"]
    route = Fraction(ns["K"] + chain - ns["W"], 3)
    assert period(DualBuffer(1), ns) == max(chain, ns["D"], ns["I"], ns["K"], route, life(ns, chain))


def life(ns: Mapping[str, int], chain: int) -> Fraction:
    trained = ns["K"] + chain - ns["W"]
    return max(Fraction(ns["I"] + trained, 4), Fraction(ns["D"] + ns["I"] + trained, 5))


def test_the_second_buffer_is_worth_the_read_and_the_write_back_when_training_is_longest() -> None:
    ns = dict.fromkeys(LETTERS, 0) | {"H": 40, "W": 20, "E": 10, "F": 30, "B": 60, "G": 10, "R": 1}
    assert period(DualBuffer(2), ns) == 1 + 10 + 30 + 60 + 10
    assert period(DualBuffer(1), ns | {"R": 0}) == 40 + 10 + 30 + 60 + 10 + 20


def test_a_read_longer_than_the_training_window_sets_the_period_of_dual_buffer() -> None:
    ns = dict.fromkeys(LETTERS, 0) | {"H": 300, "W": 50, "E": 10, "F": 30, "B": 60, "G": 10, "R": 1}
    assert period(DualBuffer(), ns) == 350
    graph = graph_of(DualBuffer())
    cycle = critical_cycle(len(graph.nodes), graph.edges, run(graph, ns).duration_ns[:, 0, 0].tolist())
    assert {graph.nodes[edge.target].name for edge in cycle.edges} == {"retrieve", "write_back"}


# ---------------------------------------------------------------- frozen window


def window(parts: int, exchange: int, compute: int) -> int:
    """Time from the first exchange to the last gradient exchange; a = exchange, c = compute, N = parts.

    The network takes e1 e2 s1 e3 s2 ... sN: beside the compute of part i, s of i - 1 and e of i + 1.
    - c >= 2a: both fit behind it. e1 and sN have nothing to hide behind: 2a + N c.
    - a <= c <= 2a: f3 starts when e3 ends at 3a + c, each next one 2a later, the last one at
      (2N - 3)a + c; it runs c, so does ... b(N) ends at (2N - 3)a + 2c and sN a later: (2N - 2)a + 2c.
    - c <= a: the network never stops: 2N a.
    """
    if compute >= 2 * exchange:
        return 2 * exchange + parts * compute
    return max(2 * parts * exchange, (2 * parts - 2) * exchange + 2 * compute)


@BRIEFLY
@given(st.integers(2, 9), st.integers(1, 300), st.integers(0, 900))
def test_a_frozen_window_takes_its_derived_time(parts: int, exchange: int, compute: int) -> None:
    ns = {"E": exchange, "G": exchange, "F": compute // 3, "B": compute - compute // 3}
    assert period(FrozenWindow(parts), ns) == window(parts, exchange, compute)


@BRIEFLY
@given(st.integers(1, 9), st.integers(1, 300))
def test_a_frozen_window_exposes_one_nth_of_the_all_to_all_when_compute_is_long_enough(
    parts: int, exchange: int
) -> None:
    """Perfect deduplication: N parts together exchange what the whole batch would."""
    ns = {"E": exchange, "G": exchange, "F": exchange, "B": exchange}
    found = breakdown(FrozenWindow(parts), ns)
    assert found.exposed_ns.get("all_to_all", 0) == Fraction(2 * parts * exchange, parts)
    assert found.compute_ns == parts * 2 * exchange


@BRIEFLY
@given(st.integers(3, 9), st.integers(2, 300), st.data())
def test_hiding_stops_when_compute_per_part_is_shorter_than_its_two_exchanges(
    parts: int, exchange: int, data: st.DataObject
) -> None:
    compute = data.draw(st.integers(0, 2 * exchange - 1))
    ns = {"E": exchange, "G": exchange, "B": compute}
    exposed = breakdown(FrozenWindow(parts), ns).exposed_ns["all_to_all"]
    assert exposed > 2 * exchange
    assert exposed == window(parts, exchange, compute) - parts * compute


def test_only_the_last_part_reduces_and_the_window_updates_once() -> None:
    graph = graph_of(FrozenWindow(4))
    names = [node.name for node in graph.nodes]
    assert [name for name in names if name.startswith("reduce")] == ["reduce.0"]
    assert names.count("sparse_update") == names.count("optimizer") == 1
    network = [node.name for node in graph.nodes if node.stream == "network"]
    assert network == [
        *("exchange.0", "exchange.1", "send.0", "exchange.2"),
        *("send.1", "exchange.3", "send.2", "send.3"),
    ]


# ---------------------------------------------------------------- nestpipe


@BRIEFLY
@given(st.integers(2, 6), st.integers(1, 100), st.integers(0, 400), st.integers(0, 900))
def test_nestpipe_hides_the_lookup_behind_the_window_and_the_window_hides_its_exchanges(
    parts: int, exchange: int, read: int, write: int
) -> None:
    """compute c = 3a per part. The window with its refresh: R + 2a + N c + U; the host stream: H + W;
    H + R; and a batch's rows over two batches: (H + R + 2a + N c + U + W) / 2.
    """
    compute, copy, update = 3 * exchange, 2, 7
    ns = {"E": exchange, "G": exchange, "B": compute, "H": read, "W": write, "R": copy, "U": update}
    rows = copy + 2 * exchange + parts * compute + update
    expected = max(
        Fraction(rows), Fraction(read + write), Fraction(read + copy), Fraction(read + rows + write, 2)
    )
    assert period(Nested(DualBuffer(), FrozenWindow(parts)), ns) == expected


def test_one_long_prefetch_stage_one_batch_deep_cannot_reach_nestpipe() -> None:
    """Its four parts are together longer than the window, but none of them is alone."""
    look = {"D": 250, "I": 60, "K": 250, "H": 240}
    train = {"E": 10, "G": 10, "F": 10, "B": 20, "U": 5}
    parts = 8
    nested = period(Nested(DualBuffer(), FrozenWindow(parts)), look | train)
    stale = period(Nested(StalePrefetch(), FrozenWindow(parts)), look | train)
    assert nested == 10 + parts * 30 + 10 + 5
    assert stale == sum(look.values())
    assert stale > 2 * nested


def test_a_stage_longer_than_the_window_sets_the_period_of_nestpipe_whichever_it_is() -> None:
    train = {"E": 10, "G": 10, "F": 10, "B": 20, "U": 5}
    policy = Nested(DualBuffer(), FrozenWindow(4))
    base = 10 + 4 * 30 + 10 + 5
    assert period(policy, train) == base
    for letter in "DIKH":
        assert period(policy, train | {letter: base + 1}) == base + 1


def test_the_four_cells_of_the_table_order_as_they_should() -> None:
    ns = {"D": 20, "I": 5, "K": 40, "H": 50, "W": 30, "R": 1, "F": 8, "B": 16, "U": 4, "E": 4, "G": 4}
    parts = 4
    whole = ns | {letter: parts * ns[letter] for letter in "FBEG"}
    steps = [
        period(Serialized(), whole),
        period(FrozenWindow(parts), ns),
        period(DualBuffer(), whole),
        period(Nested(DualBuffer(), FrozenWindow(parts)), ns),
    ]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] - steps[1] == steps[2] - steps[3] == 2 * (parts - 1) * 4


@pytest.mark.parametrize("name", ["serialized", "stale_prefetch", "dual_buffer", "frozen_window", "nestpipe"])
def test_an_input_pipeline_that_is_slowest_sets_the_pace_and_is_charged_for_it(name: str) -> None:
    ns = dict.fromkeys(LETTERS, 1) | {"D": 10_000}
    needed = {one: 8 for one in catalog.taken_by(name) if one == "micro_batches"}
    found = breakdown(catalog.build(name, **needed), ns)
    assert found.step_ns == pytest.approx(10_000, rel=0.01)
    assert found.exposed_ns["input"] == pytest.approx(10_000, rel=0.01)
