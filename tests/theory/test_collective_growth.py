"""Growth laws against the closed forms that they stand for."""

import numpy as np
import pytest

from simulator.costs.curves import AlphaBeta, Curve, LogLog, Measured, Scale, Segments, SizeCurve
from simulator.costs.growth import Cheapest, Doubling, HostRing, RemotePeers, law
from simulator.errors import InputError

SIZES = np.geomspace(1e3, 1e9, 7)
STEP, RATE = 5e-6, 2e10  # seconds per message, bytes/s


def at(ranks: int, nodes: int, curve: SizeCurve) -> Measured:
    return Measured(Scale(ranks, nodes), curve, SIZES[0], SIZES[-1])


def direct(ranks: int, nodes: int) -> Measured:
    """All-to-all: a start-up and a message of size/ranks for each peer on another host."""
    peers = ranks - ranks // nodes
    return at(ranks, nodes, AlphaBeta(peers * STEP, RATE * ranks / peers))


def ring(ranks: int, nodes: int) -> Measured:
    """All-gather: each host is entered once, and everything passes each network card once."""
    return at(ranks, nodes, AlphaBeta(nodes * STEP, RATE))


@pytest.mark.parametrize(("ranks", "nodes"), [(16, 4), (1024, 256), (40, 10), (30, 10)])
def test_a_direct_exchange_known_at_one_scale_is_known_at_all(ranks: int, nodes: int) -> None:
    predicted = Curve("all_to_all", (direct(8, 2),), RemotePeers()).seconds(SIZES, ranks, nodes)
    assert predicted == pytest.approx(direct(ranks, nodes).curve.seconds(SIZES), rel=1e-12)


@pytest.mark.parametrize(("ranks", "nodes"), [(16, 4), (2048, 512)])
def test_a_ring_known_at_one_scale_is_known_at_all(ranks: int, nodes: int) -> None:
    predicted = Curve("all_gather", (ring(8, 2),), HostRing()).seconds(SIZES, ranks, nodes)
    per_host = ring(8, 2).curve.seconds(SIZES * 8 / ranks) / 2
    assert predicted == pytest.approx(nodes * per_host, rel=1e-12)
    assert predicted == pytest.approx(ring(ranks, nodes).curve.seconds(SIZES), rel=1e-12)


def test_start_up_grows_with_the_peers_in_an_all_to_all_and_with_the_hosts_in_an_all_gather() -> None:
    tiny = np.array([1.0])
    exchange = Curve("all_to_all", (direct(16, 2),), law("all_to_all"))
    assert exchange.seconds(tiny, 128, 16) / exchange.seconds(tiny, 16, 2) == pytest.approx(120 / 8, rel=1e-3)
    gather = Curve("all_gather", (ring(16, 2),), law("all_gather"))
    assert gather.seconds(tiny, 128, 16) / gather.seconds(tiny, 16, 2) == pytest.approx(8, rel=1e-3)


def tree(ranks: int, nodes: int) -> Measured:
    """A tree: what a host costs inside, and as much again for each doubling of the hosts."""
    depth = np.log2(nodes)
    return at(ranks, nodes, AlphaBeta(STEP * (1 + depth), RATE / (1 + depth)))


@pytest.mark.parametrize("nodes", [8, 64, 512])
def test_two_scales_of_a_tree_give_every_other(nodes: int) -> None:
    predicted = Curve("all_reduce", (tree(16, 4), tree(64, 16)), Doubling()).seconds(SIZES, 4 * nodes, nodes)
    expected = tree(4 * nodes, nodes).curve.seconds(SIZES)
    assert predicted == pytest.approx(expected, rel=1e-12)


def test_the_start_up_of_a_tree_known_at_one_scale_grows_with_log2_of_the_nodes() -> None:
    start = Measured(Scale(8, 2), AlphaBeta(STEP, 1e30), 1.0, 1e9)
    predicted = Curve("all_reduce", (start,), Doubling()).seconds(np.array([1.0]), 128, 32)
    assert predicted == pytest.approx(STEP * (1 + 5) / (1 + 1))


def test_what_streams_through_a_tree_grows_as_the_bytes_that_leave_a_host() -> None:
    streaming = Measured(Scale(8, 2), AlphaBeta(0.0, RATE), 1e-9, 1e9)
    predicted = Curve("all_reduce", (streaming,), Doubling()).seconds(1e9, 64, 16)
    assert predicted == pytest.approx((15 / 16) / (1 / 2) * 1e9 / RATE, rel=1e-9)


def test_a_tree_never_gets_faster_beyond_the_last_scale() -> None:
    slow, fast = at(8, 2, AlphaBeta(9e-5, RATE)), at(16, 4, AlphaBeta(3e-5, RATE))
    curve = Curve("all_reduce", (slow, fast), Doubling())
    assert curve.seconds(SIZES, 64, 16) == pytest.approx(fast.curve.seconds(SIZES))


def test_ranks_of_a_host_share_the_work_of_a_tree() -> None:
    curve = Curve("all_reduce", (tree(16, 4), tree(64, 16)), Doubling())
    assert curve.seconds(8e6, 128, 16) == pytest.approx(curve.seconds(4e6, 64, 16))


def test_the_cheapest_law_is_never_above_either() -> None:
    known = (tree(16, 4), tree(64, 16))
    laws = Doubling(), HostRing(from_below=True)
    both = Curve("all_reduce", known, Cheapest(laws)).seconds(SIZES, 1024, 256)
    each = [Curve("all_reduce", known, one).seconds(SIZES, 1024, 256) for one in laws]
    assert np.array_equal(both, np.minimum(*each))


def test_bandwidth_decays_with_a_power_of_the_nodes_and_start_up_does_not() -> None:
    known = (Measured(Scale(8, 2), AlphaBeta(STEP, RATE), 1.0, 1e9),)
    plain, decayed = (Curve("all_to_all", known, RemotePeers(decay)) for decay in (0.0, 0.1))
    large = decayed.seconds(1e12, 512, 128) / plain.seconds(1e12, 512, 128)
    assert large == pytest.approx(64**0.1, rel=1e-3)
    assert decayed.seconds(1.0, 512, 128) == pytest.approx(plain.seconds(1.0, 512, 128), rel=1e-6)


def test_between_two_tested_scales_time_per_step_is_interpolated() -> None:
    known = (at(8, 2, AlphaBeta(2 * STEP, 1e30)), at(128, 32, AlphaBeta(4 * 32 * STEP, 1e30)))
    middle = Curve("all_gather", known, HostRing()).seconds(1.0, 32, 8)
    assert middle == pytest.approx(8 * 2 * STEP)  # per host: 1 and 4 steps, geometric mean 2


def test_within_one_host_the_steps_are_the_peers() -> None:
    known = (at(4, 1, AlphaBeta(3 * STEP, 1e30)),)
    assert Curve("all_to_all", known, RemotePeers()).seconds(1.0, 8, 1) == pytest.approx(7 * STEP)


@pytest.mark.parametrize("operation", ["all_to_all", "all_gather", "all_reduce", "broadcast"])
def test_a_network_that_was_never_tested_is_not_guessed(operation: str) -> None:
    inside = Curve(operation, (at(8, 1, AlphaBeta(STEP, RATE)),), law(operation))
    with pytest.raises(InputError, match="inside hosts only"):
        inside.seconds(1e6, 16, 2)


@pytest.mark.parametrize(
    "operation", ["all_to_all", "all_gather", "all_reduce", "reduce_scatter", "broadcast"]
)
@pytest.mark.parametrize("unit", [2.0, 1024.0])
def test_stretching_every_measured_time_stretches_every_prediction(operation: str, unit: float) -> None:
    def curve(factor: float) -> Curve:
        shapes = [
            LogLog((1e3, 1e6, 1e9), tuple(factor * t for t in times))
            for times in ((2e-5, 9e-5, 5e-2), (3e-5, 8e-5, 6e-2))
        ]
        return Curve(operation, (at(8, 2, shapes[0]), at(32, 8, shapes[1])), law(operation, 0.1))

    for ranks, nodes in ((16, 4), (256, 64)):
        once, stretched = (curve(factor).seconds(SIZES, ranks, nodes) for factor in (1.0, unit))
        assert stretched == pytest.approx(unit * once, rel=1e-12)


def test_segments_grow_like_the_lines_they_are_made_of() -> None:
    two = Segments((AlphaBeta(4 * STEP, 1e8), AlphaBeta(40 * STEP, RATE)))
    predicted = Curve("all_to_all", (at(8, 2, two),), RemotePeers()).seconds(SIZES, 64, 16)
    expected = 15 * two.seconds(SIZES / 8)  # 60 remote peers for 4, an eighth of the message
    assert predicted == pytest.approx(expected, rel=1e-12)
