"""Collectives that meet on the network, by hand: both laws of weights, start-ups, phases, and being alone."""

from collections.abc import Callable, Iterator, Sequence
from math import ceil

import pytest
import simpy

from simulator.costs import Flows, Phase
from simulator.engine.contention import Contention
from simulator.engine.needs import Needs
from simulator.engine.network import SharedNetwork
from simulator.engine.sharing import Felt
from simulator.engine.traffic import Traffic
from simulator.engine.weights import PerCollective, PerFlow, WeightRule

RATES = {"near": 4e9, "far": 1e9}  # bytes/s: 4 and 1 byte per ns

ALL_TO_ALL = (Phase(0.0, (Flows(100.0, {"far": 7.0}),)),)  # 700 ns alone
RING = (Phase(0.0, (Flows(350.0, {"far": 1.0}),)),)  # 350 ns alone
INSIDE = (Phase(0.0, (Flows(1400.0, {"near": 1.0}),)),)  # 350 ns alone, elsewhere
LATE = (Phase(200e-9, (Flows(350.0, {"far": 1.0}),)),)  # 550 ns alone
TWICE = (*RING, Phase(50e-9, (Flows(50.0, {"far": 1.0}),)))  # 350, 50 and 50 ns
BOTH_WAYS = (Phase(0.0, (Flows(300.0, {"near": 4.0}), Flows(100.0, {"far": 3.0}))),)  # 300 ns on either


def nominal(phases: Sequence[Phase]) -> int:
    """Busiest link of each phase."""
    total = 0.0
    for phase in phases:
        links = {link for flow in phase.flows for link in flow.crossing}
        load = {link: sum(f.bytes * f.crossing.get(link, 0.0) for f in phase.flows) for link in links}
        total += phase.seconds * 1e9 + max(load[link] / RATES[link] * 1e9 for link in links)
    return round(total)


def ends(rule: WeightRule, *collectives: tuple[int, tuple[Phase, ...]]) -> list[int]:
    """When each collective ends, given when it begins, ns."""
    env, found = simpy.Environment(), {}
    shared = Contention(Needs([], []), [phases for _, phases in collectives], RATES, rule)
    network = SharedNetwork(env, shared)

    def one(number: int, begin: int, phases: tuple[Phase, ...]) -> object:
        yield env.timeout(begin)
        yield from network.carry(number, nominal(phases))
        found[number] = int(env.now)

    for number, (begin, phases) in enumerate(collectives):
        env.process(one(number, begin, phases))  # type: ignore[arg-type]
    env.run()
    return [found[number] for number in range(len(collectives))]


class Deaf:
    """A host on which flows change nothing."""

    ranks = ()
    holds_up = False

    def minds(self, felt: Felt) -> bool:
        return False

    def catch_up(self) -> Callable[[], None]:
        raise AssertionError("nothing has changed here")


def test_a_phase_in_which_nothing_is_sent_ends_at_once_whoever_else_sends() -> None:
    env, felt = simpy.Environment(), Needs([{}] * 2, [False] * 2, flows=[{"hbm": 0.1}] * 2)
    nothing = Phase(0.0, (Flows(0.0, {"far": 1.0}),))
    network = SharedNetwork(env, Contention(felt, [RING, (nothing, *RING)], RATES), Traffic([Deaf()]))
    for node in (0, 1):
        env.process(network.carry(node, 350))
    env.run()
    assert env.now == 700


def test_a_collective_may_begin_at_the_nanosecond_at_which_others_under_way_end_one_of_theirs() -> None:
    env, felt = simpy.Environment(), Needs([{}] * 3, [False] * 3, flows=[{"hbm": 0.1}] * 3)
    network, found = SharedNetwork(env, Contention(felt, [RING] * 3, RATES), Traffic([Deaf()])), []

    def one(node: int, begin: int) -> Iterator[object]:
        yield env.timeout(begin)
        yield from network.carry(node, 350)
        found.append(int(env.now))

    for node, begin in enumerate((0, 100, 600)):  # the first is through at 600, and the third begins
        env.process(one(node, begin))  # type: ignore[arg-type]
    env.run()
    assert found == [600, 800, 1050]


RULES = pytest.mark.parametrize("rule", [PerCollective(), PerFlow()], ids=["per_collective", "per_flow"])


@RULES
@pytest.mark.parametrize("phases", [ALL_TO_ALL, RING, INSIDE, LATE, TWICE, BOTH_WAYS])
def test_alone_a_collective_takes_its_nominal_time(rule: WeightRule, phases: tuple[Phase, ...]) -> None:
    assert ends(rule, (17, phases)) == [17 + nominal(phases)]


@RULES
def test_collectives_on_different_links_or_at_different_times_do_not_notice_each_other(
    rule: WeightRule,
) -> None:
    assert ends(rule, (0, ALL_TO_ALL), (0, INSIDE)) == [700, 350]
    assert ends(rule, (0, RING), (350, RING), (700, ALL_TO_ALL)) == [350, 700, 1400]
    assert ends(rule, (0, RING), (150, LATE)) == [350, 700]  # while one starts up, the other sends


def test_per_collective_an_all_to_all_and_a_ring_get_a_half_each() -> None:
    """Both move 350 bytes in 700 ns; the all-to-all has 350 left and the link to itself."""
    assert ends(PerCollective(), (0, ALL_TO_ALL), (0, RING)) == [1050, 700]
    assert ends(PerCollective(), (0, ALL_TO_ALL), (300, RING)) == [1050, 1000]


def test_per_flow_a_ring_gets_one_part_in_eight_beside_an_all_to_all_of_seven_flows() -> None:
    """The all-to-all moves 700 bytes in 800 ns, the ring 100 of its 350; the link is as busy as before."""
    assert ends(PerFlow(), (0, ALL_TO_ALL), (0, RING)) == [800, 1050]
    # 300 bytes alone, then 400 at seven eighths of the link
    assert ends(PerFlow(), (0, ALL_TO_ALL), (300, RING)) == [300 + ceil(400 / (7 / 8)), 1050]


@RULES
def test_the_last_of_those_that_share_one_link_ends_when_its_bytes_are_through(rule: WeightRule) -> None:
    assert max(ends(rule, (0, ALL_TO_ALL), (100, RING), (200, RING))) == 1400


def test_three_rings_get_a_third_each() -> None:
    assert ends(PerFlow(), (0, RING), (0, RING), (0, RING)) == [1050, 1050, 1050]


@RULES
def test_a_phase_that_meets_others_delays_the_phases_after_it(rule: WeightRule) -> None:
    """Two rings until 700, then 50 ns of start-up and 50 ns of sending."""
    assert ends(rule, (0, TWICE), (0, RING)) == [800, 700]


@RULES
def test_near_and_far_flows_of_one_collective_meet_others_on_their_own_links(rule: WeightRule) -> None:
    """Four near flows beside a near ring, three far ones beside nobody: the near ones end last."""
    both, inside = ends(rule, (0, BOTH_WAYS), (0, INSIDE))
    if isinstance(rule, PerCollective):
        assert (both, inside) == (600, 650)  # 1,200 bytes at 2 per ns; the ring has 200 left
    else:
        assert (both, inside) == (375, 650)  # 1,200 bytes at 16/5 per ns


@RULES
def test_nobody_ends_before_its_nominal_time(rule: WeightRule) -> None:
    together = [(0, ALL_TO_ALL), (40, RING), (40, LATE), (90, TWICE), (333, BOTH_WAYS), (600, INSIDE)]
    for (begin, phases), end in zip(together, ends(rule, *together), strict=True):
        assert end >= begin + nominal(phases)
