"""Fabrics as algorithms see them: two levels, a torus, or links described one by one.

All groups of a job are alike and communicate at once. What a group sends near and far follows from how
many of its members share a domain. Where a rate falls with scale (`decay_workers`), the scale is that
of the group: congestion comes from the peers a rank talks to (our assumption; published grouped
exchanges fall as it predicts).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from math import ceil, log2

from simulator.costs.algorithms.ground import Crossing, Ground, Level, Peers
from simulator.costs.lanes import Lanes
from simulator.errors import InputError
from simulator.hardware import Cluster, Fabric, Torus, TwoLevel
from simulator.hardware.fabric import PeerClass, Ways
from simulator.quantities import Group


@dataclass(frozen=True)
class Overheads:
    """What messages cost beside their bytes, seconds.

    `per_peer`: of an exchange, for each peer of a rank. `per_message`: of each further message that
    must be waited for, between domains and `within` them. Left out: half of the latency between
    domains, as its smallest collective is a message there and one back (our assumption); nothing
    inside, where the latency was measured over a whole domain.
    """

    per_peer: float = 0.0
    per_message: float | None = None
    per_message_within: float = 0.0

    def between(self, latency: float) -> float:
        """Return the time of a further message where the smallest collective takes `latency`."""
        return latency / 2 if self.per_message is None else self.per_message


PLAIN = Overheads()


def ground(cluster: Cluster, group: Group | None, overheads: Overheads) -> Ground:
    """Return what the members of each `group` (None: all ranks) of `cluster` stand on.

    Raises InputError for groups on a fabric whose groups are not known.
    """
    found = _ground(cluster.fabric, cluster, group, overheads)
    return replace(found, lanes=Lanes(cluster, group))


def link_rates(cluster: Cluster) -> Mapping[str, float]:
    """Return the bytes/s of one link of each class when all ranks take part."""
    return _rates(cluster.fabric, cluster.ranks)


@singledispatch
def _rates(fabric: Fabric, ranks: int) -> Mapping[str, float]:
    if not isinstance(fabric, Ways):
        raise InputError(f"no link is known on a {type(fabric).__name__} fabric")
    return dict(fabric.rates)


@_rates.register
def _(fabric: TwoLevel, ranks: int) -> Mapping[str, float]:
    return {**_each_way("near", fabric.fast.rate), **_each_way("far", fabric.slow(ranks).rate)}


@_rates.register
def _(fabric: Torus, ranks: int) -> Mapping[str, float]:
    """The cut stands for the busiest link of an exchange, the chip for all links of one.

    A chip on its own has no neighbour: the rate is that of one link, which nothing crosses.
    """
    chip = fabric.injection_bandwidth() if fabric.size > 1 else fabric.rate
    return {"cut": fabric.exchange_bandwidth(), "chip": chip}


@singledispatch
def _ground(fabric: Fabric, cluster: Cluster, group: Group | None, overheads: Overheads) -> Ground:
    """Take a fabric whose links are known one by one."""
    if not isinstance(fabric, Ways):
        raise InputError(f"no collective is known on a {type(fabric).__name__} fabric")
    ranks = cluster.ranks if group is None else group.size
    inside = fabric.together(group)
    domains = ceil(ranks / inside)
    classes = [one for one in fabric.peers(group) if one.count > 0]
    near = _wired_level(fabric, [one for one in classes if one.near], inside, group)
    far = _wired_level(fabric, [one for one in classes if not one.near], domains, group)
    return Ground(
        ranks,
        inside,
        domains,
        near=_near_level(near, fabric.start_up, overheads),
        far=_far_level(far, fabric.start_up, domains, overheads),
        everyone=tuple(Peers(one.count, not one.near, one.crossing) for one in classes),
        rates=fabric.rates,
        per_peer=overheads.per_peer,
    )


@dataclass(frozen=True)
class _Wires:
    """The longest way of a level, s, a flow to the next rank on it, and one to each."""

    cable: float
    neighbour: Crossing
    peers: tuple[Peers, ...]


def _wired_level(fabric: Ways, classes: list[PeerClass], members: int, group: Group | None) -> _Wires:
    """Return a level of so many members; the peers of a rank on it are those that stand where it does."""
    if not classes:
        return _Wires(0.0, {}, ())
    near = classes[0].near
    standing = [one for one in classes if near or not one.elsewhere] or classes
    share = (members - 1) / sum(one.count for one in standing)
    peers = tuple(Peers(one.count * share, not near, _times(one.crossing, share)) for one in standing)
    return _Wires(max(one.latency for one in classes), fabric.to_neighbour(near, group), peers)


def _near_level(wires: _Wires, start_up: float, overheads: Overheads) -> Level:
    tuned = start_up + 2 * wires.cable
    within = overheads.per_message_within
    return Level(start_up, within, wires.cable, tuned, wires.neighbour, wires.peers)


def _far_level(wires: _Wires, start_up: float, domains: int, overheads: Overheads) -> Level | None:
    if domains == 1:
        return None
    tuned = (start_up + 2 * wires.cable) * log2(domains)
    between = overheads.between(start_up)
    return Level(start_up, between, wires.cable, tuned, wires.neighbour, wires.peers, outside=True)


@_ground.register
def _(fabric: TwoLevel, cluster: Cluster, group: Group | None, overheads: Overheads) -> Ground:
    ranks = cluster.ranks if group is None else group.size
    inside = _inside(fabric.domain_size(cluster.per_host), ranks, group)
    domains, rates = ceil(ranks / inside), _rates(fabric, cluster.ranks)
    slower = 1.0 if group is None else rates["far out"] / fabric.slow(ranks).rate
    near_peers = Peers(inside - 1, False, _each_way("near", inside - 1))
    others = Peers(ranks - inside, True, _each_way("far", (ranks - inside) * slower))
    near = Level(
        fabric.within_latency,
        overheads.per_message_within,
        0.0,
        tuned=fabric.within_latency,
        neighbour=_each_way("near", 1.0),
        peers=(near_peers,),
    )
    far = Level(
        fabric.between_latency,
        overheads.between(fabric.between_latency),
        0.0,
        tuned=fabric.between_latency * log2(domains),
        neighbour=_each_way("far", slower),
        peers=(Peers(domains - 1, True, _each_way("far", (domains - 1) * slower)),),
        outside=True,
    )
    everyone = _present((near_peers, others)) if ranks > 1 else ()
    only = far if domains > 1 else None
    return Ground(ranks, inside, domains, near, only, everyone, rates, overheads.per_peer)


def _each_way(level: str, amount: float) -> dict[str, float]:
    """Return an amount for the links of a level, one out of each rank and one into it."""
    return {f"{level} out": amount, f"{level} in": amount}


def _inside(domain: int, ranks: int, group: Group | None) -> int:
    """Return how many members share a domain: with stride s only every s-th rank of it is one.

    A stride that does not divide the domain is rounded down, to the members that every domain holds at
    least: pessimistic, as some domains hold one more, whose traffic then stays inside.
    """
    return min(domain if group is None else max(1, domain // group.stride), ranks)


@_ground.register
def _(fabric: Torus, cluster: Cluster, group: Group | None, overheads: Overheads) -> Ground:
    """Every byte crosses as many of a chip's links as it has hops on average (our derivation)."""
    if group is not None:
        raise InputError("groups of ranks are not known on a torus, only collectives over all of its chips")
    ranks, hops = cluster.ranks, fabric.average_hops()
    furthest = sum(fabric.dims) / 2 if fabric.wrap else sum(fabric.dims)
    crossing = {"cut": 1.0 * ranks, "chip": fabric.busiest_hops() * ranks}
    everyone = _present((Peers(ranks - 1, False, crossing),))
    near = Level(
        fabric.hop_latency * hops,
        overheads.per_message_within,
        0.0,
        tuned=2 * furthest * fabric.hop_latency,
        neighbour={"chip": 1.0},
        peers=everyone,
    )
    rates = _rates(fabric, ranks)
    return Ground(ranks, ranks, 1, near, None, everyone, rates, overheads.per_peer, grid=True)


def _present(peers: Iterable[Peers]) -> tuple[Peers, ...]:
    return tuple(one for one in peers if one.count > 0)


def _times(crossing: Crossing, factor: float) -> Crossing:
    return {link: count * factor for link, count in crossing.items()}
