"""What must hold for any flows on any links."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.engine.fluid import (
    CompiledSolver,
    FlowClasses,
    Fluid,
    NumpySolver,
    bottleneck_seconds,
    finish_times,
    fold,
    numba_is_installed,
    solve_rates,
)

needs_numba = pytest.mark.skipif(not numba_is_installed(), reason="the extra `fast` is not installed")
ratios = st.floats(0.01, 100.0)
few = st.sampled_from([1.0, 2.0, 3.0])


@st.composite
def problems(draw: st.DrawFn, number: st.SearchStrategy[float] = ratios) -> tuple[np.ndarray, FlowClasses]:
    """Links of any capacity, and flows over any of them, some capped; at least one link or a cap each."""
    links, flows = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    capacity = np.array([draw(number) for _ in range(links)]) * 1e9
    rows = [
        draw(st.dictionaries(st.integers(0, links - 1), number, min_size=1, max_size=4)) for _ in range(flows)
    ]
    size, weight = (np.array([draw(number) for _ in range(flows)]) for _ in range(2))
    cap = np.array([draw(number | st.just(np.inf)) for _ in range(flows)]) * 1e9
    return capacity, FlowClasses.of_rows(rows, size * 1e6, weight, cap)


def load_of(capacity: np.ndarray, flows: FlowClasses, per_flow: np.ndarray) -> np.ndarray:
    return np.bincount(flows.link, flows.coefficient * per_flow[flows.owner()], len(capacity))


@given(problems())
def test_every_flow_has_a_full_link_on_which_none_is_faster_or_meets_its_cap(
    problem: tuple[np.ndarray, FlowClasses],
) -> None:
    capacity, flows = problem
    rate = solve_rates(capacity, flows)
    load = load_of(capacity, flows, rate)
    assert (load <= capacity * (1 + 1e-9)).all()
    assert (rate <= flows.cap * (1 + 1e-9)).all()
    fastest = np.zeros(len(capacity))
    np.maximum.at(fastest, flows.link, (rate / flows.weight)[flows.owner()])
    full = load >= capacity * (1 - 1e-9)
    bounds = full[flows.link] & ((rate / flows.weight)[flows.owner()] >= fastest[flows.link] * (1 - 1e-9))
    bounded = np.bincount(flows.owner(), bounds, len(flows)) > 0
    assert (bounded | (rate >= flows.cap * (1 - 1e-9))).all()


@needs_numba
@given(problems())
def test_both_solvers_give_the_same_rates_and_ends(problem: tuple[np.ndarray, FlowClasses]) -> None:
    for question in (solve_rates, finish_times):
        plain, compiled = (question(*problem, solver=each) for each in (NumpySolver(), CompiledSolver()))
        np.testing.assert_allclose(plain, compiled, rtol=1e-9)


@needs_numba
@given(problems())
def test_both_solvers_give_the_same_ends_with_ticks(problem: tuple[np.ndarray, FlowClasses]) -> None:
    plain, compiled = (finish_times(*problem, 0.01, each) for each in (NumpySolver(), CompiledSolver()))
    np.testing.assert_allclose(plain, compiled, rtol=1e-9)


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_the_flows_does_not_matter(problem: tuple[np.ndarray, FlowClasses], random) -> None:
    capacity, flows = problem
    order = np.array(random.sample(range(len(flows)), len(flows)))
    shuffled = finish_times(capacity, flows.take(order))
    np.testing.assert_allclose(shuffled, finish_times(capacity, flows)[order], rtol=1e-9)


@given(problems(), st.floats(0.1, 10.0))
def test_links_and_caps_of_half_the_speed_take_twice_the_time(
    problem: tuple[np.ndarray, FlowClasses], factor: float
) -> None:
    capacity, flows = problem
    per_flow = (flows.bytes, flows.weight, flows.cap * factor)
    faster = FlowClasses(flows.starts, flows.link, flows.coefficient, *per_flow)
    np.testing.assert_allclose(
        finish_times(capacity * factor, faster) * factor, finish_times(capacity, flows), rtol=1e-9
    )


@given(problems())
def test_nothing_ends_before_its_busiest_link_could_be_done(problem: tuple[np.ndarray, FlowClasses]) -> None:
    assert finish_times(*problem).max() >= bottleneck_seconds(*problem) * (1 - 1e-12)


def test_a_link_without_flows_is_not_taken_for_one_with_flows() -> None:
    capacity = np.full(3, 2e9)
    flows = FlowClasses.over([[1]], bytes=1e6)
    folded = fold(capacity, flows)
    assert finish_times(folded.capacity, folded.flows)[folded.flow_class] == [5e-4]


@given(problems(few))
def test_folding_changes_no_end(problem: tuple[np.ndarray, FlowClasses]) -> None:
    folded = fold(*problem)
    in_classes = finish_times(folded.capacity, folded.flows)[folded.flow_class]
    np.testing.assert_allclose(in_classes, finish_times(*problem), rtol=1e-12)


@given(problems(few))
def test_two_copies_of_a_network_fold_into_one(problem: tuple[np.ndarray, FlowClasses]) -> None:
    capacity, flows = problem
    twice = FlowClasses(
        np.concatenate((flows.starts, flows.starts[1:] + flows.starts[-1])),
        np.concatenate((flows.link, flows.link + len(capacity))),
        *(np.tile(each, 2) for each in (flows.coefficient, flows.bytes, flows.weight, flows.cap)),
    )
    one, two = fold(capacity, flows), fold(np.tile(capacity, 2), twice)
    assert len(two.flows) == len(one.flows)
    assert (two.flow_class == np.tile(one.flow_class, 2)).all()


def ends_of(fluid: Fluid, starts: list[tuple[int, FlowClasses]], looks: list[int]) -> list[np.ndarray]:
    """Drive `fluid` to the end, looking in at extra moments; check how ends are told."""
    ends = [np.full(len(flows), -1) for _, flows in starts]
    coming = sorted([(at, tag) for tag, (at, _) in enumerate(starts)] + [(at, -1) for at in looks])
    while coming or fluid.next_finish() is not None:
        wake, done = fluid.next_finish(), []
        if coming and (wake is None or coming[0][0] <= wake):
            at, tag = coming.pop(0)
            if tag < 0:
                done = fluid.advance(at)
            else:
                fluid.start(at, starts[tag][1], tag)
        else:
            at, done = wake, fluid.advance(wake)
        for finished in done:
            assert (finished.times_ns >= at).all() and (np.diff(finished.times_ns) >= 0).all()
            assert (ends[finished.tag][finished.classes] == -1).all()
            ends[finished.tag][finished.classes] = finished.times_ns
            assert finished.last == (ends[finished.tag] >= 0).all()
    return ends


moments = st.integers(0, 3_000_000)


@given(problems())
def test_alone_on_the_clock_a_class_ends_at_the_first_whole_nanosecond_after_its_end(
    problem: tuple[np.ndarray, FlowClasses],
) -> None:
    (on_clock,) = ends_of(Fluid(problem[0]), [(5, problem[1])], [])
    real = finish_times(*problem) * 1e9 + 5
    assert (on_clock >= real - 1e-5).all() and (on_clock <= real + 1 + 1e-5).all()


@settings(max_examples=examples(60))
@given(problems(), st.lists(moments, min_size=1, max_size=4), st.lists(moments, max_size=4))
def test_looking_at_the_network_does_not_change_it(
    problem: tuple[np.ndarray, FlowClasses], starts: list[int], looks: list[int]
) -> None:
    capacity, flows = problem
    collectives = [(at, flows) for at in starts]
    watched = ends_of(Fluid(capacity), collectives, looks)
    alone = ends_of(Fluid(capacity), collectives, [])
    for found, right in zip(watched, alone, strict=True):
        assert (found == right).all()


@settings(max_examples=examples(60))
@given(problems(), st.lists(moments, min_size=1, max_size=4))
def test_with_ticks_each_end_is_told_once_and_not_too_late(
    problem: tuple[np.ndarray, FlowClasses], starts: list[int]
) -> None:
    ends = ends_of(Fluid(problem[0], tick=0.01), [(at, problem[1]) for at in starts], [])
    assert all((end >= at).all() for end, at in zip(ends, starts, strict=True))


@settings(max_examples=examples(60))
@given(problems(), st.lists(moments, min_size=1, max_size=4))
def test_in_all_the_busiest_link_is_never_faster_than_it_can(
    problem: tuple[np.ndarray, FlowClasses], starts: list[int]
) -> None:
    capacity, flows = problem
    ends = ends_of(Fluid(capacity), [(at, flows) for at in starts], [])
    needed = (load_of(capacity, flows, flows.bytes) / capacity).max() * len(starts)
    assert max(int(end.max()) for end in ends) - min(starts) >= needed * 1e9 * (1 - 1e-9)
