"""Routes of all pairs of ranks as sparse arrays: which links a flow crosses, and which share of it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulator.errors import InputError
from simulator.hardware.graphs import soundness
from simulator.hardware.graphs.fabric_graph import FabricGraph
from simulator.hardware.graphs.links import Links, NextHops
from simulator.quantities import FloatArray, IntArray

_SOURCES_AT_ONCE = 32  # bounds the memory of the walk


@dataclass(frozen=True, eq=False)
class Routes:
    """The ways between R ranks over L links, in compressed rows.

    A flow from s to d sends the share `share[i]` of its bytes over `links` number `link[i]`, for i from
    `start[s * R + d]` to `start[s * R + d + 1]`, in order of the way. A rank needs no link to itself.
    """

    ranks: tuple[str, ...]
    links: Links
    start: IntArray
    link: IntArray
    share: FloatArray

    def way(self, source: int, target: int) -> dict[str, float]:
        """Return the share of a flow that each link carries, by the links' names."""
        row = source * len(self.ranks) + target
        span = slice(self.start[row], self.start[row + 1])
        names = [self.links.names[link] for link in self.link[span]]
        return dict(zip(names, self.share[span].tolist(), strict=True))

    def loads(self, traffic: FloatArray) -> FloatArray:
        """Return the bytes that cross each link, (L,), for `traffic[s, d]` bytes from s to d, (R, R)."""
        each = np.repeat(traffic.ravel(), np.diff(self.start))
        return summed(self.link, each * self.share, len(self.links))

    def seconds(self, traffic: FloatArray) -> float:
        """Return the time in which the busiest link carries its bytes; latency not included."""
        return float(np.max(self.loads(traffic) / self.links.capacity, initial=0.0))

    def busiest(self, traffic: FloatArray) -> str:
        """Return the name of the link that needs longest."""
        return self.links.names[int(np.argmax(self.loads(traffic) / self.links.capacity))]

    def all_to_all_seconds(self, bytes_per_rank: float) -> float:
        """Return `seconds` when each rank spreads so many bytes, its own share included, over all."""
        size = len(self.ranks)
        return self.seconds(np.full((size, size), bytes_per_rank / size))

    def latencies(self) -> FloatArray:
        """Return the latency from rank to rank in seconds, (R, R); the mean where ways are split."""
        pair = np.repeat(np.arange(len(self.ranks) ** 2), np.diff(self.start))
        each = self.share * self.links.latency[self.link]
        return summed(pair, each, len(self.ranks) ** 2).reshape(len(self.ranks), -1)


def route(fabric: FabricGraph) -> Routes:
    """Return the ways of all pairs.

    Raises InputError above `soundness.EVERY_PAIR` ranks: pairs grow with the square; `fold` does not.
    """
    size = len(fabric.ranks)
    if size > soundness.EVERY_PAIR:
        limit = f"all pairs are routed up to {soundness.EVERY_PAIR} ranks"
        raise InputError(f"{fabric.name} has {size} ranks; {limit}: fold it instead")
    blocks = [_walk(fabric, sources) for sources in _blocks(size)]
    counts, link, share = (np.concatenate(column) for column in zip(*blocks, strict=True))
    start = np.concatenate([[0], np.cumsum(counts)])
    return Routes(fabric.ranks, fabric.links, start, link, share)


def summed(place: IntArray, amount: FloatArray, size: int = 0) -> FloatArray:
    """Return the sums of `amount` by `place`, at least `size` of them."""
    return np.asarray(np.bincount(place, amount, minlength=size), np.float64)


def _blocks(size: int) -> Iterator[IntArray]:
    firsts = range(0, size, _SOURCES_AT_ONCE)
    return (np.arange(first, min(first + _SOURCES_AT_ONCE, size)) for first in firsts)


_Step = tuple[IntArray, IntArray, FloatArray]


def _walk(fabric: FabricGraph, sources: IntArray) -> _Step:
    """Follow the flows from `sources` hop by hop; return links per pair, and link and share by pair."""
    size, nodes = len(fabric.ranks), fabric.rank_nodes
    pair = (sources[:, None] * size + np.arange(size)).ravel()
    pair = pair[pair // size != pair % size]
    here, share = nodes[pair // size], np.ones(len(pair))
    steps: list[_Step] = [(pair[:0], pair[:0], share[:0])]
    there, uneven = np.zeros(size * size, bool), False
    while len(pair):
        parent, link, part = _spread(fabric.next_hops, here * size + pair % size)
        pair, share, here = pair[parent], share[parent] * part, fabric.links.heads[link]
        steps.append((pair, link, share))
        under_way = here != nodes[pair % size]
        there[pair[~under_way]] = True
        uneven |= bool(there[pair[under_way]].any())
        pair, here, share = _merge(pair[under_way], here[under_way], share[under_way])
    pair, link, share = _in_order(steps)
    if uneven:
        pair, link, share = _once(pair, link, share)
    return np.bincount(pair - sources[0] * size, minlength=len(sources) * size), link, share


def _spread(hops: NextHops, row: IntArray) -> _Step:
    """Return, for each next link of each row: the row's position, the link, its share."""
    first, count = hops.start[row], hops.start[row + 1] - hops.start[row]
    parent = np.repeat(np.arange(len(row)), count)
    offset = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
    return parent, hops.link[first[parent] + offset], 1.0 / count[parent]


def _merge(pair: IntArray, here: IntArray, share: FloatArray) -> _Step:
    """Add up the shares of a flow that met again at one node."""
    if not np.any(pair[1:] == pair[:-1]):
        return pair, here, share
    width = int(here.max()) + 1
    key, index = np.unique(pair * width + here, return_inverse=True)
    return key // width, key % width, summed(index, share)


def _in_order(steps: list[_Step]) -> _Step:
    pair, link, share = (np.concatenate(column) for column in zip(*steps, strict=True))
    order = np.argsort(pair, kind="stable")
    return pair[order], link[order], share[order]


def _once(pair: IntArray, link: IntArray, share: FloatArray) -> _Step:
    """Keep one entry for each link of a pair, where it came first.

    A flow comes over one link at two steps only where equally cheap ways of unequal length have met.
    """
    key = pair * (int(link.max()) + 1) + link
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    kept = np.sort(first)
    return pair[kept], link[kept], summed(index, share)[index[kept]]
