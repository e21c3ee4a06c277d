"""Fold a symmetric fabric: classes of alike links and alike pairs in place of every link and every pair.

Exact for uniform traffic among all ranks, whatever their number: the sums are closed forms over the
levels of the wiring (our derivation), and equal those over the routed graph.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch

import numpy as np

from simulator.errors import InputError
from simulator.hardware.fabric import Link
from simulator.hardware.graphs.fabric_graph import FabricGraph, labelled
from simulator.hardware.graphs.inside import Counted
from simulator.hardware.graphs.networks import Far
from simulator.hardware.graphs.wiring import Part, Wiring, peers
from simulator.quantities import FloatArray


@dataclass(frozen=True)
class LinkClass:
    """`count` alike directed links: `capacity` in bytes/s and `latency` in seconds of one of them."""

    name: str
    count: int
    capacity: float
    latency: float


@dataclass(frozen=True)
class PairClass:
    """Alike pairs: each of `sources` ranks has `peers` such partners (a mean where ranks differ).

    `latency` is the sum over the links of the way, in seconds.
    """

    name: str
    sources: int
    peers: float
    latency: float

    @property
    def pairs(self) -> float:
        """The number of ordered pairs."""
        return self.sources * self.peers


@dataclass(frozen=True, eq=False)
class FoldedRoutes:
    """What `Routes` says, by class: P classes of pairs, K of links, `ranks` ranks.

    `crossings[p, k]`: how many links of class k one flow of class p crosses, shares of split flows
    added up, the mean over the class.
    """

    ranks: int
    links: tuple[LinkClass, ...]
    pairs: tuple[PairClass, ...]
    crossings: FloatArray

    @cached_property
    def flows(self) -> FloatArray:
        """How many flows of pair class p cross one link of class k in an all-to-all, (P, K)."""
        pairs = np.array([pair.pairs for pair in self.pairs], float)
        count = np.array([link.count for link in self.links], float)
        return np.asarray(self.crossings * pairs[:, None] / count)

    @cached_property
    def capacity(self) -> FloatArray:
        """The bytes/s of one link of each class, (K,)."""
        return np.array([link.capacity for link in self.links])

    def loads(self, bytes_per_flow: float | FloatArray) -> FloatArray:
        """Return the bytes that cross one link of each class, (K,).

        `bytes_per_flow` is one number, or one for each pair class, (P,).
        """
        return np.broadcast_to(np.asarray(bytes_per_flow, float), len(self.pairs)) @ self.flows

    def seconds(self, bytes_per_flow: float | FloatArray) -> float:
        """Return the time in which the busiest link carries its bytes; latency not included."""
        return float(np.max(self.loads(bytes_per_flow) / self.capacity, initial=0.0))

    def busiest(self, bytes_per_flow: float | FloatArray = 1.0) -> LinkClass:
        """Return the link class that needs longest."""
        return self.links[int(np.argmax(self.loads(bytes_per_flow) / self.capacity))]

    def all_to_all_seconds(self, bytes_per_rank: float) -> float:
        """Return `seconds` when each rank spreads so many bytes, its own share included, over all."""
        return self.seconds(bytes_per_rank / self.ranks)


@singledispatch
def fold(fabric: object, ranks: int | None = None) -> FoldedRoutes:
    """Return the folded routes of a plan or of a graph built from one, resized to `ranks` if given.

    Takes a `Wiring`, a `TorusWiring` or a `FabricGraph`; raises InputError for a graph without a plan,
    and where that number of ranks cannot be wired.
    """
    raise InputError(f"a {type(fabric).__name__} cannot be folded")


@fold.register
def _(fabric: FabricGraph, ranks: int | None = None) -> FoldedRoutes:
    if fabric.plan is None:
        raise InputError(f"{fabric.name} is a custom graph: without a plan of levels it cannot be folded")
    return fold(fabric.plan, ranks)


@fold.register
def _(fabric: Wiring, ranks: int | None = None) -> FoldedRoutes:
    wiring = fabric if ranks is None else fabric.resized(ranks)
    links = _link_classes(wiring)
    latency = {link.name: link.latency for link in links}
    found: dict[str, tuple[PairClass, Mapping[str, float]]] = {}
    for pair, crossed in _pair_classes(wiring):
        known = found.get(pair.name)
        more = 0.0 if known is None else known[0].peers
        whole = sum(times * latency[name] for name, times in crossed.items())
        found[pair.name] = replace(pair, peers=pair.peers + more, latency=whole), crossed
    return gathered(wiring.ranks, links, list(found.values()))


def gathered(
    ranks: int, links: list[LinkClass], pairs: list[tuple[PairClass, Mapping[str, float]]]
) -> FoldedRoutes:
    """Return folded routes from pair classes that come with their crossings by link class."""
    crossings = [[crossed.get(link.name, 0.0) for link in links] for _, crossed in pairs]
    matrix = np.array(crossings, float).reshape(len(pairs), len(links))
    return FoldedRoutes(ranks, tuple(links), tuple(pair for pair, _ in pairs), matrix)


def _link_classes(wiring: Wiring) -> list[LinkClass]:
    counts: dict[str, tuple[int, Link]] = {}
    for part in wiring.parts:
        leaf, group, rails = part.leaf, part.group, part.group.rails
        domains = part.ranks // part.domain_ranks
        _count(counts, group.inside.links(part.domain_ranks), part.label, domains)
        if group.nics is None:
            continue
        nics = (part.hosts * rails, group.nics.link)
        _count(counts, {"nic out": nics, "nic in": nics}, part.label, domains)
        _count(counts, wiring.network.leaf_links(rails), leaf.label, leaf.pod.count * leaf.count)
        _count(counts, wiring.network.pod_links(), leaf.pod.label, leaf.pod.count)
    return [LinkClass(name, count, link.rate, link.latency) for name, (count, link) in counts.items()]


def _count(counts: dict[str, tuple[int, Link]], links: Counted, label: str, times: int) -> None:
    """Enter the links of `times` equal places; parts below the same leaf or pod enter its links once."""
    for name, (each, link) in links.items():
        if each:
            counts[labelled(name, label)] = each * times, link


_Classes = Iterator[tuple[PairClass, Mapping[str, float]]]


def _pair_classes(wiring: Wiring) -> _Classes:
    several = len(wiring.parts) > 1
    for here in wiring.parts:
        yield from _near(here, several)
        for there in wiring.parts:
            yield from _far(wiring, here, there, several)


def _near(part: Part, several: bool) -> _Classes:
    whole = "same host" if part.group.domain_hosts == 1 else "same domain"
    for near in part.group.inside.near(part.domain_ranks):
        name = labelled(near.name or whole, _label(part) if several else "")
        if near.peers:
            yield PairClass(name, part.ranks, near.peers, 0.0), Counter(_labelled(near.crossings, part.label))


def _far(wiring: Wiring, here: Part, there: Part, several: bool) -> _Classes:
    pinned = here.group.inside.pins_nics and there.group.inside.pins_nics
    rails = here.group.rails if pinned else 1  # an end that uses all NICs is on every rail
    ends = _label(here) if here == there else f"{_label(here)} to {_label(there)}"
    for level, met in peers(here, there).items():
        for far in wiring.network.far(level, rails) if met else ():
            if far.part == 0:
                continue
            crossed = Counter((*_way_out(here, far), *_way_in(there, far)))
            name = labelled(far.name, ends if several else "")
            yield PairClass(name, here.ranks, met * far.part, 0.0), crossed


def _label(part: Part) -> str:
    return part.label or "whole"


def _labelled(names: Iterable[str], label: str) -> Iterator[str]:
    return (labelled(name, label) for name in names)


def _way_out(part: Part, far: Far) -> Iterator[str]:
    """Yield the links from an accelerator of `part` to the top of the way, past a peer if relayed."""
    inside = part.group.inside
    aside = inside.near(part.domain_ranks)[-1].crossings if far.relayed else ()
    yield from _labelled((*aside, *inside.out, "nic out"), part.label)
    yield from _climb(part, far, "up")


def _way_in(part: Part, far: Far) -> Iterator[str]:
    yield from _labelled((*part.group.inside.into, "nic in"), part.label)
    yield from _climb(part, far, "down")


def _climb(part: Part, far: Far, way: str) -> Iterator[str]:
    labels = {"leaf": part.leaf.label, "pod": part.leaf.pod.label}
    return (labelled(f"{level} {way}", labels[level]) for level in far.climbs)
