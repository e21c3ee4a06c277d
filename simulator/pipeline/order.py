"""Evaluation order and deadlocks, by one shortest-path argument.

An order exists exactly if every cycle of edges has a positive sum of lags. Give edge u -> v the
weight (n + 1) * lag - 1, n nodes: a cycle of at most n edges is negative exactly if its lags sum
to <= 0, so Bellman-Ford either finds a deadlock or returns potentials p with
p[u] + 1 <= p[v] + (n + 1) * lag, and sorting instances by (n + 1) * cycle + p respects every edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from simulator.pipeline.compiled import Edge


@dataclass(frozen=True)
class OrderOrCycle:
    """Either potentials (no deadlock) or the edges of one deadlocked cycle."""

    potential: tuple[int, ...] = ()
    cycle: tuple[Edge, ...] = ()


def negative_cycle_or_potential(nodes: int, edges: Sequence[Edge]) -> OrderOrCycle:
    """Return potentials that order the instances, or the edges of a cycle whose lags sum to <= 0."""
    potential = [0] * nodes
    parent: list[Edge | None] = [None] * nodes
    moved: int | None = 0
    for _ in range(nodes + 1):
        moved = _relax(potential, parent, edges, nodes + 1)
        if moved is None:
            return OrderOrCycle(potential=tuple(potential))
    assert moved is not None
    return OrderOrCycle(cycle=_walk_cycle(parent, moved, nodes))


def _relax(potential: list[int], parent: list[Edge | None], edges: Sequence[Edge], scale: int) -> int | None:
    """Raise every v to at least p[u] + 1 - scale * lag; return a node that moved, if any."""
    moved = None
    for edge in edges:
        least = potential[edge.source] + 1 - scale * edge.lag
        if potential[edge.target] < least:
            potential[edge.target] = least
            parent[edge.target] = edge
            moved = edge.target
    return moved


def _walk_cycle(parent: list[Edge | None], start: int, nodes: int) -> tuple[Edge, ...]:
    node = start
    for _ in range(nodes):  # after n steps back we are certainly on the cycle
        node = _parent(parent, node).source
    first = node
    cycle: list[Edge] = []
    while not cycle or node != first:
        edge = _parent(parent, node)
        cycle.append(edge)
        node = edge.source
    return tuple(cycle)


def _parent(parent: list[Edge | None], node: int) -> Edge:
    edge = parent[node]
    if edge is None:
        raise AssertionError("a node that still moves has a parent")
    return edge
