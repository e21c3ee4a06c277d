"""A cohort: ranks that move together, as a data-flow machine over the instances of a marked graph."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.pipeline import MarkedGraph
from simulator.quantities import IntArray


@dataclass(frozen=True, eq=False)
class Plan:
    """The graph in flat form. Instance (node, cycle) has the index cycle * nodes + node.

    `waits[instance]` counts the inputs that lie within the run; `feeds[node]` lists
    (lag, offset of the target instance) pairs; `meets[node]` marks collectives, `timed[node]` all
    stages that need an event to begin: collectives, and those that share something.
    """

    nodes: int
    cycles: int
    waits: list[int]
    feeds: list[list[tuple[int, int]]]
    meets: list[bool]
    timed: list[bool]

    @classmethod
    def of(cls, graph: MarkedGraph, cycles: int, shared: Sequence[bool]) -> "Plan":
        """Flatten `graph` for a run of `cycles` cycles in which the `shared` nodes may slow down."""
        count = len(graph.nodes)
        waits = np.zeros((cycles, count), dtype=np.int64)
        for edge in graph.edges:
            waits[max(0, edge.lag) : max(0, cycles + min(0, edge.lag)), edge.target] += 1
        feeds = [[(e.lag, e.lag * count + e.target - e.source) for e in out] for out in graph.outgoing]
        meets = [node.stage.work.rendezvous for node in graph.nodes]
        timed = [meet or share for meet, share in zip(meets, shared, strict=True)]
        return cls(count, cycles, waits.ravel().tolist(), feeds, meets, timed)


class Cohort:
    """The state of one cohort: which instances still wait for how many inputs, and since when.

    `duration_ns` holds one entry per instance: an int when the cohort is one column wide, else a
    vector. `book(cohort, instance, ready)` is called when a timed stage has all its local inputs.
    """

    def __init__(
        self, plan: Plan, width: int, duration_ns: Sequence[Any], book: Callable[["Cohort", int, Any], None]
    ) -> None:
        """Prepare a cohort of `width` columns; nothing has run yet."""
        self.plan = plan
        self.width = width
        self.duration_ns = duration_ns
        self._book = book
        self._waits = list(plan.waits)
        self._latest: Callable[[Any, Any], Any] = max if width == 1 else np.maximum
        self._ready = _times(len(plan.waits), width)
        self._end = _times(len(plan.waits), width)

    def shortest(self, instance: int) -> int:
        """Return how long `instance` takes on its fastest column, ns."""
        duration = self.duration_ns[instance]
        return duration if self.width == 1 else int(duration.min())

    def begin(self) -> None:
        """Start every instance that waits for nothing."""
        for instance, waits in enumerate(self.plan.waits):
            if waits == 0:
                done: list[int] = []
                self._start(instance, done)
                self._spread(done)

    def complete(self, instance: int, end: Any) -> None:
        """Record that `instance` ends at `end`, and all that follows from it without an event."""
        self._end[instance] = end
        self._spread([instance])

    def _start(self, instance: int, done: list[int]) -> None:
        """Begin an instance that has all its inputs: what shares nothing ends at a known time."""
        if self.plan.timed[instance % self.plan.nodes]:
            self._book(self, instance, self._ready[instance])
        else:
            self._end[instance] = self._ready[instance] + self.duration_ns[instance]
            done.append(instance)

    def _spread(self, done: list[int]) -> None:
        """Hand completion times to successors, and start those that have all, until nothing moves."""
        plan, waits, ready, latest, ends = self.plan, self._waits, self._ready, self._latest, self._end
        nodes, cycles, feeds = plan.nodes, plan.cycles, plan.feeds
        while done:
            instance = done.pop()
            cycle, node = divmod(instance, nodes)
            end = ends[instance]
            for lag, offset in feeds[node]:
                if 0 <= cycle + lag < cycles:
                    target = instance + offset
                    ready[target] = latest(ready[target], end)
                    waits[target] -= 1
                    if waits[target] == 0:
                        self._start(target, done)

    def check_complete(self) -> None:
        """Raise AssertionError when some instance never ran: the graph was live, so all must have."""
        if any(self._waits):
            raise AssertionError("the simulation ended with stages that never ran")

    def times(self) -> IntArray:
        """Return completion times, ns, shape (nodes, cycles, columns)."""
        flat = np.asarray(self._end, dtype=np.int64).reshape(self.plan.cycles, self.plan.nodes, self.width)
        return flat.transpose(1, 0, 2)


def _times(instances: int, width: int) -> Any:
    """Return zero times for all instances: packed ints for one column, one shared vector for more."""
    if width == 1:
        return array("q", bytes(8 * instances))
    return [np.zeros(width, dtype=np.int64)] * instances


def by_instance(duration_ns: IntArray) -> Sequence[Any]:
    """Return durations of shape (nodes, cycles, columns) in instance order, as `Cohort` wants them."""
    ordered = duration_ns.transpose(1, 0, 2).reshape(-1, duration_ns.shape[2])
    return ordered[:, 0].tolist() if duration_ns.shape[2] == 1 else list(ordered)
