"""Fabrics described link by link: a plan of hosts, NICs and switches, or a custom graph from a file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.hardware.crossings import Crossings, Listed
from simulator.hardware.fabric import Crossing, PeerClass, WayOut, no_way_out
from simulator.hardware.graphs import FabricGraph, FoldedRoutes, PairClass, Wiring, fold, route
from simulator.hardware.graphs.grouping import Places
from simulator.hardware.graphs.links_by_block import links_by_block
from simulator.hardware.graphs.routes import Routes
from simulator.quantities import FloatArray, Group, IntArray

NEAR = ("same PCIe switch", "same host", "same domain")
ELSEWHERE = ("other rail", "same unit, other rail")
CARDS = ("nic out", "nic in")
ROUNDING = 1e-9


def _finite(names: tuple[str, ...], capacity: np.ndarray, efficiency: float) -> dict[str, float]:
    rates = zip(names, capacity * efficiency, strict=True)
    return {name: float(rate) for name, rate in rates if np.isfinite(rate)}


def _kind(pair: PairClass) -> str:
    return pair.name.split(" (")[0]


def _is_near(pair: PairClass) -> bool:
    return pair.name.startswith(NEAR)


def _is_off(pair: PairClass) -> bool:
    return pair.name.startswith(ELSEWHERE)


@dataclass(frozen=True)
class Wired:
    """A `Wiring` as the fabric of a cluster, folded into classes of alike links and pairs.

    `start_up` is the fixed time of a collective as software sees it; the latencies of the cables come
    on top, those of the longest way, once for each message that is waited for. `efficiency` is the share
    of nominal rates that large transfers reach. Raises InputError on impossible values.
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

    def together(self, group: Group | None) -> int:
        """Return how many members of a group share a fast domain, on average."""
        if group is None:
            first = self.plan.groups[0]
            return min(self.domain_size(first.per_host), self.plan.ranks)
        return max(1, round(Places(self.plan, group).domain + 1))

    def peers(self, group: Group | None) -> tuple[PeerClass, ...]:
        """Return one class for each class of pairs that the group has."""
        return tuple(
            PeerClass(
                pair.peers * share, _is_near(pair), pair.latency, self._crossing(row * share), _is_off(pair)
            )
            for pair, row, share in self._shares(group)
        )

    def to_neighbour(self, near: bool, group: Group | None) -> Crossing:
        """Return the crossing of a ring: hosts that follow each other meet as early as they can."""
        for pair, row, _ in self._shares(group):
            if _is_near(pair) == near:
                return self._crossing(row / pair.peers)
        raise InputError(
            f"no two ranks of this fabric are {'in one domain' if near else 'in different domains'}"
        )

    @property
    def on_host_links(self) -> bool:
        """Whether domains are wired over PCIe."""
        return any(group.inside.on_host_links for group in self.plan.groups)

    def way_out(self, per_host: int) -> WayOut:
        """Return an even part of the cards, or of the links to them where those are slower."""
        parts = [part for group in self.plan.groups for part in group.even_parts_out()]
        if not parts:
            raise no_way_out("wired")
        cards = tuple(name for name in self.rates if name.startswith(CARDS))
        return WayOut(min(parts) * self.efficiency, cards)

    def _shares(self, group: Group | None) -> Iterator[tuple[PairClass, FloatArray, float]]:
        """Yield each class of pairs, its flows in an all-to-all over all ranks, the group's share."""
        kinds = dict.fromkeys(map(_kind, self.folded.pairs), 0.0)
        for pair in self.folded.pairs:
            kinds[_kind(pair)] += pair.pairs / self.plan.ranks
        mine = kinds if group is None else Places(self.plan, group).peers
        for pair, row in zip(self.folded.pairs, self.folded.flows, strict=True):
            kind = _kind(pair)
            share = mine[kind] / kinds[kind] if kinds[kind] else 0.0
            if share > ROUNDING:
                yield pair, row, share

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
        """Return the bytes/s at which a rank can send to its peers in the domain, or through its NICs.

        A rank without peers and NICs can send nothing: 0.
        """
        return next(iter(self.rates.values()), 0.0)

    def bisection_bandwidth(self, ranks: int, per_host: int) -> float:
        """Return the bytes/s between two halves that uniform traffic reaches: a quarter of it crosses."""
        return ranks / 4 * self.efficiency / self.folded.all_to_all_seconds(1.0)

    def crossings(self, ranks: int, per_host: int, group: Group | None = None) -> Crossings:
        """Return the links of the wiring one by one."""
        return links_by_block(self.plan, self.efficiency)


@dataclass(frozen=True)
class CustomFabric:
    """A graph of nodes and links from a file, every link on its own; ranks come in its order."""

    graph: FabricGraph
    start_up: float = 0.0
    efficiency: float = 1.0

    @property
    def on_host_links(self) -> bool:
        """No: the graph does not say which of its links those are."""
        return False

    def way_out(self, per_host: int) -> WayOut:
        """Raise InputError: the graph does not say what leads out."""
        raise no_way_out("custom")

    @cached_property
    def _routes(self) -> Routes:
        return route(self.graph)

    @cached_property
    def rates(self) -> Mapping[str, float]:
        """Bytes/s that each link reaches."""
        links = self.graph.links
        return _finite(tuple(links.names), np.asarray(links.capacity), self.efficiency)

    def together(self, group: Group | None) -> int:
        """Return all members: a custom graph is one domain."""
        return len(self.graph.ranks) if group is None else group.size

    def peers(self, group: Group | None) -> tuple[PeerClass, ...]:
        """Return all pairs as one class: their flows proceed together, at the pace of the busiest link."""
        pairs = self._pairs(group)
        latency = float((self._routes.latencies() * pairs).max())
        return (PeerClass(float(pairs.sum(axis=1).mean()), True, latency, self._crossing(pairs)),)

    def to_neighbour(self, near: bool, group: Group | None) -> Crossing:
        """Return the crossing of a ring through all ranks of a group in order."""
        ranks = np.arange(len(self.graph.ranks))
        numbers = self._groups(group)
        ring = np.zeros((len(ranks), len(ranks)))
        for number in np.unique(numbers):
            members = ranks[numbers == number]
            ring[members, np.roll(members, -1)] = 1.0
        return self._crossing(ring)

    def _groups(self, group: Group | None) -> IntArray:
        ranks = np.arange(len(self.graph.ranks))
        if group is None:
            return np.zeros_like(ranks)
        return ranks // (group.size * group.stride) * group.stride + ranks % group.stride

    def _pairs(self, group: Group | None) -> FloatArray:
        """Return 1 for each ordered pair of one group, (R, R)."""
        numbers = self._groups(group)
        return np.asarray((numbers[:, None] == numbers) & ~np.eye(len(numbers), dtype=bool), float)

    def _crossing(self, traffic: FloatArray) -> Crossing:
        loads = zip(self.graph.links.names, self._routes.loads(traffic), strict=True)
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
        """Return the bytes/s of the slowest link, a bound that holds for every rank; 0 without links."""
        return min(self.rates.values(), default=0.0)

    def bisection_bandwidth(self, ranks: int, per_host: int) -> float:
        """Return the bytes/s between two halves that uniform traffic reaches."""
        return ranks / 4 * self.efficiency / self._routes.all_to_all_seconds(1.0)

    def crossings(self, ranks: int, per_host: int, group: Group | None = None) -> Crossings:
        """Return the links of the graph."""
        routes, links = self._routes, self.graph.links
        capacity = np.asarray(links.capacity) * self.efficiency
        ends = [
            np.flatnonzero((links.tails == node) | (links.heads == node)) for node in self.graph.rank_nodes
        ]
        beside = np.stack([np.repeat(np.arange(len(ends)), [len(own) for own in ends]), np.concatenate(ends)])
        return Listed(tuple(links.names), capacity, routes.start, routes.link, routes.share, beside)
