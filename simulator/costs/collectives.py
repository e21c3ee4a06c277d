"""Collectives over all ranks of a cluster: latency plus bytes over bandwidth, level by level.

No contention between collectives. A `TwoLevel` fabric has a fast domain (a host, a rack) and what
connects domains; a torus has one level. Every function returns seconds; bytes are per rank.
"""

from dataclasses import dataclass
from functools import singledispatch
from math import ceil, log2

import numpy as np

from simulator.errors import InputError
from simulator.hardware import Cluster, Fabric, Torus, TwoLevel
from simulator.quantities import Amount


@dataclass(frozen=True)
class Network:
    """Collectives among all ranks of `cluster`."""

    cluster: Cluster

    def all_to_all(self, sent: Amount, received: Amount) -> float:
        """Return the time in which ranks send and receive so many bytes each, own share included.

        Everybody gets something from the busiest rank, which ends last and so sets the time of all.
        """
        if self.cluster.ranks == 1:
            return 0.0
        load = np.maximum(sent, received) / self.cluster.speed("network")
        busiest = float(np.max(load))
        return _all_to_all(self.cluster.fabric, self.cluster, busiest)

    def all_reduce(self, size: float) -> float:
        """Return the time to add up a vector of `size` bytes over all ranks."""
        if self.cluster.ranks == 1:
            return 0.0
        slowest = float(np.min(self.cluster.speed("network")))  # a ring runs at the pace of its slowest link
        return _all_reduce(self.cluster.fabric, self.cluster, size / slowest)

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


@singledispatch
def _all_to_all(fabric: Fabric, cluster: Cluster, size: float) -> float:
    raise InputError(f"no all-to-all is known on a {type(fabric).__name__} fabric")


@_all_to_all.register
def _(fabric: TwoLevel, cluster: Cluster, size: float) -> float:
    """Both levels work at once; a rank sends (inside - 1) / n of its bytes near and the rest far."""
    levels = _Levels.of(cluster)
    near = size * ((levels.inside - 1) / levels.ranks) / fabric.fast.rate
    if levels.domains == 1:
        return fabric.within_latency + near
    far = size * ((levels.ranks - levels.inside) / levels.ranks) / fabric.slow(levels.ranks).rate
    return fabric.between_latency + max(near, far)


@_all_to_all.register
def _(fabric: Torus, cluster: Cluster, size: float) -> float:
    """The busier of the narrowest cut, which a quarter of all bytes cross each way, and all links.

    All links carry size * average hops per chip (our derivation; equal on an even, regular torus).
    """
    cut = cluster.ranks * size / 4 / fabric.bisection_bandwidth()
    links = size * fabric.average_hops() / fabric.injection_bandwidth()
    return fabric.hop_latency * fabric.average_hops() + max(cut, links)


@singledispatch
def _all_reduce(fabric: Fabric, cluster: Cluster, size: float) -> float:
    raise InputError(f"no all-reduce is known on a {type(fabric).__name__} fabric")


@_all_reduce.register
def _(fabric: TwoLevel, cluster: Cluster, size: float) -> float:
    """Reduce-scatter in the domain, ring all-reduce of each shard between domains, all-gather.

    The start-up between domains was measured between two and grows with log2 of their number, as
    tuned libraries show at scale.
    """
    levels = _Levels.of(cluster)
    slow = fabric.slow(levels.ranks)
    near = _ring(levels.inside, size, fabric.fast.rate)
    far = _ring(levels.domains, size / levels.inside, slow.rate)
    start_up = fabric.within_latency * (levels.inside > 1) + slow.latency * log2(levels.domains)
    return near + far + start_up


@_all_reduce.register
def _(fabric: Torus, cluster: Cluster, size: float) -> float:
    """Rings along all axes at once use every link of a chip."""
    furthest = sum(fabric.dims) / 2 if fabric.wrap else sum(fabric.dims)
    return _ring(cluster.ranks, size, fabric.injection_bandwidth()) + 2 * furthest * fabric.hop_latency


def _ring(ranks: int, size: float, rate: float) -> float:
    """A ring over n ranks moves 2 (n - 1) / n of the vector per rank (Patarasuk and Yuan, 2009)."""
    return 2 * (ranks - 1) / ranks * size / rate
