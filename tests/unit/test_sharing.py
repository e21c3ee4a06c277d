"""Who shares what: the filling law by hand and as a law, who can meet whom, weights, and the agenda."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from math import ceil
from random import Random

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.costs import Flows
from simulator.engine.agenda import Agenda
from simulator.engine.host import SharedRank
from simulator.engine.needs import Needs
from simulator.engine.precedence import MOST_NODES, Precedence
from simulator.engine.sharing import fill
from simulator.engine.weights import PerCollective, PerFlow
from simulator.pipeline import Carry, MarkedGraph, Pipeline, Stage, compile_pipeline

Need = Mapping[str, float]

GEMM: Need = {"tensor": 1.0, "hbm": 0.35}
GATHER: Need = {"hbm": 1.0}
COPY: Need = {"host_to_device": 1.0, "hbm": 0.1}


# ---------------------------------------------------------------- the law, by hand


@pytest.mark.parametrize(
    ("needs", "speeds"),
    [
        ([GEMM], [1.0]),
        ([{}, GEMM], [1.0, 1.0]),
        ([GEMM, COPY], [1.0, 1.0]),  # 0.45 of the memory: neither notices the other
        ([GEMM, GEMM], [0.5, 0.5]),
        ([GEMM, GATHER], [1 / 1.35, 1 / 1.35]),  # fractions of speed are equal, bytes are not
        ([GEMM, GATHER, COPY], [1 / 1.45] * 3),
        ([GEMM, COPY, COPY], [1.0, 0.5, 0.5]),
        # the engine holds two back at a half; what they leave of the memory is the third's
        ([GATHER, {"hbm": 0.5, "tensor": 1.0}, {"tensor": 1.0}], [0.75, 0.5, 0.5]),
        ([{"a": 1.0}, {"a": 1.0, "b": 0.5}, {"b": 1.0}], [0.5, 0.5, 0.75]),
        ([{"a": 0.9}, {"a": 0.1}], [1.0, 1.0]),
        ([{"a": 0.9}, {"a": 0.3}], [1 / 1.2, 1 / 1.2]),
    ],
)
def test_speeds_are_those_found_by_hand(needs: list[Need], speeds: list[float]) -> None:
    assert fill(needs) == pytest.approx(speeds, rel=1e-12)


# ---------------------------------------------------------------- the law, as a law

shares = st.sampled_from((0.0, 0.05, 0.2, 1 / 3, 0.5, 0.9, 1.0))
sets_of_needs = st.lists(st.dictionaries(st.sampled_from("abcd"), shares, max_size=4), min_size=1, max_size=7)


def use(needs: Sequence[Need], speeds: Sequence[float]) -> dict[str, float]:
    return {
        name: sum(need.get(name, 0.0) * speed for need, speed in zip(needs, speeds, strict=True))
        for name in "abcd"
    }


@settings(max_examples=examples(500))
@given(sets_of_needs)
def test_no_resource_gives_more_than_it_has_and_nobody_runs_faster_than_alone(needs: list[Need]) -> None:
    speeds = fill(needs)
    assert all(0.0 < speed <= 1.0 for speed in speeds)
    assert all(used <= 1.0 + 1e-8 for used in use(needs, speeds).values())


@settings(max_examples=examples(500))
@given(sets_of_needs)
def test_nobody_can_be_raised_without_lowering_one_who_is_no_faster(needs: list[Need]) -> None:
    """Max-min: each runs at full speed, or needs a full resource on which nobody is faster."""
    speeds, used = fill(needs), use(needs, fill(needs))
    for need, speed in zip(needs, speeds, strict=True):
        full = [name for name, share in need.items() if share > 0.0 and used[name] > 1.0 - 1e-7]
        fastest = {
            name: max(s for other, s in zip(needs, speeds, strict=True) if other.get(name, 0.0) > 0.0)
            for name in full
        }
        assert speed > 1.0 - 1e-9 or any(speed >= fastest[name] - 1e-9 for name in full)


@settings(max_examples=examples(200))
@given(sets_of_needs, st.randoms(use_true_random=False))
def test_speeds_do_not_depend_on_the_order_in_which_activities_are_named(
    needs: list[Need], random: Random
) -> None:
    order = list(range(len(needs)))
    random.shuffle(order)
    shuffled = fill([needs[place] for place in order])
    assert list(shuffled) == pytest.approx([fill(needs)[place] for place in order], rel=1e-12)


@settings(max_examples=examples(200))
@given(sets_of_needs)
def test_activities_alike_run_alike(needs: list[Need]) -> None:
    speeds = fill([*needs, needs[0]])
    assert speeds[-1] == pytest.approx(speeds[0], rel=1e-12)


# ---------------------------------------------------------------- who can meet whom


def graph_of(*, lag: int, third: bool = False) -> MarkedGraph:
    """A copy, then a product that needs it; the next copy waits for the product of `lag` batches before."""
    copy = Stage("copy", "input")
    product = Stage("product", "compute", after=(copy,))
    streams, carries = {"copy": [copy], "compute": [product]}, [Carry(product, copy, lag)]
    if third:
        write = Stage("write", "lookup", after=(product,))
        streams["host"] = [write]
        carries.append(Carry(write, product, 1))
    return compile_pipeline(Pipeline(streams, carries))


def test_stages_that_always_wait_for_each_other_share_nothing() -> None:
    assert list(Needs.of(graph_of(lag=1), [GATHER, GATHER]).shared) == [False, False]
    assert list(Needs.of(graph_of(lag=2), [GATHER, GATHER]).shared) == [True, True]


def test_stages_share_nothing_where_a_resource_has_enough_for_all_who_can_meet() -> None:
    light = {"hbm": 0.5}
    assert list(Needs.of(graph_of(lag=2), [light, light]).shared) == [False, False]
    assert list(Needs.of(graph_of(lag=2), [light, {"hbm": 0.6}]).shared) == [True, True]
    assert list(Needs.of(graph_of(lag=2), [{"hbm": 1.0}, {"tensor": 1.0}]).shared) == [False, False]


def test_a_stage_is_shared_because_of_those_whom_it_can_meet_and_of_no_others() -> None:
    """The write overlaps with the next copy, never with a product; each needs 0.6 of the memory."""
    graph = graph_of(lag=1, third=True)
    named = {node.name: index for index, node in enumerate(graph.nodes)}
    overlap = Precedence(graph).may_overlap
    assert overlap[named["write"], named["copy"]] and overlap[named["copy"], named["write"]]
    assert not overlap[named["write"], named["product"]] and not overlap[named["copy"], named["product"]]
    shared = dict(zip(named, Needs.of(graph, [{"hbm": 0.6}] * 3).shared, strict=True))
    assert shared == {"copy": True, "write": True, "product": False}


def test_an_edge_that_a_longer_path_implies_is_left_out() -> None:
    first = Stage("a", "input")
    second = Stage("b", "lookup", after=(first,))
    third = Stage("c", "compute", after=(first, second))
    graph = compile_pipeline(
        Pipeline({"one": [first], "two": [second], "compute": [third]}, [Carry(third, first, 1)])
    )
    kept = {(graph.nodes[e.source].name, graph.nodes[e.target].name, e.lag) for e in Precedence(graph).needed}
    assert kept == {("a", "b", 0), ("b", "c", 0), ("c", "a", 1)}  # not a -> c, and no stage's own stream


def test_in_a_graph_too_large_to_search_everybody_may_meet_everybody() -> None:
    stages = [Stage("s0", "compute")]
    for number in range(1, MOST_NODES + 1):
        stages.append(Stage(f"s{number}", "compute", after=(stages[-1],)))
    graph = compile_pipeline(Pipeline({"compute": stages}))
    seen = Precedence(graph)
    assert seen.may_overlap.all()
    assert {(e.source, e.target, e.lag) for e in seen.needed} == {
        (e.source, e.target, e.lag) for e in graph.edges
    }


# ---------------------------------------------------------------- a rank, by hand


def ends_of(jobs: Sequence[tuple[int, int, Need]]) -> list[int]:
    """Begin, alone and need of each job; when each ends on one shared rank."""
    env = simpy.Environment()
    agenda, ends = Agenda(env), {}
    needs = Needs([need for _, _, need in jobs], [True] * len(jobs))
    rank = SharedRank(agenda, needs, lambda job, now: ends.update({job: now}))
    for job, (begin, alone, _) in enumerate(jobs):
        agenda.at(begin, lambda what: rank.begin(what[0], what[0], what[1]), (job, alone))
    env.run()
    return [ends[job] for job in range(len(jobs))]


@pytest.mark.parametrize(
    ("jobs", "ends"),
    [
        ([(5, 100, GATHER)], [105]),
        ([(0, 100, GATHER), (0, 100, GATHER)], [200, 200]),
        ([(0, 100, GATHER), (50, 100, GATHER)], [150, 200]),  # 50 alone, both 100 at half speed, 50 alone
        ([(0, 100, GATHER), (100, 100, GATHER)], [100, 200]),  # one begins as the other ends
        ([(0, 100, GEMM), (10, 100, COPY)], [100, 110]),
        ([(0, 100, GATHER), (20, 0, GATHER), (40, 20, GATHER)], [120, 20, 80]),
        ([(0, 4, GATHER), (0, 4, GATHER), (0, 7, GATHER)], [12, 12, 15]),
        ([(0, 3, GATHER), (1, 3, GATHER), (2, 3, GATHER)], [7, 9, 9]),  # at 6.5, 8.5 and 9
    ],
)
def test_ends_are_those_found_by_hand(jobs: list[tuple[int, int, Need]], ends: list[int]) -> None:
    assert ends_of(jobs) == ends


def test_what_a_stage_held_is_given_back_within_the_nanosecond() -> None:
    """Each short job ends a third past a whole nanosecond; a thousand of them must not add up."""
    third = {"hbm": 2 / 3}
    jobs: list[tuple[int, int, Need]] = [(0, 100_000, third)]
    jobs += [(begin, 10, third) for begin in range(0, 50_000, 50)]  # together 4/3: three quarters of speed
    ends = ends_of(jobs)
    assert ends[1] == 14  # 40/3
    assert ends[0] == ceil(100_000 + 1000 * (40 / 3) / 4)


# ---------------------------------------------------------------- weights


@pytest.mark.parametrize(
    ("spine", "counts"), [(1e9, {"nic": 248 / 448, "spine": 1.0}), (2e9, {"nic": 1.0, "spine": 448 / 248})]
)
def test_a_collective_counts_once_on_the_link_that_it_fills_most(
    spine: float, counts: dict[str, float]
) -> None:
    flows = [Flows(1.0, {"nic": 24.0}), Flows(1.0, {"nic": 224.0, "spine": 448.0})]
    weights = PerCollective().weights(flows, {"nic": 1e9, "spine": spine})
    for link, most in counts.items():
        pairs = zip(weights, flows, strict=True)
        told = sum(weight * flow.crossing.get(link, 0.0) for weight, flow in pairs)
        assert told * (spine / 1e9) == pytest.approx(most)  # by time, in that of one on the fastest link


def test_flows_that_share_links_weigh_the_same_and_those_that_share_none_are_weighed_apart() -> None:
    near, far, both = (
        Flows(1.0, {"near": 7.0}),
        Flows(1.0, {"far": 56.0}),
        Flows(1.0, {"near": 1.0, "far": 8.0}),
    )
    rates = {"near": 4e9, "far": 1e9}
    assert PerCollective().weights([near, far], rates) == pytest.approx([1 / 7, 1 / (4 * 56)])
    for order in permutations((near, far, both)):
        assert PerCollective().weights(order, rates) == pytest.approx([1 / (4 * 64)] * 3)


def test_per_flow_every_flow_counts_once() -> None:
    assert PerFlow().weights([Flows(1.0, {"near": 7.0}), Flows(9.0, {"far": 56.0})], {}) == [1.0, 1.0]


# ---------------------------------------------------------------- the agenda


def test_all_that_falls_on_one_moment_costs_one_event_and_comes_in_order() -> None:
    env = simpy.Environment()
    agenda, done = Agenda(env), []

    def later(what: str) -> None:
        done.append((env.now, what))
        if what == "b":
            agenda.at(7, later, "again")

    for moment, what in ((7, "a"), (3, "c"), (7, "b")):
        agenda.at(moment, later, what)
    env.run()
    assert done == [(3, "c"), (7, "a"), (7, "b"), (7, "again")]
    assert agenda.events == 3
