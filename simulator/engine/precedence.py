"""What a marked graph says of order before anything runs: who can never overlap, which edges say nothing new.

The least lag of a path from u to v tells that v of cycle m begins after u of cycle m - lag has ended.
Only edges of non-negative lag count: a path of those stays within the run, at its start and end too.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simulator.pipeline import MarkedGraph
from simulator.pipeline.compiled import Edge
from simulator.quantities import IntArray

MOST_NODES = 400  # beyond, the search costs more than it saves: it is cubic in the nodes
NO_PATH = 1 << 40


@dataclass(frozen=True, eq=False)
class Precedence:
    """The order that `graph` imposes on its instances; in a large graph none is seen, which is safe."""

    graph: MarkedGraph

    @cached_property
    def may_overlap(self) -> NDArray[np.bool_]:
        """Whether an instance of one node can run while one of the other does, (nodes, nodes).

        v(m) begins after u(m - a) ends, and u(m) after v(m - b): with a + b = 1 each pair of instances
        is in order, provided that the instances of u are, and those of v.
        """
        if self._large:
            return np.ones((self._count, self._count), dtype=np.bool_)
        overlap: NDArray[np.bool_] = self._least + self._least.T > 1
        alone = ~self._in_turn
        overlap[alone] = overlap[:, alone] = True
        np.fill_diagonal(overlap, alone)
        return overlap

    @cached_property
    def needed(self) -> tuple[Edge, ...]:
        """The edges that say something which no other path says: those left by transitive reduction."""
        once = {(edge.source, edge.target, edge.lag): edge for edge in self.graph.edges}
        return tuple(edge for edge in once.values() if self._large or not self._redundant(edge))

    def _redundant(self, edge: Edge) -> bool:
        """A path of the same lag says the same; one of less lag does where `source` runs in turn."""
        detour = self._detour[edge.source, edge.target]
        return bool(detour == edge.lag or (detour < edge.lag and self._in_turn[edge.source]))

    @cached_property
    def _least(self) -> IntArray:
        """Least lag over paths of one edge or more, (nodes, nodes), by Floyd and Warshall."""
        least = np.full((self._count, self._count), NO_PATH, dtype=np.int64)
        for edge in self._forward:
            least[edge.source, edge.target] = min(edge.lag, least[edge.source, edge.target])
        for via in range(self._count):
            np.minimum(least, least[:, via, None] + least[None, via, :], out=least)
        return least

    @cached_property
    def _detour(self) -> IntArray:
        """Least lag over paths of at least two edges, (nodes, nodes)."""
        detour = np.full_like(self._least, NO_PATH)
        for edge in self._forward:
            np.minimum(detour[edge.source], edge.lag + self._least[edge.target], out=detour[edge.source])
        return detour

    @cached_property
    def _in_turn(self) -> NDArray[np.bool_]:
        """Whether each instance of a node waits for the one before it."""
        following: NDArray[np.bool_] = np.diagonal(self._least) == 1
        return following

    @property
    def _forward(self) -> list[Edge]:
        return [edge for edge in self.graph.edges if edge.lag >= 0]

    @property
    def _count(self) -> int:
        return len(self.graph.nodes)

    @property
    def _large(self) -> bool:
        return self._count > MOST_NODES
