"""Routes against closed forms, and folded routes against routes of every pair."""

import time
from dataclasses import replace

import numpy as np
import pytest

from simulator.hardware import Torus, TwoLevel, catalog
from simulator.hardware.fabric import Link
from simulator.hardware.graphs import (
    FatTree,
    FoldedRoutes,
    FullMesh,
    Group,
    Nics,
    Pcie,
    Rails,
    Switched,
    Tier,
    TorusWiring,
    Wiring,
    build,
    cut_bandwidth,
    fold,
    oversubscribed,
    route,
    wiring,
)
from simulator.hardware.graphs.inside import Inside
from simulator.hardware.graphs.networks import FLAT, Network

FAST, PORT, TRUNK = Link(300e9, 1e-6), Link(25e9, 2e-6, 0.9), Link(50e9, 3e-6)
LANE, MEMORY = Link(16e9, 1e-7), Link(200e9, 4e-7)
TWO, THREE = FatTree(2, Tier(3, TRUNK)), FatTree(2, Tier(2, TRUNK), 3, Tier(2, TRUNK))


def one(hosts: int, per_host: int, inside: Inside, nics: int, network: Network = FLAT) -> Wiring:
    return Wiring((Group(hosts, per_host, inside, Nics(PORT, nics)),), network)


def wide(domain_hosts: int, network: Network = FLAT) -> Wiring:
    return Wiring((Group(10, 4, Switched(FAST), Nics(PORT, 4), domain_hosts),), network)


def mixed(network: Network) -> Wiring:
    gpus = Group(5, 4, Switched(FAST), Nics(PORT, 4), name="gpu")
    npus = Group(3, 8, FullMesh(TRUNK), Nics(FAST, 2), name="npu")
    return Wiring((gpus, npus), network)


PLANS = {
    "a full mesh": Wiring((Group(1, 8, FullMesh(FAST)),)),
    "a switch": Wiring((Group(1, 8, Switched(FAST)),)),
    "PCIe peers": Wiring((Group(1, 8, Pcie(LANE, 4, LANE)),)),
    "PCIe through memory": Wiring((Group(1, 8, Pcie(LANE, 4, LANE, MEMORY)),)),
    "PCIe peers and NICs": one(4, 8, Pcie(LANE, 4, LANE), 2),
    "PCIe through memory and NICs": one(4, 8, Pcie(LANE, 4, LANE, MEMORY), 2, TWO),
    "a NIC per host": one(4, 8, Switched(FAST), 1),
    "two NICs per accelerator": one(4, 4, Switched(FAST), 8),
    "two levels": one(8, 4, FullMesh(FAST), 4, TWO),
    "two levels, last leaf smaller": one(7, 4, FullMesh(FAST), 4, TWO),
    "three levels": one(12, 2, FullMesh(FAST), 2, THREE),
    "three levels, last pod and leaf smaller": one(17, 2, FullMesh(FAST), 1, THREE),
    "rails": one(8, 4, Switched(FAST), 4, Rails(4, Tier(2, TRUNK))),
    "rails with two accelerators each": one(8, 8, Switched(FAST), 4, Rails(4, Tier(2, TRUNK))),
    "rails below PCIe": one(8, 8, Pcie(LANE, 4, LANE), 4, Rails(4, Tier(2, TRUNK))),
    "rails with relays": one(8, 4, Switched(FAST), 4, Rails(4, Tier(2, TRUNK), relays=True)),
    "rails with relays in a mesh": one(6, 4, FullMesh(FAST), 4, Rails(4, Tier(2, TRUNK), relays=True)),
    "rails without spines": one(4, 4, FullMesh(FAST), 4, Rails(4, None, relays=True)),
    "domains of three hosts, one left": wide(3),
    "domains in leaves": wide(3, FatTree(6, Tier(2, TRUNK))),
    "domains on rails with relays": wide(2, Rails(4, Tier(2, TRUNK), relays=True)),
    "mixed hardware": mixed(TWO),
    "mixed hardware in pods": mixed(FatTree(1, Tier(2, TRUNK), 2, Tier(2, TRUNK))),
    "an even ring": TorusWiring((8,), TRUNK),
    "an odd ring": TorusWiring((7,), TRUNK),
    "a line": TorusWiring((7,), TRUNK, (False,)),
    "a 2D torus": TorusWiring((4, 6), TRUNK),
    "a cylinder": TorusWiring((4, 5), TRUNK, (True, False)),
    "a 3D torus with an axis of two": TorusWiring((4, 2, 5), TRUNK),
    "a 3D mesh": TorusWiring((3, 4, 2), TRUNK, (False, False, False)),
    "an axis of one": TorusWiring((4, 1, 3), TRUNK),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_folded_loads_equal_those_of_every_single_link(plan: Wiring | TorusWiring) -> None:
    routes, folded = route(build(plan)), fold(plan)
    ones = np.ones((plan.ranks, plan.ranks))
    loads, kinds = routes.loads(ones), np.array(routes.links.kinds)
    assert set(kinds) - {"internal"} == {link.name for link in folded.links}
    for link, load in zip(folded.links, folded.loads(1.0), strict=True):
        members = kinds == link.name
        assert members.sum() == link.count, link
        np.testing.assert_allclose(loads[members], load, rtol=1e-12, atol=1e-12, err_msg=link.name)
        assert set(routes.links.capacity[members]) == {link.capacity}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_folded_pairs_cover_all_pairs_with_their_latency(plan: Wiring | TorusWiring) -> None:
    routes, folded = route(build(plan)), fold(plan)
    assert sum(pair.pairs for pair in folded.pairs) == pytest.approx(plan.ranks * (plan.ranks - 1), rel=1e-12)
    latency = sum(pair.pairs * pair.latency for pair in folded.pairs)
    assert routes.latencies().sum() == pytest.approx(latency, rel=1e-12)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_folded_all_to_all_takes_as_long_as_the_routed_one(plan: Wiring | TorusWiring) -> None:
    folded, routed = fold(plan).all_to_all_seconds(1e9), route(build(plan)).all_to_all_seconds(1e9)
    assert folded == pytest.approx(routed, rel=1e-12)
    assert routed > 0


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_every_flow_arrives_whole(plan: Wiring | TorusWiring) -> None:
    fabric = build(plan)
    routes, size = route(fabric), plan.ranks
    for source, target in [(0, size - 1), (size - 1, 0), (size // 2, size // 3)]:
        span = slice(*routes.start[source * size + target :][:2])
        balance = np.zeros(len(routes.links.nodes))
        np.subtract.at(balance, routes.links.tails[routes.link[span]], routes.share[span])
        np.add.at(balance, routes.links.heads[routes.link[span]], routes.share[span])
        expected = np.zeros(len(balance))
        expected[fabric.rank_nodes[target]] += 1.0
        expected[fabric.rank_nodes[source]] -= 1.0
        np.testing.assert_allclose(balance, expected, atol=1e-12)


def test_a_switch_exchanges_total_bytes_times_n_minus_one_over_rate_and_n_squared() -> None:
    ranks, total = 8, 8e9
    plan = Wiring((Group(1, ranks, Switched(FAST)),))
    expected = total * (ranks - 1) / (FAST.rate * ranks**2)
    assert route(build(plan)).all_to_all_seconds(total / ranks) == pytest.approx(expected, rel=1e-12)


def test_a_full_mesh_is_as_fast_as_a_switch_of_its_summed_links() -> None:
    mesh = fold(Wiring((Group(1, 8, FullMesh(Link(28e9))),)))
    switch = fold(Wiring((Group(1, 8, Switched(Link(7 * 28e9))),)))
    assert mesh.all_to_all_seconds(1e9) == pytest.approx(switch.all_to_all_seconds(1e9), rel=1e-12)


@pytest.mark.parametrize("chips", [8, 16, 64])
def test_an_even_ring_exchanges_all_bytes_over_four_two_way_rates(chips: int) -> None:
    total = 1e9
    two_way = 2 * TRUNK.rate
    ring = fold(TorusWiring((chips,), TRUNK))
    assert ring.all_to_all_seconds(total / chips) == pytest.approx(total / (4 * two_way), rel=1e-12)


def test_an_even_line_takes_twice_as_long_as_the_ring() -> None:
    ring, line = fold(TorusWiring((16,), TRUNK)), fold(TorusWiring((16,), TRUNK, (False,)))
    assert line.all_to_all_seconds(1e9) == pytest.approx(2 * ring.all_to_all_seconds(1e9), rel=1e-12)


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("dims", [(8,), (5, 4), (4, 3, 6)])
def test_torus_hops_and_bisection_equal_the_closed_forms(dims: tuple[int, ...], wrap: bool) -> None:
    plan, plain = TorusWiring(dims, Link(50e9, 1e-6), (wrap,) * len(dims)), Torus(dims, 50e9, 1e-6, wrap)
    fabric = build(plan)
    hops = route(fabric).latencies() / 1e-6
    assert hops.mean() == pytest.approx(plain.average_hops(), rel=1e-12)
    longest = int(np.argmax(dims))
    low = np.unravel_index(np.arange(plan.ranks), dims)[longest] < dims[longest] // 2
    cut = cut_bandwidth(fabric, set(np.nonzero(low)[0].tolist()))
    assert cut == pytest.approx(plain.bisection_bandwidth(), rel=1e-12)


@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_oversubscription_divides_the_bisection_and_stretches_the_exchange(ratio: int) -> None:
    nics = Nics(Link(25e9), 4)
    plan = Wiring((Group(16, 4, FullMesh(FAST), nics),), oversubscribed(ratio, 4, nics))
    cut = cut_bandwidth(build(plan), range(plan.ranks // 2))
    assert cut == pytest.approx(plan.ranks / 2 * 25e9 / ratio, rel=1e-12)
    folded, size = fold(plan), 1e9
    above, beyond = 48 / 64 * size / (25e9 / ratio), 60 / 64 * size / 25e9
    assert folded.all_to_all_seconds(size) == pytest.approx(max(above, beyond), rel=1e-12)
    assert folded.busiest().name == ("nic out" if ratio == 1 else "leaf up")


def test_a_three_level_tree_without_oversubscription_has_full_bisection() -> None:
    link = Link(25e9)
    tree = FatTree(2, Tier(2, link), 2, Tier(2, link))  # the k = 4 tree: 4 pods, 16 hosts, 4 cores
    plan = Wiring((Group(16, 1, Switched(FAST), Nics(link, 1)),), tree)
    assert cut_bandwidth(build(plan), range(8)) == pytest.approx(8 * 25e9, rel=1e-12)
    routes = route(build(plan))
    assert sorted(share for share in routes.way(0, 15).values() if share < 1) == [0.25] * 8 + [0.5] * 4


def test_relays_take_all_rail_crossings_off_the_spines() -> None:
    group, between = Group(8, 8, Switched(FAST), Nics(PORT, 8)), 64 * 32
    climbing = fold(Wiring((group,), Rails(4, Tier(4, TRUNK))))
    relayed = fold(Wiring((group,), Rails(4, Tier(4, TRUNK), relays=True)))
    assert _total(relayed, "leaf up") == pytest.approx(between, rel=1e-12)  # flows between the two units
    assert _total(climbing, "leaf up") == pytest.approx(between + 64 * 3 * 7, rel=1e-12)  # and between rails


def _total(folded: FoldedRoutes, name: str) -> float:
    names = [link.name for link in folded.links]
    return float(folded.loads(1.0)[names.index(name)] * folded.links[names.index(name)].count)


def test_a_rail_of_pcie_hosts_and_a_rail_of_pinned_hosts_meet() -> None:
    groups = (
        Group(4, 4, Switched(FAST), Nics(PORT, 2), name="pinned"),
        Group(2, 4, Pcie(LANE, 4, LANE, MEMORY), Nics(PORT, 2), name="shared"),
    )
    plan = Wiring(groups, Rails(2, Tier(2, TRUNK)))
    routed = route(build(plan)).all_to_all_seconds(1e9)
    assert fold(plan).all_to_all_seconds(1e9) == pytest.approx(routed, rel=1e-12)


@pytest.mark.parametrize("hosts", [2, 9, 192])
@pytest.mark.parametrize("machine", ["ascend_910b", "dgx_a100", "slingshot_a100"])
def test_a_two_level_fabric_exchanges_near_and_far_bytes_side_by_side(machine: str, hosts: int) -> None:
    cluster = catalog.machine("dgx_a100").cluster(hosts)
    fabric, ranks, size = catalog.fabric(machine), cluster.ranks, 1e8
    assert isinstance(fabric, TwoLevel)
    folded = fold(wiring(replace(cluster, fabric=fabric)))
    near, far = size * 7 / ranks / fabric.fast.rate, size * (ranks - 8) / ranks / fabric.slow(ranks).rate
    assert folded.all_to_all_seconds(size) == pytest.approx(max(near, far), rel=1e-9)
    assert {pair.latency for pair in folded.pairs} == {fabric.within_latency, fabric.between_latency}


def test_a_pod_of_tpus_exchanges_a_quarter_of_all_bytes_through_its_bisection() -> None:
    fabric = catalog.fabric("tpu_v4_pod")
    assert isinstance(fabric, Torus)
    link = Link(fabric.link_bandwidth, fabric.hop_latency, fabric.efficiency)
    expected = fabric.size * 1e8 / 4 / fabric.bisection_bandwidth()
    assert fold(TorusWiring(fabric.dims, link)).all_to_all_seconds(1e8) == pytest.approx(expected, rel=1e-9)


def test_halving_every_rate_doubles_the_exchange() -> None:
    def plan(scale: float) -> Wiring:
        inside, nics = FullMesh(Link(300e9 * scale)), Nics(Link(25e9 * scale), 4)
        return Wiring((Group(8, 4, inside, nics),), FatTree(2, Tier(2, Link(50e9 * scale))))

    assert fold(plan(0.5)).all_to_all_seconds(1e9) == pytest.approx(
        2 * fold(plan(1)).all_to_all_seconds(1e9), rel=1e-12
    )


def test_sixteen_thousand_ranks_fold_in_a_tenth_of_a_second() -> None:
    tree = FatTree(16, Tier(16, TRUNK), 8, Tier(16, TRUNK))
    start = time.process_time()
    folded = fold(one(16, 8, FullMesh(FAST), 8, tree), ranks=16384)
    torus = fold(TorusWiring((16, 16, 16), TRUNK), ranks=16384)
    loads = folded.flows.sum(), torus.flows.sum()
    assert time.process_time() - start < 0.1
    assert [(pair.name, pair.peers) for pair in folded.pairs] == [
        ("same host", 7),
        ("same leaf", 120),
        ("same pod", 896),
        ("across", 15360),
    ]
    assert min(loads) > 0
