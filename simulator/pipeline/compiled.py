"""The compiled form of a pipeline: a timed marked graph in an order that can be evaluated."""

from dataclasses import dataclass
from functools import cached_property

from simulator.pipeline.stage import Pipeline, Stage


@dataclass(frozen=True, eq=False)
class Node:
    """One run of a stage per cycle of `period` batches; `residue` is its batch within the cycle."""

    stage: Stage
    residue: int
    stream: str
    position: int

    @property
    def name(self) -> str:
        """The stage's name, with the batch of the cycle when a cycle has several."""
        return self.stage.name


@dataclass(frozen=True)
class Edge:
    """Node `target` of cycle m waits for node `source` of cycle m - lag, because of `reason`."""

    source: int
    target: int
    lag: int
    reason: str


@dataclass(frozen=True, eq=False)
class MarkedGraph:
    """Nodes, edges and an evaluation order, for a pipeline that neither deadlocks nor runs away.

    A cycle covers `period` batches. Instance (node v, cycle m) may be evaluated once every
    instance with a smaller `place(v, m)` has been.
    """

    pipeline: Pipeline
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    period: int
    potential: tuple[int, ...]

    @cached_property
    def incoming(self) -> tuple[tuple[Edge, ...], ...]:
        """Edges by target node, in a fixed order."""
        return _grouped(self.edges, len(self.nodes), by_target=True)

    @cached_property
    def outgoing(self) -> tuple[tuple[Edge, ...], ...]:
        """Edges by source node, in a fixed order."""
        return _grouped(self.edges, len(self.nodes), by_target=False)

    @cached_property
    def updates(self) -> tuple[int, ...]:
        """Nodes whose completion ends a step."""
        wanted = {id(stage) for stage in self.pipeline.updates}
        return tuple(i for i, node in enumerate(self.nodes) if id(node.stage) in wanted)

    def batch_of(self, node: int, cycle: int) -> int:
        """Return the batch that instance (node, cycle) belongs to."""
        return cycle * self.period + self.nodes[node].residue

    def place(self, node: int, cycle: int) -> int:
        """Return where instance (node, cycle) stands in the order of evaluation; larger is later."""
        return (len(self.nodes) + 1) * cycle + self.potential[node]

    def schedule(self, cycles: int) -> list[tuple[int, int]]:
        """Return all instances (node, cycle) of `cycles` cycles in an order that respects every edge."""
        keyed = sorted(
            (self.place(node, cycle), node, cycle)
            for cycle in range(cycles)
            for node in range(len(self.nodes))
        )
        return [(node, cycle) for _, node, cycle in keyed]


def _grouped(edges: tuple[Edge, ...], nodes: int, by_target: bool) -> tuple[tuple[Edge, ...], ...]:
    groups: list[list[Edge]] = [[] for _ in range(nodes)]
    for edge in edges:
        groups[edge.target if by_target else edge.source].append(edge)
    return tuple(tuple(group) for group in groups)
