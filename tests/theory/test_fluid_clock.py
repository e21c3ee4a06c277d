"""The state machine on cases that can be worked out by hand."""

import numpy as np
import pytest

from simulator.engine.fluid import FlowClasses, Fluid, bottleneck_seconds, finish_times, fold, solve_rates

GB = 1e9


def on_one_link(*sizes: float, **more: object) -> FlowClasses:
    return FlowClasses.over([[0]] * len(sizes), sizes, **more)


def test_two_flows_share_a_link_by_weight() -> None:
    rates = solve_rates(np.array([4 * GB]), on_one_link(1, 1, weight=[1.0, 3.0]))
    assert rates.tolist() == [1 * GB, 3 * GB]


def test_what_a_capped_flow_leaves_goes_to_the_others() -> None:
    rates = solve_rates(np.array([9 * GB]), on_one_link(1, 1, 1, cap=[1 * GB, np.inf, np.inf]))
    assert rates.tolist() == [1 * GB, 4 * GB, 4 * GB]


def test_a_class_of_ten_flows_takes_ten_shares() -> None:
    flows = FlowClasses.of_rows([{0: 10.0}, {0: 1.0}], bytes=1.0)
    assert solve_rates(np.array([11 * GB]), flows).tolist() == [1 * GB, 1 * GB]


def test_the_textbook_chain_of_three_links() -> None:
    """One long flow over links of 10, 20 and 30, and one short flow on each."""
    flows = FlowClasses.over([[0, 1, 2], [0, -1, -1], [1, -1, -1], [2, -1, -1]], 1.0)
    assert solve_rates(np.array([10.0, 20.0, 30.0]), flows).tolist() == [5.0, 5.0, 15.0, 25.0]


def test_an_end_within_a_nanosecond_shows_at_the_next_one_and_frees_the_link_at_once() -> None:
    fluid = Fluid(np.array([1 * GB]))
    fluid.start(0, on_one_link(1.7, 3.0), "pair")  # 3.4 ns at half speed, then 1.3 bytes at full speed
    assert fluid.next_finish() == 4
    (first,) = fluid.advance(4)
    assert (first.classes.tolist(), first.times_ns.tolist(), first.last) == ([0], [4], False)
    assert fluid.next_finish() == 5  # at 4.7, where it would be 6 had the link been freed at 4
    (second,) = fluid.advance(5)
    assert (second.classes.tolist(), second.times_ns.tolist(), second.last) == ([1], [5], True)
    assert fluid.next_finish() is None


def test_a_second_collective_slows_the_first_from_its_start_on() -> None:
    fluid = Fluid(np.array([1 * GB]))
    fluid.start(0, on_one_link(100.0), "a")
    fluid.start(50, on_one_link(100.0), "b")
    assert fluid.rates("a").tolist() == [0.5 * GB]
    assert fluid.next_finish() == 150
    assert [finished.tag for finished in fluid.advance(150)] == ["a"]
    assert fluid.rates("b").tolist() == [1 * GB]
    assert fluid.next_finish() == 200


def test_what_ended_before_a_start_is_told_by_the_next_advance() -> None:
    fluid = Fluid(np.array([1 * GB]))
    fluid.start(0, on_one_link(10.0), "a")
    fluid.start(30, on_one_link(10.0), "b")
    assert fluid.next_finish() == 30
    (finished,) = fluid.advance(30)
    assert (finished.tag, finished.times_ns.tolist()) == ("a", [10])


def test_nothing_to_send_ends_at_once() -> None:
    fluid = Fluid(np.array([1 * GB]))
    fluid.start(7, on_one_link(0.0, 5.0), "a")
    assert fluid.next_finish() == 7
    (finished,) = fluid.advance(7)
    assert (finished.classes.tolist(), finished.times_ns.tolist()) == ([0], [7])
    assert fluid.next_finish() == 12


def test_a_flow_without_link_and_cap_takes_no_time() -> None:
    flows = FlowClasses.over([[-1], [0]], [5.0, 5.0])
    assert solve_rates(np.array([1 * GB]), flows).tolist() == [np.inf, 1 * GB]
    assert finish_times(np.array([1 * GB]), flows).tolist() == [0.0, 5e-9]


def test_a_new_cap_counts_from_the_moment_it_is_given() -> None:
    fluid = Fluid(np.array([1 * GB]))
    fluid.start(0, on_one_link(100.0, 400.0), "a")
    fluid.cap(100, "a", np.array([0.25 * GB, np.inf]))
    assert fluid.rates("a").tolist() == [0.25 * GB, 0.75 * GB]
    assert fluid.next_finish() == 300  # 50 bytes left at a quarter of a byte per ns
    fluid.advance(300)
    assert fluid.next_finish() == 500


def test_ends_are_told_ahead_with_ticks_and_stand_when_a_collective_comes_between() -> None:
    fluid = Fluid(np.array([2 * GB, 1 * GB]), tick=0.01)
    flows = FlowClasses.over([[0], [0], [1]], [995.0, 1005.0, 1e4])
    fluid.start(0, flows, "a")
    assert fluid.next_finish() == 995
    (told,) = fluid.advance(995)
    assert (told.classes.tolist(), told.times_ns.tolist()) == ([0, 1], [995, 1005])
    fluid.start(998, FlowClasses.over([[0]], [2000.0]), "b")
    later = [finished for now in range(1000, 30_000, 500) for finished in fluid.advance(now)]
    assert [(finished.tag, finished.classes.tolist()) for finished in later] == [("b", [0]), ("a", [2])]
    assert later[0].times_ns[0] == 2002  # 2007 bytes of both through the link from 998 on


def test_many_flows_with_ticks_need_few_wake_ups() -> None:
    size = np.random.default_rng(1).uniform(0.5, 1.5, 3000) * 1e6
    fluid, wakes, ends = Fluid(np.array([10 * GB]), tick=0.01), 0, 0
    fluid.start(0, on_one_link(*size), "a")
    while (now := fluid.next_finish()) is not None:
        ends += sum(len(finished.classes) for finished in fluid.advance(now))
        wakes += 1
    assert ends == 3000
    assert wakes < 250


def test_a_tag_is_free_again_when_its_collective_has_ended() -> None:
    fluid = Fluid(np.array([1 * GB]))
    fluid.start(0, on_one_link(10.0), "a")
    with pytest.raises(ValueError, match="'a' is under way"):
        fluid.start(5, on_one_link(10.0), "a")
    fluid.advance(10)
    fluid.start(10, on_one_link(10.0), "a")
    assert fluid.next_finish() == 20


def test_a_refused_start_leaves_the_others_as_they_were() -> None:
    fluid = Fluid(np.array([1 * GB]))
    fluid.start(0, on_one_link(10.0, 100.0), "a")
    for refused, tag in ((on_one_link(1.0), "a"), (FlowClasses.over([[1]], 1.0), "b")):
        with pytest.raises(ValueError, match=r"under way|link 1"):
            fluid.start(30, refused, tag)
    fluid.advance(30)
    assert fluid.next_finish() == 110


def test_the_clock_of_the_network_does_not_run_backwards() -> None:
    fluid = Fluid(np.array([1 * GB]))
    fluid.start(10, on_one_link(10.0), "a")
    with pytest.raises(ValueError, match="cannot go back"):
        fluid.advance(9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bytes": [-1.0]}, "bytes"),
        ({"weight": [0.0]}, "weight"),
        ({"cap": [0.0]}, "cap"),
        ({"coefficient": [-1.0]}, "coefficient"),
        ({"coefficient": [1.0, 1.0]}, "coefficients"),
        ({"starts": [0, 2]}, "starts"),
        ({"link": [-1]}, "link"),
    ],
)
def test_impossible_flows_are_refused(change: dict, words: str) -> None:
    sound = {
        "starts": [0, 1],
        "link": [0],
        "coefficient": [1.0],
        "bytes": [1.0],
        "weight": [1.0],
        "cap": [1.0],
    }
    FlowClasses(**sound)
    with pytest.raises(ValueError, match=words):
        FlowClasses(**{**sound, **change})


@pytest.mark.parametrize("capacity", [[0.0], [np.inf], [np.nan]])
def test_a_link_without_a_possible_speed_is_refused(capacity: list[float]) -> None:
    for question in (solve_rates, finish_times, fold):
        with pytest.raises(ValueError, match="capacities"):
            question(np.array(capacity), on_one_link(1.0))


def test_a_link_that_does_not_exist_is_refused() -> None:
    for question in (solve_rates, fold, bottleneck_seconds):
        with pytest.raises(ValueError, match="link 1"):
            question(np.array([1.0]), FlowClasses.over([[1]], 1.0))


@pytest.mark.parametrize("tick", [-0.01, 0.6, np.nan])
def test_a_tick_that_is_no_small_share_is_refused(tick: float) -> None:
    with pytest.raises(ValueError, match="tick"):
        Fluid(np.array([1.0]), tick=tick)
    with pytest.raises(ValueError, match="tick"):
        finish_times(np.array([1.0]), on_one_link(1.0), tick=tick)
