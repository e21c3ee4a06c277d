"""The critical cycle of a run: a lower bound on its step, and the stages that set it.

Ranks meet at collectives, so a cycle may pass from one rank to another there. The graph is laid
out once per column, each collective joined by a node of its own: exact up to `MOST_COLUMNS` columns.
Of more, those that are slowest at something are taken; a cycle in part of the ranks bounds all of
them from below.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from simulator.pipeline import MarkedGraph, critical_cycle
from simulator.pipeline.compiled import Edge
from simulator.quantities import IntArray

MOST_COLUMNS = 8


@dataclass(frozen=True)
class Link:
    """One step of the bottleneck: `stage` takes `duration_ns` and is waited for because of `reason`."""

    stage: str
    reason: str
    duration_ns: int
    lag: int


@dataclass(frozen=True)
class Bottleneck:
    """Nanoseconds per batch at least, and the cycle that says so, in order of time."""

    period_ns: Fraction
    links: tuple[Link, ...]

    @property
    def stages(self) -> list[str]:
        """Names of the stages on the cycle."""
        return [link.stage for link in self.links]


def find_bottleneck(graph: MarkedGraph, nominal_ns: IntArray) -> Bottleneck:
    """Return the critical cycle for durations of shape (nodes, columns), whole ns."""
    distinct_ns = np.unique(nominal_ns, axis=1)
    layout = _Layout(graph, distinct_ns[:, _slowest_columns(distinct_ns)])
    cycle = critical_cycle(layout.size, list(layout.edges()), layout.durations)
    links = tuple(link for edge in cycle.edges if (link := layout.link(edge)))
    return Bottleneck(cycle.ratio / graph.period, links)


def _slowest_columns(nominal_ns: IntArray) -> list[int]:
    """Return all columns if they are few; else those slowest over all, and at each node, that many."""
    if nominal_ns.shape[1] <= MOST_COLUMNS:
        return list(range(nominal_ns.shape[1]))
    wanted = [int(np.argmax(nominal_ns.sum(axis=0))), *np.argmax(nominal_ns, axis=1).tolist()]
    return list(dict.fromkeys(wanted))[:MOST_COLUMNS]


class _Layout:
    """Node numbers: node * columns + column, then one meeting per collective."""

    def __init__(self, graph: MarkedGraph, nominal_ns: IntArray) -> None:
        self.graph = graph
        self.columns = nominal_ns.shape[1]
        collectives = [i for i, node in enumerate(graph.nodes) if node.stage.work.rendezvous]
        base = len(graph.nodes) * self.columns
        self.meeting = (
            {node: base + place for place, node in enumerate(collectives)} if self.columns > 1 else {}
        )
        self.size = base + len(self.meeting)
        self.durations: Sequence[int] = [*nominal_ns.ravel().tolist(), *[0] * len(self.meeting)]

    def edges(self) -> Iterator[Edge]:
        """Yield all edges; those into a collective go to its meeting, which all columns wait for."""
        for edge in self.graph.edges:
            for column in range(self.columns):
                target = self.meeting.get(edge.target, edge.target * self.columns + column)
                yield Edge(edge.source * self.columns + column, target, edge.lag, edge.reason)
        for node, meeting in self.meeting.items():
            for column in range(self.columns):
                yield Edge(meeting, node * self.columns + column, 0, "meets")

    def link(self, edge: Edge) -> Link | None:
        """Return the step that an edge stands for, or None for the step out of a meeting."""
        if edge.source >= len(self.graph.nodes) * self.columns:
            return None
        node = edge.source // self.columns
        return Link(self.graph.nodes[node].name, edge.reason, self.durations[edge.source], edge.lag)
