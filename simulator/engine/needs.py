"""What stages need of the resources of their rank and host, and which of them can be asked for too much."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.costs.occupancy import OF_HOST
from simulator.engine.precedence import Precedence
from simulator.pipeline import MarkedGraph
from simulator.quantities import FloatArray

Need = Mapping[str, float]
FULL = 1.0 + 1e-9


@dataclass(frozen=True)
class Part:
    """A part of a stage that takes `share` of its nominal time and needs `need` at nominal speed.

    With a host to itself it runs at `cap` times that speed.
    """

    share: float
    need: Need
    cap: float = 1.0


@dataclass(frozen=True, eq=False)
class Needs:
    """What each node needs of its rank's resources at nominal speed (share of each, 0 to 1).

    `shared[node]` is false where no resource can be asked for more than it has: such a stage never
    slows down, and the engine spends no events on it. Of a collective, `flows[node]` is what its flows
    ask of each rank while they pass at their own rate, and `ends[node]` what its local work needs before
    the flows of each phase. `parts[node]` is what a stage consists of where unlike ranks share a host;
    `hosted[node]` is what `shared` is there: all that uses a host, and more, because stages may run faster.
    """

    by_node: Sequence[Need]
    shared: Sequence[bool]
    flows: Sequence[Need] = ()
    parts: Sequence[tuple[Part, ...]] = ()
    hosted: Sequence[bool] = ()
    ends: Sequence[tuple[Need, ...]] = ()

    @classmethod
    def of(
        cls,
        graph: MarkedGraph,
        by_node: Sequence[Need],
        flows: Sequence[Need] = (),
        parts: Sequence[tuple[Part, ...]] = (),
        ends: Sequence[tuple[Need, ...]] = (),
    ) -> "Needs":
        """Find the stages that can meet others on a resource which is then asked for too much."""
        count = len(by_node)
        fastest = [_hastiest(stage) for stage in parts or [()] * count]
        local = [_most(node) for node in ends or [()] * count]
        table = _table([*by_node, *local, *(flows or [{}] * count), *fastest]).reshape(4, count, -1)
        scarce = _scarce(graph, table[:2].max(axis=0), table[:3].max(axis=0))
        met = _scarce(graph, table.max(axis=0), table.max(axis=0)) if parts else scarce
        hosted = [one or bool(OF_HOST & need.keys()) for one, need in zip(met, fastest, strict=True)]
        return cls(by_node, scarce, flows, parts, hosted, ends)

    @classmethod
    def none(cls, graph: MarkedGraph) -> "Needs":
        """Return the needs of stages that share nothing."""
        return cls([{}] * len(graph.nodes), [False] * len(graph.nodes))


def _hastiest(parts: Sequence[Part]) -> Need:
    """Return the most that a stage asks of each resource when it has its host to itself."""
    return _most([{name: share * part.cap for name, share in part.need.items()} for part in parts])


def _most(needs: Sequence[Need]) -> Need:
    """Return the most that any of these asks of each resource."""
    names = {name for need in needs for name in need}
    return {name: max(need.get(name, 0.0) for need in needs) for name in sorted(names)}


def _scarce(graph: MarkedGraph, own: FloatArray, most: FloatArray) -> list[bool]:
    """Return which nodes need something that may be asked for too much; needs are (nodes, resources).

    At the worst a stage meets, of each other stream, the largest need among the stages that the order
    of the graph lets overlap with it.
    """
    overlap, asked = Precedence(graph).may_overlap, own.copy()
    streams = np.array([node.stream for node in graph.nodes])
    for stream in np.unique(streams):
        members = np.flatnonzero(streams == stream)
        for node in np.flatnonzero(streams != stream):
            asked[node] += np.where(overlap[node, members, None], most[members], 0.0).max(axis=0)
    return [bool(row.any()) for row in (asked > FULL) & (own > 0.0)]


def _table(by_node: Sequence[Need]) -> FloatArray:
    """Return what each node needs of each resource, (nodes, resources)."""
    resources = sorted({name for need in by_node for name in need})
    return np.array([[need.get(name, 0.0) for name in resources] for need in by_node])
