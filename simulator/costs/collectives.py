"""Collectives over all ranks of a cluster: what they send over which links, and how long that takes alone.

A collective is a sequence of phases: a start-up, then flows that begin together. Links come in
classes, one link of each class per rank and direction: on a `TwoLevel` fabric into the fast domain
(`near`) and out of it (`far`); on a torus the share of the narrowest cut (`cut`) and all links of a
chip together (`chip`). Nothing is said here of other collectives that use the links at the same time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from math import ceil, log2

import numpy as np

from simulator.errors import InputError
from simulator.hardware import Cluster, Fabric, Torus, TwoLevel
from simulator.hardware.fabric import Ways
from simulator.quantities import Amount


@dataclass(frozen=True)
class Flows:
    """Equal flows of `bytes` each; `crossing` says how many of them cross one link of a class."""

    bytes: float
    crossing: Mapping[str, float]

    def stretched(self, factor: float) -> "Flows":
        """Return flows that take `factor` times as long."""
        return Flows(self.bytes * factor, self.crossing)


@dataclass(frozen=True)
class Phase:
    """`seconds` that use no link (start-up, local work), then all `flows` at once."""

    seconds: float
    flows: tuple[Flows, ...] = ()

    def stretched(self, factor: float) -> "Phase":
        """Return a phase that takes `factor` times as long."""
        return Phase(self.seconds * factor, tuple(flow.stretched(factor) for flow in self.flows))


@dataclass(frozen=True)
class Network:
    """Collectives among all ranks of `cluster`."""

    cluster: Cluster

    def all_to_all(self, sent: Amount, received: Amount) -> tuple[Phase, ...]:
        """Return the phases in which ranks send and receive so many bytes each, own share included.

        Everybody gets something from the busiest rank, which ends last and so sets the time of all.
        """
        if self.cluster.ranks == 1:
            return ()
        load = np.maximum(sent, received) / self.cluster.speed("network")
        return (_all_to_all(self.cluster.fabric, self.cluster, float(np.max(load))),)

    def all_reduce(self, size: float) -> tuple[Phase, ...]:
        """Return the phases that add up a vector of `size` bytes over all ranks."""
        if self.cluster.ranks == 1:
            return ()
        slowest = float(np.min(self.cluster.speed("network")))  # a ring runs at the pace of its slowest link
        return _all_reduce(self.cluster.fabric, self.cluster, size / slowest)

    @property
    def rates(self) -> dict[str, float]:
        """Bytes/s of one link of each class."""
        return _rates(self.cluster.fabric, self.cluster)

    def alone(self, phases: Sequence[Phase]) -> float:
        """Return the seconds of `phases` with the network to themselves: the busiest link sets each."""
        return sum(phase.seconds + self._busiest_link(phase.flows) for phase in phases)

    def _busiest_link(self, flows: Sequence[Flows]) -> float:
        rates, load = self.rates, dict.fromkeys(self.rates, 0.0)
        for flow in flows:
            for link, crossing in flow.crossing.items():
                load[link] += flow.bytes * crossing
        return max(load[link] / rates[link] for link in load)

    @property
    def all_to_all_algorithm(self) -> str:
        """The algorithm that `all_to_all` assumes."""
        return "direct"

    @property
    def all_reduce_algorithm(self) -> str:
        """The algorithm that `all_reduce` assumes."""
        domain = self.cluster.fabric.domain_size(self.cluster.per_host)
        return "ring" if domain >= self.cluster.ranks else "hierarchical ring"


@dataclass(frozen=True)
class _Levels:
    """How `ranks` split into domains: `inside` ranks each, `domains` of them."""

    ranks: int
    inside: int
    domains: int

    @classmethod
    def of(cls, cluster: Cluster) -> "_Levels":
        inside = min(cluster.fabric.domain_size(cluster.per_host), cluster.ranks)
        return cls(cluster.ranks, inside, ceil(cluster.ranks / inside))


def _unknown(what: str, fabric: Fabric) -> InputError:
    return InputError(f"no {what} is known on a {type(fabric).__name__} fabric")


@singledispatch
def _rates(fabric: Fabric, cluster: Cluster) -> dict[str, float]:
    if not isinstance(fabric, Ways):
        raise _unknown("link", fabric)
    return dict(fabric.rates)


@_rates.register
def _(fabric: TwoLevel, cluster: Cluster) -> dict[str, float]:
    return {"near": fabric.fast.rate, "far": fabric.slow(cluster.ranks).rate}


@_rates.register
def _(fabric: Torus, cluster: Cluster) -> dict[str, float]:
    """Half of a chip's bytes cross the narrowest cut, half of them each way: a quarter of all."""
    cut = 4 * fabric.bisection_bandwidth() / cluster.ranks
    return {"cut": cut, "chip": fabric.injection_bandwidth()}


@singledispatch
def _all_to_all(fabric: Fabric, cluster: Cluster, size: float) -> Phase:
    """One flow to every other rank, each on the way that the fabric routes it."""
    if not isinstance(fabric, Ways):
        raise _unknown("all-to-all", fabric)
    part = size / cluster.ranks
    return Phase(fabric.start_up, tuple(Flows(part, crossing) for crossing in fabric.all_pairs()))


@_all_to_all.register
def _(fabric: TwoLevel, cluster: Cluster, size: float) -> Phase:
    """One flow to every other rank; near and far ones go their own ways at the same time."""
    levels, part = _Levels.of(cluster), size / cluster.ranks
    near = Flows(part, {"near": levels.inside - 1})
    if levels.domains == 1:
        return Phase(fabric.within_latency, (near,))
    far = Flows(part, {"far": levels.ranks - levels.inside})
    return Phase(fabric.between_latency, (near, far) if levels.inside > 1 else (far,))


@_all_to_all.register
def _(fabric: Torus, cluster: Cluster, size: float) -> Phase:
    """Every byte crosses as many of the chips' links as it has hops on average (our derivation)."""
    hops = fabric.average_hops()
    return Phase(fabric.hop_latency * hops, (Flows(size, {"cut": 1.0, "chip": hops}),))


@singledispatch
def _all_reduce(fabric: Fabric, cluster: Cluster, size: float) -> tuple[Phase, ...]:
    """Rings inside domains and between them, as on two levels, on the links that neighbours use."""
    if not isinstance(fabric, Ways):
        raise _unknown("all-reduce", fabric)
    levels, found = _Levels.of(cluster), []
    if levels.inside > 1:
        found.append(Phase(fabric.start_up, _ring_over(levels.inside, size, fabric.to_neighbour(near=True))))
    if levels.domains > 1:
        far = _ring_over(levels.domains, size / levels.inside, fabric.to_neighbour(near=False))
        found.append(Phase(fabric.start_up * log2(levels.domains), far))
    return tuple(found)


@_all_reduce.register
def _(fabric: TwoLevel, cluster: Cluster, size: float) -> tuple[Phase, ...]:
    """Reduce-scatter in the domain, ring all-reduce of each shard between domains, all-gather.

    The start-up between domains was measured between two and grows with log2 of their number, as
    tuned libraries show at scale. The two near phases are put together, before the far one.
    """
    levels = _Levels.of(cluster)
    near = Phase(fabric.within_latency, _ring(levels.inside, size, "near"))
    far = Phase(
        fabric.between_latency * log2(levels.domains), _ring(levels.domains, size / levels.inside, "far")
    )
    return tuple(phase for phase in (near, far) if phase.flows)


@_all_reduce.register
def _(fabric: Torus, cluster: Cluster, size: float) -> tuple[Phase, ...]:
    """Rings along all axes at once use every link of a chip."""
    furthest = sum(fabric.dims) / 2 if fabric.wrap else sum(fabric.dims)
    return (Phase(2 * furthest * fabric.hop_latency, _ring(cluster.ranks, size, "chip")),)


def _ring(ranks: int, size: float, link: str) -> tuple[Flows, ...]:
    return _ring_over(ranks, size, {link: 1.0})


def _ring_over(ranks: int, size: float, crossing: Mapping[str, float]) -> tuple[Flows, ...]:
    """A ring over n ranks moves 2 (n - 1) / n of the vector per rank (Patarasuk and Yuan, 2009)."""
    return (Flows(2 * (ranks - 1) / ranks * size, crossing),) if ranks > 1 else ()
