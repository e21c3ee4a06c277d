"""The critical cycle: the exact period of a pipeline with fixed durations, and its bottleneck.

The period of a timed marked graph is the largest ratio (sum of durations / sum of lags) over its
cycles (Baccelli, Cohen, Olsder, Quadrat, "Synchronization and Linearity", 1992, theorem 3.28).
It is found by raising a guess: as long as some cycle has a positive sum of duration - guess * lag,
its own ratio is the next guess. All arithmetic is on integers, so the answer is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from simulator.pipeline.compiled import Edge, MarkedGraph


@dataclass(frozen=True)
class CriticalCycle:
    """The cycle that sets the pace: its edges in order of time, and nanoseconds per cycle of batches."""

    edges: tuple[Edge, ...]
    ratio: Fraction

    def period_ns(self, graph: MarkedGraph) -> Fraction:
        """Return nanoseconds per batch (a cycle of the graph covers `graph.period` batches)."""
        return self.ratio / graph.period


def critical_cycle(nodes: int, edges: Sequence[Edge], duration_ns: Sequence[int]) -> CriticalCycle:
    """Return the cycle with the largest ratio of durations (whole ns, by node) to lags.

    The graph must be free of deadlock and contain a cycle. Ties are broken by edge order.
    """
    ratio, best = Fraction(-1), None
    while True:
        cycle = _improving_cycle(nodes, edges, duration_ns, ratio)
        if cycle is None:
            break
        ratio, best = _ratio(cycle, duration_ns), cycle
    if best is None:
        raise ValueError("the graph has no cycle")
    return CriticalCycle(best, ratio)


def _ratio(cycle: Sequence[Edge], duration_ns: Sequence[int]) -> Fraction:
    return Fraction(sum(duration_ns[e.target] for e in cycle), sum(e.lag for e in cycle))


def _improving_cycle(
    nodes: int, edges: Sequence[Edge], duration_ns: Sequence[int], ratio: Fraction
) -> tuple[Edge, ...] | None:
    """Return a cycle whose sum of duration - ratio * lag is positive, or None."""
    top, bottom = ratio.numerator, ratio.denominator
    weighted = [(e.source, e.target, duration_ns[e.target] * bottom - top * e.lag, e) for e in edges]
    reach = [0] * nodes
    parent: list[Edge | None] = [None] * nodes
    while _raise_all(weighted, reach, parent):
        cycle = _parent_cycle(parent)
        if cycle:
            return cycle
    return None


def _raise_all(
    weighted: list[tuple[int, int, int, Edge]], reach: list[int], parent: list[Edge | None]
) -> bool:
    moved = False
    for source, target, weight, edge in weighted:
        value = reach[source] + weight
        if value > reach[target]:
            reach[target], parent[target], moved = value, edge, True
    return moved


def _parent_cycle(parent: Sequence[Edge | None]) -> tuple[Edge, ...] | None:
    """Return a cycle of the parent graph in order of time; such a cycle always has a positive sum."""
    seen = [-1] * len(parent)
    for start in range(len(parent)):
        node, edge = start, parent[start]
        while seen[node] < 0 and edge is not None:
            seen[node] = start
            node = edge.source
            edge = parent[node]
        if edge is not None and seen[node] == start:
            return _collect(parent, node)
    return None


def _collect(parent: Sequence[Edge | None], start: int) -> tuple[Edge, ...]:
    cycle: list[Edge] = []
    node = start
    while not cycle or node != start:
        edge = parent[node]
        assert edge is not None
        cycle.append(edge)
        node = edge.source
    return tuple(reversed(cycle))
