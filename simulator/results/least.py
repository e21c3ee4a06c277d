"""The least time that a window of batches can take: the longest path through it.

Every stage ends no earlier than what it waits for plus its own duration, so the update of the last batch
comes after that of the one before the window by at least the durations on any path from one to the other.
That holds in every schedule whose stages never run shorter, whatever went before and whatever is shared.
"""

from collections.abc import Iterable, Iterator
from functools import reduce

import numpy as np

from simulator.pipeline import MarkedGraph
from simulator.quantities import IntArray

Instance = tuple[int, int]


def least_ns(graph: MarkedGraph, duration_ns: IntArray, first: int, last: int) -> int:
    """Return the least ns between the updates of batches `first` - 1 and `last` - 1 on one rank.

    `duration_ns` are the shortest durations, shape (nodes, cycles, columns). The bound is that of
    the rank and the update that it is lowest for: which ends a batch last is known after the run only.
    """
    ends = list(_latest(graph, last - 1))
    return min((_from(graph, duration_ns, start, ends) for start in _latest(graph, first - 1)), default=0)


def _latest(graph: MarkedGraph, batch: int) -> Iterable[Instance]:
    """Return the latest run of each update stage at or before a batch; earlier ones end no later."""
    latest: dict[int, tuple[int, Instance]] = {}
    for node in graph.updates:
        cycle = (batch - graph.nodes[node].residue) // graph.period
        if cycle >= 0:
            stage, run = id(graph.nodes[node].stage), (graph.batch_of(node, cycle), (node, cycle))
            latest[stage] = max(run, latest.get(stage, run))
    return [instance for _, instance in latest.values()]


def _from(graph: MarkedGraph, duration_ns: IntArray, start: Instance, ends: list[Instance]) -> int:
    """Return the least time from `start` to the last of `ends` on the rank for which that is lowest.

    `own` holds the longest paths that stay on the rank they began on, by rank; `met` those that passed a
    collective, where all ranks meet: whichever rank began, each is held up by the others from there on.
    """
    reach = _Reach(graph, len(duration_ns[0, 0]))
    reach.own[start] = np.zeros(duration_ns.shape[2], dtype=np.int64)
    for node, cycle in _between(graph, duration_ns.shape[1], start, ends):
        reach.extend(node, cycle, duration_ns[node, cycle])
    found = [ns for end in ends for part in (reach.own, reach.met) if (ns := part.get(end)) is not None]
    return max(0, int(_longest(found).min())) if found else 0


def _between(
    graph: MarkedGraph, cycles: int, start: Instance, ends: Iterable[Instance]
) -> Iterator[Instance]:
    """Yield the instances after `start` up to the last of `ends`, each after all that it waits for."""
    begin, finish = graph.place(*start), max(graph.place(*end) for end in ends)
    for node, cycle in graph.schedule(cycles):
        if begin <= graph.place(node, cycle) <= finish and (node, cycle) != start:
            yield node, cycle


class _Reach:
    """The longest paths found so far, by instance; those that nobody asks for any more are dropped."""

    def __init__(self, graph: MarkedGraph, columns: int) -> None:
        self.graph = graph
        self.columns = columns
        self.own: dict[Instance, IntArray] = {}
        self.met: dict[Instance, IntArray] = {}
        self._asked: dict[Instance, int] = {}

    def extend(self, node: int, cycle: int, duration_ns: IntArray) -> None:
        """Add the longest paths to an instance that takes `duration_ns`, by column."""
        before = [(edge.source, cycle - edge.lag) for edge in self.graph.incoming[node]]
        own = [self.own[one] for one in before if one in self.own]
        met = [self.met[one] for one in before if one in self.met]
        if self.graph.nodes[node].stage.work.rendezvous:
            levels = [int(_longest(own).min())] if own else []
            levels += [int(_longest(met).max())] if met else []
            own, met = [], [np.full(self.columns, max(levels), dtype=np.int64)] if levels else []
        for kept, paths in ((self.own, own), (self.met, met)):
            if paths:
                kept[node, cycle] = _longest(paths) + duration_ns
        for one in before:
            self._drop(one)

    def _drop(self, instance: Instance) -> None:
        self._asked[instance] = self._asked.get(instance, 0) + 1
        if self._asked[instance] == len(self.graph.outgoing[instance[0]]):
            for kept in (self.own, self.met):
                kept.pop(instance, None)


def _longest(paths: list[IntArray]) -> IntArray:
    return reduce(np.maximum, paths)
