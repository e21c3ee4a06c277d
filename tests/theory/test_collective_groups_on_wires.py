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


def loads_of(plan: Wiring, traffic: np.ndarray) -> dict[str, np.ndarray]:
    """Return the load of every link by its class, each pair routed on its own."""
    fabric = build(plan)
    found: dict[str, list[float]] = defaultdict(list)
    for kind, load in zip(fabric.links.kinds, route(fabric).loads(traffic), strict=True):
        found[kind].append(load)
    return {kind: np.array(loads) for kind, loads in found.items()}


def mean_loads(plan: Wiring, traffic: np.ndarray) -> dict[str, float]:
    """Return the mean load of the links of one class."""
    return {kind: float(loads.mean()) for kind, loads in loads_of(plan, traffic).items()}


def busiest_over_mean(plan: Wiring, group: Group) -> dict[str, float]:
    """Return by class of links how much more the busiest of them carries than the mean, which is counted."""
    rates, loads = Wired(plan).rates, loads_of(plan, pairs(plan.ranks, group))
    return {kind: float(at.max() / at.mean()) for kind, at in loads.items() if kind in rates and at.any()}


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
def test_links_of_a_class_carry_the_same_where_groups_and_hosts_divide_each_other(
    name: str, group: Group
) -> None:
    """But in a mesh, where a group of two of four uses one link of three: counted are three even thirds."""
    found = busiest_over_mean(PLANS[name], group)
    in_pairs = (group.size, group.stride) in ((2, 1), (4, 2))
    expected = {kind: 3.0 if kind == "mesh" and in_pairs else 1.0 for kind in found}
    print(f"{name}, {group}: {found}")
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("inside", "group", "worst"),
    [
        (Switched(LINK), Group(3), {"switch up": 1.5, "nic out": 3.0}),
        (Switched(LINK), Group(2, 3), {"switch up": 3.0, "nic out": 1.5}),
        (FullMesh(LINK), Group(3), {"mesh": 2.25}),
        (FullMesh(LINK), Group(2, 3), {"mesh": 9.0}),
    ],
)
def test_the_busiest_link_carries_up_to_nine_times_the_mean_where_groups_straddle_hosts(
    inside: Switched | FullMesh, group: Group, worst: dict[str, float]
) -> None:
    """Groups of three on hosts of four: what docs/concepts/limits.md says of them."""
    found = busiest_over_mean(Wiring((Hosts(6, 4, inside, Nics(LINK, 4)),), Flat()), group)
    print(f"{inside}, {group}: {found}")
    assert {kind: found[kind] for kind in worst} == pytest.approx(worst)


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
