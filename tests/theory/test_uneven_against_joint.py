"""Uneven exchanges against a joint max-min solver: every message apart, on the routed graph, exactly."""

import numpy as np
import pytest

from simulator.costs import CostModel
from simulator.engine.fluid.flows import FlowClasses
from simulator.engine.fluid.rates import finish_times
from simulator.hardware import Cluster, Fabric, Slowdown, Torus, TwoLevel, catalog
from simulator.hardware.fabric import Link
from simulator.hardware.graphs import (
    Group,
    Nics,
    Rails,
    Switched,
    Tier,
    TorusWiring,
    Wiring,
    build,
    oversubscribed,
    route,
)
from simulator.hardware.graphs.routes import Routes
from simulator.hardware.wired import Wired
from simulator.quantities import AllToAllWork, FloatArray, ReduceScatterWork
from simulator.quantities import Group as Members

FAST, PORT, TRUNK = Link(300e9), Link(25e9), Link(50e9)
SHAPES = {64: (4, 4, 4), 128: (4, 4, 8), 512: (8, 8, 8)}


def wired(ranks: int, name: str) -> Wiring:
    hosts = Group(ranks // 8, 8, Switched(FAST), Nics(PORT, 8))
    networks = {
        "fat tree": oversubscribed(4.0, 4, Nics(PORT, 8)),
        "rails": Rails(4, Tier(2, TRUNK)),
        "rails with relays": Rails(4, Tier(2, TRUNK), relays=True),
    }
    return Wiring((hosts,), networks[name])


NAMES = ("torus", "fat tree", "rails", "rails with relays")


def fabric_of(ranks: int, name: str) -> tuple[Fabric, Routes]:
    if name == "torus":
        dims = SHAPES[ranks]
        return Torus(dims, TRUNK.rate), route(build(TorusWiring(dims, TRUNK)))
    plan = wired(ranks, name)
    return Wired(plan), route(build(plan))


def model(fabric: Fabric, ranks: int, slow: tuple[Slowdown, ...] = ()) -> CostModel:
    machine = catalog.machine("dgx_a100")
    return CostModel(Cluster(machine.accelerator, machine.host, fabric, 8, ranks // 8, slow=slow))


def hot(ranks: int, owners: int) -> tuple[FloatArray, FloatArray]:
    """Return what ranks send and receive when a few owners have twenty times the rows of the others."""
    sent = np.full(ranks, 1e6)
    sent[np.random.default_rng(owners).choice(ranks, owners, replace=False)] *= 20
    return sent, np.full(ranks, sent.mean())


def ends_of_ranks(routes: Routes, messages: FloatArray) -> FloatArray:
    """Return when each rank has sent and received all, every message following its own way."""
    row = np.flatnonzero(messages.ravel() > 0)
    counts = np.diff(routes.start)[row]
    entry = np.arange(counts.sum()) + np.repeat(routes.start[row] - np.cumsum(counts) + counts, counts)
    limited = np.isfinite(routes.links.capacity)
    kept = limited[routes.link[entry]]
    owner = np.repeat(np.arange(len(row)), counts)[kept]
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(row)))])
    link = (np.cumsum(limited) - 1)[routes.link[entry][kept]]
    one, free = np.ones(len(row)), np.full(len(row), np.inf)
    flows = FlowClasses(starts, link, routes.share[entry][kept], messages.ravel()[row], one, free)
    ends = np.zeros(messages.size)
    ends[row] = finish_times(routes.links.capacity[limited], flows)
    each = ends.reshape(messages.shape)
    return np.maximum(each.max(axis=0), each.max(axis=1))


def check_against_joint(ranks: int, owners: int, name: str) -> None:
    fabric, routes = fabric_of(ranks, name)
    sent, received = hot(ranks, owners)
    for out, into in ((sent, received), (received, sent)):
        messages = np.outer(out, into) / out.sum()
        np.fill_diagonal(messages, 0.0)
        joint = ends_of_ranks(routes, messages)
        found = np.broadcast_to(model(fabric, ranks).seconds(AllToAllWork(out, into)), ranks)
        assert found.max() == pytest.approx(joint.max(), rel=0.05)
        np.testing.assert_allclose(found, joint, rtol=0.05)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("owners", [1, 8])
@pytest.mark.parametrize("ranks", [64, 128])
def test_hot_owners_cost_what_a_joint_solver_says_on_the_whole_and_for_each_rank(
    ranks: int, owners: int, name: str
) -> None:
    check_against_joint(ranks, owners, name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("owners", [1, 8])
def test_hot_owners_on_512_ranks_cost_what_a_joint_solver_says(owners: int, name: str) -> None:
    check_against_joint(512, owners, name)


def test_loads_without_any_pattern_end_within_a_twentieth_of_the_joint_solver() -> None:
    for name in NAMES:
        fabric, routes = fabric_of(64, name)
        sent = np.random.default_rng(3).lognormal(0.0, 1.0, 64) * 1e6
        received = np.full(64, sent.mean())
        messages = np.outer(sent, received) / sent.sum()
        np.fill_diagonal(messages, 0.0)
        joint = ends_of_ranks(routes, messages)
        found = model(fabric, 64).seconds(AllToAllWork(sent, received))
        np.testing.assert_allclose(np.max(found), joint.max(), rtol=0.05)
        np.testing.assert_allclose(found, joint, rtol=0.05)


def test_one_hot_owner_is_not_priced_as_if_every_chip_were_as_busy() -> None:
    sent = np.zeros(64)
    sent[21] = 64e6
    torus = model(Torus((4, 4, 4), TRUNK.rate), 64)
    seconds = np.max(torus.seconds(AllToAllWork(sent, np.full(64, 1e6))))
    # x first: of the 48 chips with another x, half are reached either way round
    assert seconds == pytest.approx(24e6 / TRUNK.rate)
    assert np.max(torus.seconds(AllToAllWork(np.full(64, 64e6)))) == pytest.approx(32e6 / TRUNK.rate)


def test_a_hot_owner_in_one_group_of_many_loads_its_own_links_alone() -> None:
    ranks, group = 64, Members(8, 8)
    sent = np.full(ranks, 8e6)
    sent[3] = 80e6
    received = np.full(ranks, 8e6)
    received[3::8] = 8e6 + 72e6 / 8
    tree = model(Wired(wired(ranks, "fat tree")), ranks)
    seconds = np.max(tree.seconds(AllToAllWork(sent, received, group)))
    busiest = np.max(tree.seconds(AllToAllWork(80e6, group=group)))
    assert seconds < 0.8 * busiest
    two = model(TwoLevel(FAST.rate, PORT.rate), ranks).seconds(AllToAllWork(sent, received, group))
    assert np.max(two) == pytest.approx(70e6 / PORT.rate)


def test_one_slow_card_does_not_slow_the_spines_that_all_share() -> None:
    ranks, work = 64, AllToAllWork(64e6)
    fabric = Wired(wired(ranks, "fat tree"))
    whole = float(np.max(model(fabric, ranks).seconds(work)))
    slow = model(fabric, ranks, (Slowdown((5,), network=0.5),))
    assert float(np.max(slow.seconds(work))) < 1.5 * whole
    flat = TwoLevel(FAST.rate, PORT.rate)
    assert np.max(model(flat, ranks, (Slowdown((5,), network=0.5),)).seconds(work)) == pytest.approx(
        2 * float(np.max(model(flat, ranks).seconds(work)))
    )


def test_a_group_with_small_vectors_is_done_before_one_with_large_ones() -> None:
    size = np.repeat([1e6, 4e6], 32)
    costs = model(TwoLevel(FAST.rate, PORT.rate), 64)
    found = np.asarray(costs.seconds(ReduceScatterWork(size, Members(8))))
    alone = [float(np.max(costs.seconds(ReduceScatterWork(one, Members(8))))) for one in (1e6, 4e6)]
    np.testing.assert_allclose(found, np.repeat(alone, 32))


def test_an_exchange_lasts_as_long_whoever_is_folded_and_however_large_the_job_is() -> None:
    for ranks in (512, 1024):
        sent = np.full(ranks, 1e6)
        sent[7] = 50e6
        flat = model(TwoLevel(FAST.rate, PORT.rate), ranks)
        found = np.max(flat.seconds(AllToAllWork(sent, np.full(ranks, sent.mean()))))
        assert found == pytest.approx(50e6 * (ranks - 8) / ranks / PORT.rate)
