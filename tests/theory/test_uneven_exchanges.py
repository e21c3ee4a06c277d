"""Uneven exchanges link by link: against routes of every pair, and against a joint max-min solver."""

from itertools import pairwise

import numpy as np
import pytest

from simulator.costs import CostModel
from simulator.hardware import Cluster, Slowdown, Torus, catalog
from simulator.hardware.crossings import Crossings, Exchange, members
from simulator.hardware.graphs import TorusWiring, Wiring, build, route
from simulator.hardware.graphs.routes import Routes
from simulator.hardware.wired import Wired
from simulator.quantities import AllToAllWork, FloatArray, Group
from tests.theory.test_fabric_routing import PLANS, TRUNK


def links_of(plan: Wiring | TorusWiring) -> Crossings:
    if isinstance(plan, Wiring):
        return Wired(plan).crossings(plan.ranks, 1)
    return Torus(plan.dims, plan.link.rate, wrap=all(plan.wrap)).crossings()


ALIKE = {name: plan for name, plan in PLANS.items() if isinstance(plan, Wiring) or len(set(plan.wrap)) == 1}


def drawn(ranks: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return what ranks send and receive: a few send a lot, some nothing."""
    draw = np.random.default_rng(seed)
    sent = draw.lognormal(0.0, 1.0, ranks) * (draw.random(ranks) < 0.7)
    received = draw.lognormal(0.0, 0.5, ranks)
    return sent, received * max(sent.sum(), 1.0) / received.sum()


def groups_of(ranks: int) -> list[Group | None]:
    halves = [Group(ranks // 2), Group(ranks // 2, 2)] if ranks % 2 == 0 and ranks > 2 else []
    return [None, *halves]


def by_kind(routes: Routes, messages: FloatArray) -> dict[str, float]:
    busy, kinds = routes.loads(messages) / routes.links.capacity, np.array(routes.links.kinds)
    return {str(kind): float(busy[kinds == kind].max()) for kind in set(kinds) - {"internal"}}


@pytest.mark.parametrize("plan", ALIKE.values(), ids=ALIKE)
def test_the_busiest_link_of_each_class_carries_what_the_routed_graph_says(
    plan: Wiring | TorusWiring,
) -> None:
    routes, links = route(build(plan)), links_of(plan)
    for seed, group in enumerate(groups_of(plan.ranks)):
        exchange = Exchange(*drawn(plan.ranks, seed), members(plan.ranks, group))
        expected = by_kind(routes, exchange.messages)
        found = {
            name: float(each.sum()) for name, each in links.seconds(links.loads(exchange.messages)).items()
        }
        if isinstance(plan, TorusWiring):
            assert found["cut"] == pytest.approx(max(expected.values()), rel=1e-9)
        else:
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-18)
        if isinstance(plan, Wiring) or group is None:
            apart = links.loads(exchange.messages)
            np.testing.assert_allclose(links.spread(exchange), apart, rtol=1e-9, atol=1e-9 * apart.max())


@pytest.mark.parametrize("plan", ALIKE.values(), ids=ALIKE)
def test_the_lowest_level_on_a_way_is_that_of_its_links(plan: Wiring | TorusWiring) -> None:
    links = links_of(plan)
    level = np.random.default_rng(1).random(len(links.capacity))
    lowest = links.least(level)
    for source, target in np.random.default_rng(2).integers(plan.ranks, size=(20, 2)):
        if source != target:
            one = np.zeros((plan.ranks, plan.ranks))
            one[source, target] = 1.0
            crossed = links.loads(one).sum(axis=0) > 0
            assert lowest[source, target] == level[crossed].min()


SHAPES = [(3, 3), (3, 3, 3), (5, 4), (4, 3), (7,), (4, 4), (4, 4, 4), (8, 8), (2, 3), (6, 2)]
GRIDS = [Torus(dims, TRUNK.rate, 1e-6, wrap) for dims in SHAPES for wrap in (True, False)]


def end_of(grid: Torus, work: AllToAllWork, slow: tuple[Slowdown, ...] = ()) -> float:
    machine = catalog.machine("dgx_a100")
    costs = CostModel(Cluster(machine.accelerator, machine.host, grid, 1, grid.size, slow))
    return float(np.max(costs.seconds(work)))


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_an_all_to_all_on_a_grid_takes_as_long_when_one_rank_has_hardly_more(grid: Torus) -> None:
    nearly = np.full(grid.size, 64e6)
    nearly[grid.size // 2] *= 1 + 1e-6
    even = end_of(grid, AllToAllWork(64e6))
    for sent, received in [(nearly, nearly), (nearly, np.full(grid.size, nearly.mean()))]:
        assert end_of(grid, AllToAllWork(sent, received)) == pytest.approx(even, rel=1e-4)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_links_and_chips_of_a_grid_are_as_busy_when_one_rank_has_hardly_more(grid: Torus) -> None:
    """The classes of links stay alike too, so that collectives that meet share them as before."""
    each, links = np.ones(grid.size), grid.crossings()
    found = links.seconds(links.spread(Exchange(each, each, np.zeros(grid.size, np.int64))))
    assert float(found["cut"].sum()) == pytest.approx(1 / grid.exchange_bandwidth(), rel=1e-12, abs=0.0)
    passing = grid.busiest_hops() / grid.injection_bandwidth()
    assert float(found["chip"].sum()) == pytest.approx(passing, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_a_slower_link_never_makes_an_all_to_all_on_a_grid_faster(grid: Torus) -> None:
    speeds = (1.0, 0.999999, 0.99, 0.9, 0.5)
    slow = [(Slowdown((grid.size // 2,), network=speed),) for speed in speeds]
    ends = [end_of(grid, AllToAllWork(64e6), one) for one in slow]
    assert ends[1] == pytest.approx(ends[0], rel=1e-4)
    assert all(later >= sooner * (1 - 1e-9) for sooner, later in pairwise(ends))
