"""Algorithms of collectives on any fabric: what must hold whatever the sizes, rates and latencies."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.costs import CostModel
from simulator.costs.algorithms import AUTO, KNOWN, Choice, Overheads
from simulator.hardware import Cluster, Fabric, Torus, TwoLevel, catalog
from simulator.hardware.fabric import Link
from simulator.hardware.graphs import FatTree, Group, Nics, Pcie, Rails, Switched, Tier, Wiring
from simulator.hardware.wired import Wired
from simulator.quantities import (
    AllGatherWork,
    AllReduceWork,
    AllToAllWork,
    BroadcastWork,
    FloatArray,
    PointToPointWork,
    ReduceScatterWork,
    Work,
)
from simulator.quantities import Group as Members

WORKS: dict[str, Callable[[float], Work]] = {
    "all_to_all": AllToAllWork,
    "all_reduce": AllReduceWork,
    "all_gather": AllGatherWork,
    "reduce_scatter": ReduceScatterWork,
    "broadcast": BroadcastWork,
}
HOSTS, PER_HOST = 8, 4
sizes = st.floats(1.0, 1e10)
rates = st.floats(1e9, 1e12)
times = st.floats(0.0, 1e-3)


def link(rate: float, time: float) -> Link:
    return Link(rate, time)


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Draw any kind of fabric for HOSTS hosts."""
    near, far, time = draw(rates), draw(rates), draw(times)
    tier = Tier(draw(st.integers(1, 3)), link(far, time))
    switch, pcie = Switched(link(near, time)), Pcie(link(near, time), 2, link(near, 0.0))
    cards = Nics(link(far, time), draw(st.sampled_from([1, 2, 4])))
    trees = [FatTree(2, tier), FatTree(2, tier, 2, tier), Rails(4, tier)]
    hosts = Group(HOSTS, PER_HOST, draw(st.sampled_from([switch, pcie])), cards)
    wired = Wired(Wiring((hosts,), draw(st.sampled_from(trees))), time)
    levels = TwoLevel(near, far, time, draw(times), decay_workers=draw(st.sampled_from([None, 100.0])))
    return draw(st.sampled_from([levels, wired, Torus((4, 8), near, time), Torus((4, 8), far, time, False)]))


def costs(fabric: Fabric, choice: Choice = Choice(), overheads: Overheads = Overheads()) -> CostModel:  # noqa: B008
    machine = catalog.machine("dgx_a100")
    cluster = Cluster(machine.accelerator, machine.host, fabric, PER_HOST, HOSTS)
    return CostModel(cluster, algorithms=choice, overheads=overheads)


NO_GRID = (("all_reduce", "tree"), ("all_to_all", "hierarchical"))


def names(operation: str, fabric: Fabric) -> list[str]:
    return [name for name in KNOWN[operation] if not (_grid(fabric) and (operation, name) in NO_GRID)]


def _grid(fabric: Fabric) -> bool:
    return isinstance(fabric, Torus)


def seconds(model: CostModel, work: Work) -> float:
    return float(np.max(model.seconds(work)))


@given(fabric=fabrics(), size=sizes, operation=st.sampled_from(sorted(KNOWN)), per_peer=times, message=times)
def test_the_automatic_choice_is_never_slower_than_any_named_one(
    fabric: Fabric, size: float, operation: str, per_peer: float, message: float
) -> None:
    overheads, work = Overheads(per_peer, message, message / 3), WORKS[operation](size)
    chosen = costs(fabric, Choice(**{operation: AUTO}), overheads)
    each = {
        name: seconds(costs(fabric, Choice(**{operation: name}), overheads), work)
        for name in names(operation, fabric)
    }
    assert seconds(chosen, work) == min(each.values())


@given(fabric=fabrics(), size=sizes, operation=st.sampled_from(sorted(KNOWN)), data=st.data())
def test_half_the_rates_and_twice_the_latencies_take_twice_as_long(
    fabric: Fabric, size: float, operation: str, data: st.DataObject
) -> None:
    name, overheads = data.draw(st.sampled_from(names(operation, fabric))), Overheads(1e-7, 2e-6, 3e-7)
    slower = Overheads(2e-7, 4e-6, 6e-7)
    choice, work = Choice(**{operation: name}), WORKS[operation](size)
    once = seconds(costs(fabric, choice, overheads), work)
    assert seconds(costs(half_as_fast(fabric), choice, slower), work) == pytest.approx(2 * once)


def half_as_fast(fabric: Fabric) -> Fabric:
    if isinstance(fabric, Torus):
        return replace(fabric, link_bandwidth=fabric.link_bandwidth / 2, hop_latency=2 * fabric.hop_latency)
    if isinstance(fabric, TwoLevel):
        return replace(
            fabric,
            within=fabric.within / 2,
            between=fabric.between / 2,
            within_latency=2 * fabric.within_latency,
            between_latency=2 * fabric.between_latency,
        )
    assert isinstance(fabric, Wired)
    return replace(fabric, plan=_half(fabric.plan), start_up=2 * fabric.start_up)


def _half(part: object) -> object:
    """Return a plan, or a part of one, with each link half as fast and twice as far."""
    if isinstance(part, Link):
        return Link(part.bandwidth / 2, 2 * part.latency, part.efficiency)
    if isinstance(part, tuple):
        return tuple(map(_half, part))
    if not hasattr(part, "__dataclass_fields__"):
        return part
    return replace(part, **{name: _half(getattr(part, name)) for name in part.__dataclass_fields__})


@given(fabric=fabrics(), operation=st.sampled_from(sorted(KNOWN)), data=st.data())
def test_more_bytes_never_take_less_time(fabric: Fabric, operation: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([AUTO, *names(operation, fabric)]))
    less, more = sorted((data.draw(sizes), data.draw(sizes)))
    model = costs(fabric, Choice(**{operation: name}))
    assert seconds(model, WORKS[operation](less)) <= seconds(model, WORKS[operation](more)) * (1 + 1e-12)


def loads(data: st.DataObject) -> tuple[FloatArray, FloatArray]:
    """Return what 32 ranks send and receive, as much in all."""
    sent, received = (
        np.array(data.draw(st.lists(st.floats(1.0, 1e9), min_size=32, max_size=32))) for _ in range(2)
    )
    return sent, received / received.sum() * sent.sum()


@given(
    fabric=fabrics().filter(lambda one: not isinstance(one, Torus) or one.wrap),
    ranks=st.tuples(st.integers(0, 31), st.integers(0, 31)),
    busy=st.floats(1.0, 100.0),
    back=st.booleans(),
)
def test_it_does_not_matter_which_rank_is_the_busy_one(
    fabric: Fabric, ranks: tuple[int, int], busy: float, back: bool
) -> None:
    """All ranks of these fabrics stand alike, so one busy rank among alike ones may be any of them."""
    for name in ("direct", *(["hierarchical"] if not _grid(fabric) else [])):
        model, found = costs(fabric, Choice(all_to_all=name)), []
        for rank in ranks:
            amount = np.full(32, 1e6)
            amount[rank] *= busy
            even = np.full(32, amount.mean())
            found.append(seconds(model, AllToAllWork(even, amount) if back else AllToAllWork(amount, even)))
        assert found[0] == pytest.approx(found[1])


@given(fabric=fabrics(), data=st.data())
def test_busy_senders_never_cost_more_than_if_all_were_as_busy(fabric: Fabric, data: st.DataObject) -> None:
    """Each message is then as large as the largest: no link carries less."""
    sent, _ = loads(data)
    for name in ("direct", *(["hierarchical"] if not _grid(fabric) else [])):
        model = costs(fabric, Choice(all_to_all=name))
        uneven = seconds(model, AllToAllWork(sent, np.full(32, sent.mean())))
        assert uneven <= seconds(model, AllToAllWork(float(sent.max()))) * 1.03


@given(fabric=fabrics(), data=st.data(), shift=st.integers(0, 31))
def test_rounds_may_begin_at_any_rank(fabric: Fabric, data: st.DataObject, shift: int) -> None:
    sent, received = loads(data)
    model = costs(fabric, Choice(all_to_all="pairwise"))
    moved = AllToAllWork(np.roll(sent, shift), np.roll(received, shift))
    assert seconds(model, moved) == pytest.approx(seconds(model, AllToAllWork(sent, received)))


@given(data=st.data(), rate=rates)
def test_rounds_take_no_less_than_what_the_busiest_rank_exchanges_with_others(
    data: st.DataObject, rate: float
) -> None:
    sent, received = loads(data)
    traffic = np.outer(sent, received) / sent.sum()
    others = traffic - np.diag(np.diag(traffic))
    busiest = max(others.sum(axis=0).max(), others.sum(axis=1).max())
    model = costs(TwoLevel(rate, rate, domain=32), Choice(all_to_all="pairwise"))
    assert seconds(model, AllToAllWork(sent, received)) >= busiest / rate * (1 - 1e-9)


@given(
    fabric=fabrics().filter(lambda one: not isinstance(one, Torus)),
    size=sizes,
    operation=st.sampled_from(sorted(KNOWN)),
    group=st.sampled_from([Members(2), Members(4), Members(8), Members(8, 4), Members(4, 8), Members(16, 2)]),
    data=st.data(),
)
def test_a_group_under_any_algorithm_takes_some_time_and_the_automatic_choice_the_least(
    fabric: Fabric, size: float, operation: str, group: Members, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(names(operation, fabric)))
    work = type(WORKS[operation](size))(size, group=group)
    named, least = (seconds(costs(fabric, Choice(**{operation: one})), work) for one in (name, AUTO))
    assert 0 < least <= named < np.inf


@given(fabric=fabrics(), size=sizes, distance=st.integers(1, 31))
def test_a_message_takes_at_least_its_bytes_over_the_fastest_link(
    fabric: Fabric, size: float, distance: int
) -> None:
    model = costs(fabric)
    assert seconds(model, PointToPointWork(size, distance)) >= size / max(model.network.rates.values())
