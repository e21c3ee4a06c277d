"""Groups of ranks on wired fabrics: their folded traffic against every pair, routed one by one."""

from collections import defaultdict

import numpy as np
import pytest

from simulator.hardware.fabric import Link
from simulator.hardware.graphs import (
    FatTree,
    Flat,
    FullMesh,
    Nics,
    Pcie,
    Rails,
    Switched,
    Tier,
    Wiring,
    build,
    fold,
    route,
)
from simulator.hardware.graphs import Group as Hosts
from simulator.hardware.wired import CustomFabric, Wired
from simulator.quantities import Group

LINK, TRUNK = Link(25e9, 1e-6), Link(50e9, 2e-6)
PLANS = {
    "flat": Wiring((Hosts(8, 4, Switched(LINK), Nics(LINK, 4)),), Flat()),
    "one card for two": Wiring((Hosts(8, 4, FullMesh(LINK), Nics(LINK, 2)),), Flat()),
    "two levels": Wiring((Hosts(8, 4, Switched(LINK), Nics(LINK, 4)),), FatTree(2, Tier(2, TRUNK))),
    "wide domains": Wiring((Hosts(8, 4, Switched(LINK), Nics(LINK, 4), 2),), FatTree(4, Tier(2, TRUNK))),
    "three levels": Wiring(
        (Hosts(16, 2, Switched(LINK), Nics(LINK, 2)),), FatTree(2, Tier(2, TRUNK), 2, Tier(2, TRUNK))
    ),
    "rails": Wiring((Hosts(8, 4, Switched(LINK), Nics(LINK, 4)),), Rails(4, Tier(2, TRUNK))),
    "relaying rails": Wiring((Hosts(8, 4, Switched(LINK), Nics(LINK, 4)),), Rails(4, Tier(2, TRUNK), True)),
    "peers on PCIe": Wiring((Hosts(4, 8, Pcie(LINK, 2, TRUNK), Nics(LINK, 2)),), Flat()),
    "staged PCIe": Wiring(
        (Hosts(4, 8, Pcie(LINK, 4, TRUNK, LINK), Nics(LINK, 2)),), FatTree(2, Tier(1, TRUNK))
    ),
}
GROUPS = (
    Group(2),
    Group(4),
    Group(8),
    Group(16),
    Group(32),
    Group(2, 16),
    Group(8, 4),
    Group(4, 8),
    Group(4, 2),
)


def pairs(ranks: int, group: Group) -> np.ndarray:
    rank = np.arange(ranks)
    number = rank // (group.size * group.stride) * group.stride + rank % group.stride
    return ((number[:, None] == number) & ~np.eye(ranks, dtype=bool)).astype(float)


def mean_loads(plan: Wiring, traffic: np.ndarray) -> dict[str, float]:
    """Return the mean load of the links of one class, each pair routed on its own."""
    fabric = build(plan)
    found: dict[str, list[float]] = defaultdict(list)
    for kind, load in zip(fabric.links.kinds, route(fabric).loads(traffic), strict=True):
        found[kind].append(load)
    return {kind: float(np.mean(loads)) for kind, loads in found.items()}


@pytest.mark.parametrize("group", GROUPS, ids=str)
@pytest.mark.parametrize("name", PLANS)
def test_what_groups_send_over_each_class_of_links_is_what_their_pairs_send(name: str, group: Group) -> None:
    plan = PLANS[name]
    fabric = Wired(plan)
    crossed: dict[str, float] = defaultdict(float)
    for peers in fabric.peers(group):
        for link, count in peers.crossing.items():
            crossed[link] += count
    routed = {
        kind: load
        for kind, load in mean_loads(plan, pairs(plan.ranks, group)).items()
        if load > 0 and kind in fabric.rates
    }
    assert {link: count for link, count in crossed.items() if count > 1e-9} == pytest.approx(routed)


@pytest.mark.parametrize("group", GROUPS, ids=str)
@pytest.mark.parametrize("name", PLANS)
def test_a_rank_has_as_many_peers_as_its_group_has_others(name: str, group: Group) -> None:
    fabric = Wired(PLANS[name])
    assert sum(one.count for one in fabric.peers(group)) == pytest.approx(group.size - 1)
    near = sum(one.count for one in fabric.peers(group) if one.near)
    assert fabric.together(group) == round(near + 1)


@pytest.mark.parametrize("name", PLANS)
def test_a_group_of_all_ranks_is_the_whole_job(name: str) -> None:
    fabric = Wired(PLANS[name])
    for one, all_of_them in zip(fabric.peers(None), fabric.peers(Group(32)), strict=True):
        assert one.count == pytest.approx(all_of_them.count)
        assert one.crossing == pytest.approx(all_of_them.crossing)


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_groups_on_a_custom_graph_send_what_their_pairs_send(group: Group) -> None:
    graph = build(PLANS["two levels"])
    (peers,) = CustomFabric(graph).peers(group)
    loads = route(graph).loads(pairs(32, group))
    names = zip(graph.links.names, loads, graph.links.capacity, strict=True)
    assert peers.crossing == pytest.approx({name: at for name, at, rate in names if at > 0 and rate < np.inf})
    assert peers.count == group.size - 1


def test_the_latency_of_a_class_of_peers_is_that_of_its_cables() -> None:
    latency = {pair.name: pair.latency for pair in fold(PLANS["three levels"]).pairs}
    assert latency == pytest.approx({"same host": 2e-6, "same leaf": 2e-6, "same pod": 6e-6, "across": 10e-6})
