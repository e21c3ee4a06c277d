"""Fabrics described link by link: a plan of hosts, NICs and switches, or a custom graph from a file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.hardware.fabric import Crossing
from simulator.hardware.graphs import FabricGraph, FoldedRoutes, Wiring, fold, route

NEAR = ("same PCIe switch", "same host", "same domain")


def _finite(names: tuple[str, ...], capacity: np.ndarray, efficiency: float) -> dict[str, float]:
    rates = zip(names, capacity * efficiency, strict=True)
    return {name: float(rate) for name, rate in rates if np.isfinite(rate)}


@dataclass(frozen=True)
class Wired:
    """A `Wiring` as the fabric of a cluster, folded into classes of alike links and pairs.

    `start_up` is the fixed time of a collective as software sees it (the latencies of the cables
    come on top); `efficiency` the share of nominal rates that large transfers reach. Raises
    InputError on impossible values.
    """

    plan: Wiring
    start_up: float = 0.0
    efficiency: float = 1.0

    def __post_init__(self) -> None:
        """Check the values."""
        checks.not_negative("fabric", start_up=self.start_up)
        checks.shares("fabric", efficiency=self.efficiency)

    @cached_property
    def folded(self) -> FoldedRoutes:
        """Classes of links and pairs."""
        return fold(self.plan)

    @cached_property
    def rates(self) -> Mapping[str, float]:
        """Bytes/s that one link of each class reaches; joints without a limit are left out."""
        names = tuple(link.name for link in self.folded.links)
        return _finite(names, self.folded.capacity, self.efficiency)

    def all_pairs(self) -> tuple[Crossing, ...]:
        """Return one mapping for each class of pairs."""
        return tuple(self._crossing(row) for row in self.folded.flows)

    def to_neighbour(self, near: bool) -> Crossing:
        """Return the crossing of a ring: hosts that follow each other meet as early as they can."""
        for pair, row in zip(self.folded.pairs, self.folded.flows, strict=True):
            if pair.name.startswith(NEAR) == near and pair.peers:
                return self._crossing(row / pair.peers)
        raise InputError(
            f"no two ranks of this fabric are {'in one domain' if near else 'in different domains'}"
        )

    def _crossing(self, row: np.ndarray) -> Crossing:
        links = zip(self.folded.links, row, strict=True)
        return {link.name: float(count) for link, count in links if count > 0 and link.name in self.rates}

    def domain_size(self, per_host: int) -> int:
        """Return the accelerators of one fast domain."""
        return self.plan.groups[0].domain_hosts * per_host

    def check(self, ranks: int, per_host: int) -> None:
        """Raise InputError unless the plan has these ranks in hosts of this size."""
        if ranks != self.plan.ranks or any(group.per_host != per_host for group in self.plan.groups):
            raise InputError(
                f"the fabric is wired for {self.plan.ranks} accelerators, the cluster has {ranks}"
            )

    def resized(self, ranks: int) -> "Wired":
        """Return the fabric with another number of hosts."""
        return replace(self, plan=self.plan.resized(ranks))

    def injection_bandwidth(self) -> float:
        """Return the bytes/s at which a rank can send to its peers in the domain, or through its NICs."""
        return next(iter(self.rates.values()))

    def bisection_bandwidth(self, ranks: int, per_host: int) -> float:
        """Return the bytes/s between two halves that uniform traffic reaches: a quarter of it crosses."""
        return ranks / 4 * self.efficiency / self.folded.all_to_all_seconds(1.0)


@dataclass(frozen=True)
class CustomFabric:
    """A graph of nodes and links from a file, every link on its own; ranks come in its order."""

    graph: FabricGraph
    start_up: float = 0.0
    efficiency: float = 1.0

    @cached_property
    def _loads(self) -> np.ndarray:
        ranks = len(self.graph.ranks)
        return np.asarray(route(self.graph).loads(np.ones((ranks, ranks)) - np.eye(ranks)))

    @cached_property
    def rates(self) -> Mapping[str, float]:
        """Bytes/s that each link reaches."""
        links = self.graph.links
        return _finite(tuple(links.names), np.asarray(links.capacity), self.efficiency)

    def all_pairs(self) -> tuple[Crossing, ...]:
        """Return all pairs as one class: their flows proceed together, at the pace of the busiest link."""
        loads = zip(self.graph.links.names, self._loads, strict=True)
        return ({name: float(load) for name, load in loads if load > 0 and name in self.rates},)

    def to_neighbour(self, near: bool) -> Crossing:
        """Return the crossing of a ring through all ranks in order; a custom graph is one domain."""
        ranks = len(self.graph.ranks)
        ring = np.roll(np.eye(ranks), 1, axis=1)
        loads = zip(self.graph.links.names, route(self.graph).loads(ring), strict=True)
        return {name: float(load) for name, load in loads if load > 0 and name in self.rates}

    def domain_size(self, per_host: int) -> int:
        """Return all ranks."""
        return len(self.graph.ranks)

    def check(self, ranks: int, per_host: int) -> None:
        """Raise InputError unless the graph has exactly `ranks` accelerators."""
        if ranks != len(self.graph.ranks):
            raise InputError(
                f"the custom fabric has {len(self.graph.ranks)} accelerators, the cluster has {ranks}"
            )

    def resized(self, ranks: int) -> "CustomFabric":
        """Return itself: a custom graph has no other size. Raises InputError when asked for one."""
        self.check(ranks, 1)
        return self

    def injection_bandwidth(self) -> float:
        """Return the bytes/s of the slowest link: a bound that holds for every rank."""
        return min(self.rates.values())

    def bisection_bandwidth(self, ranks: int, per_host: int) -> float:
        """Return the bytes/s between two halves that uniform traffic reaches."""
        return ranks / 4 * self.efficiency / route(self.graph).all_to_all_seconds(1.0)
