"""How a fabric picks its ways: shortest paths with equal splitting, or one dimension after the other."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from simulator.hardware.graphs.links import Links, NextHops
from simulator.quantities import FloatArray, IntArray


class Routing(Protocol):
    """A rule that fills the forwarding tables."""

    def next_hops(self, links: Links, ranks: IntArray) -> NextHops:
        """Return the tables towards the nodes `ranks` (R,); rows are `node * R + destination`."""


@dataclass(frozen=True)
class ShortestPaths:
    """Least total cost; a node splits traffic equally over all its links that lie on a least-cost way.

    That is ECMP as switches do it, hop by hop, in the limit of many flows. A node that does not
    forward is never passed through.
    """

    def next_hops(self, links: Links, ranks: IntArray) -> NextHops:
        """Return the tables; a destination that cannot be reached has empty rows."""
        arrive = _distances(links, ranks)
        by_tail = np.argsort(links.tails, kind="stable")
        through = arrive[:, links.heads[by_tail]] + links.cost[by_tail]
        tails, first = np.unique(links.tails[by_tail], return_index=True)
        leave = np.full_like(arrive, np.inf)
        leave[:, tails] = np.minimum.reduceat(through, first, axis=1) if len(links) else np.inf
        best = (through == leave[:, links.tails[by_tail]]) & np.isfinite(through)
        target, position = np.nonzero(best)
        chosen = by_tail[position]
        return NextHops.of(links.tails[chosen] * len(ranks) + target, chosen, arrive.size)


def _distances(links: Links, ranks: IntArray) -> FloatArray:
    """Return (R, V) least costs from each node to each rank, leaving only nodes that forward."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    usable = np.nonzero(links.forwards[links.tails])[0]
    tails, heads, cost = links.tails[usable], links.heads[usable], links.cost[usable]
    order = np.lexsort((cost, tails, heads))
    pair = heads[order] * len(links.nodes) + tails[order]
    order = order[np.unique(pair, return_index=True)[1]]  # of parallel links the cheapest
    shape = (len(links.nodes),) * 2
    backwards: Any = csr_matrix((cost[order], (heads[order], tails[order])), shape=shape)
    found: FloatArray = dijkstra(backwards, indices=ranks)
    return found


@dataclass(frozen=True)
class DimensionOrder:
    """Along the first axis that differs, the shorter way round; both ways equally where they tie.

    For a torus whose nodes stand in row-major order of `dims`; `wrap` says which axes are rings.
    """

    dims: tuple[int, ...]
    wrap: tuple[bool, ...]

    def next_hops(self, links: Links, ranks: IntArray) -> NextHops:
        """Return the tables; nodes and ranks are the same chips."""
        port = self._ports(links)
        size = len(ranks)
        here, there = (grid.ravel() for grid in np.divmod(np.arange(size * size), size))
        away = [there_at - here_at for there_at, here_at in zip(self._at(there), self._at(here), strict=True)]
        rows, chosen = [], []
        todo = np.ones(size * size, bool)
        for axis, distance in enumerate(away):
            for step, goes in enumerate(self._directions(axis, distance)):
                row = np.nonzero(todo & goes)[0]
                rows.append(row)
                chosen.append(port[here[row], axis, step])
            todo &= distance == 0
        return NextHops.of(np.concatenate(rows), np.concatenate(chosen), size * size)

    def _at(self, chips: IntArray) -> tuple[IntArray, ...]:
        return tuple(np.asarray(axis) for axis in np.unravel_index(chips, self.dims))

    def _directions(self, axis: int, distance: IntArray) -> tuple[Any, Any]:
        """Return where to go down and where to go up an axis; both where a ring's ways are equal."""
        length = self.dims[axis]
        if not is_ring(length, self.wrap[axis]):
            return distance < 0, distance > 0
        ahead = distance % length
        return (ahead > 0) & (2 * ahead >= length), (ahead > 0) & (2 * ahead <= length)

    def _ports(self, links: Links) -> IntArray:
        """Return (chips, axes, 2): the link of each chip down and up each axis, -1 where there is none."""
        port = np.full((len(links.nodes), len(self.dims), 2), -1)
        moves = zip(self._at(links.heads), self._at(links.tails), strict=True)
        for axis, (head, tail) in enumerate(moves):
            moved = np.nonzero(head != tail)[0]
            ring, length = is_ring(self.dims[axis], self.wrap[axis]), self.dims[axis]
            step = head[moved] - tail[moved]
            up = step % length == 1 if ring else step == 1
            port[links.tails[moved], axis, up.astype(int)] = moved
        return port


def is_ring(length: int, wrap: bool) -> bool:
    """Whether an axis closes to a ring: two chips have one link whether it wraps or not."""
    return wrap and length > 2
