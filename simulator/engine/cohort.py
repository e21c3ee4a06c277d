"""A cohort: ranks that move together, as a data-flow machine over the instances of a marked graph."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.engine.precedence import Precedence
from simulator.pipeline import MarkedGraph
from simulator.pipeline.compiled import Edge
from simulator.quantities import IntArray


@dataclass(frozen=True, eq=False)
class Plan:
    """The graph in flat form. Instance (node, cycle) has the index cycle * nodes + node.

    `waits[instance]` counts the inputs that lie within the run; `feeds[node]` lists the distances from
    an instance to those that wait for it. Edges that say nothing new are left out. So that nobody has
    to look whether a target lies within the run, the list of instances goes on with `spare` ones that
    always wait for one thing more; a target before the run is found there too, counted from the end.
    `timed[node]` marks stages that need the clock to begin: collectives, which `meets[node]` marks,
    and those that share something.
    """

    nodes: int
    cycles: int
    spare: int
    waits: list[int]
    feeds: list[list[int]]
    timed: list[bool]
    meets: list[bool]

    @classmethod
    def of(cls, graph: MarkedGraph, cycles: int, shared: Sequence[bool]) -> "Plan":
        """Flatten `graph` for a run of `cycles` cycles in which the `shared` nodes may slow down."""
        count, edges = len(graph.nodes), Precedence(graph).needed
        feeds: list[list[int]] = [[] for _ in graph.nodes]
        for edge in edges:
            feeds[edge.source].append(edge.lag * count + edge.target - edge.source)
        waits = _waits(edges, count, cycles)
        meets = [node.stage.work.rendezvous for node in graph.nodes]
        timed = [meet or share for meet, share in zip(meets, shared, strict=True)]
        return cls(count, cycles, len(waits) - cycles * count, waits, feeds, timed, meets)

    @property
    def instances(self) -> int:
        """How many instances there are, without the spare ones."""
        return self.nodes * self.cycles


def _waits(edges: Sequence[Edge], nodes: int, cycles: int) -> list[int]:
    """Return the number of inputs of each instance, spare ones included."""
    spare = sum(max([0, *(sign * edge.lag for edge in edges)]) for sign in (1, -1))
    waits = np.zeros((cycles + spare, nodes), dtype=np.int64)
    for edge in edges:
        waits[max(0, edge.lag) : max(0, cycles + min(0, edge.lag)), edge.target] += 1
        waits[cycles:, edge.target] += 1
    waits[cycles:] += 1
    return [int(count) for count in waits.ravel()]


class Cohort:
    """The state of one cohort: which instances still wait for how many inputs, and since when.

    `times[instance]` is when its latest known input ended and, as soon as that is known, when it ends
    itself. `duration_ns` has an entry for each instance, or for each node where all cycles are alike.
    `book(cohort, instance, ready)` is called when a timed instance has all its local inputs.
    """

    wide = False

    def __init__(
        self, plan: Plan, duration_ns: Any, times: Any, book: Callable[["Cohort", int, Any], None]
    ) -> None:
        """Prepare a cohort whose completion times are written into `times`; nothing has run yet."""
        self.plan = plan
        self.duration_ns = duration_ns
        self.times = times
        self._book = book
        self._waits = bytearray(plan.waits) if max(plan.waits) < 256 else list(plan.waits)

    def duration(self, instance: int) -> Any:
        """Return the nominal duration of `instance`, ns: an int, or a vector of one for each column."""
        return self.duration_ns[instance % len(self.duration_ns)]

    def begin(self) -> None:
        """Start every instance that waits for nothing."""
        for instance in range(self.plan.instances):
            if self.plan.waits[instance] == 0:
                self._start(instance)

    def complete(self, instance: int, end: Any) -> None:
        """Record that `instance` ends at `end`, and all that follows from it without an event."""
        self.times[instance] = end
        self._spread(instance)

    def _start(self, instance: int) -> None:
        """Begin an instance that has all its inputs: what shares nothing ends at a known time."""
        if self.plan.timed[instance % self.plan.nodes]:
            self._book(self, instance, self.times[instance])
        else:
            self.complete(instance, self.times[instance] + self.duration(instance))

    def _spread(self, first: int) -> None:
        """Hand completion times to successors, and start those that have all, until nothing moves."""
        times, waits, feeds, timed = self.times, self._waits, self.plan.feeds, self.plan.timed
        nodes, durations, rows, done = self.plan.nodes, self.duration_ns, len(self.duration_ns), [first]
        while done:
            instance = done.pop()
            end = times[instance]
            for distance in feeds[instance % nodes]:
                target = instance + distance
                if times[target] < end:
                    times[target] = end
                waits[target] -= 1
                if waits[target]:
                    continue
                if timed[target % nodes]:
                    self._book(self, target, times[target])
                else:
                    times[target] += durations[target % rows]
                    done.append(target)

    def check_complete(self) -> None:
        """Raise AssertionError when some instance never ran: the graph was live, so all must have."""
        if any(self._waits[: self.plan.instances]):
            raise AssertionError("the simulation ended with stages that never ran")


class WideCohort(Cohort):
    """A cohort of several columns: times and durations are vectors, one entry for each column."""

    wide = True

    def _spread(self, first: int) -> None:
        times, waits, done = self.times, self._waits, [first]
        while done:
            instance = done.pop()
            for distance in self.plan.feeds[instance % self.plan.nodes]:
                target = instance + distance
                np.maximum(times[target], times[instance], out=times[target])
                waits[target] -= 1
                if waits[target] == 0:
                    self._go_on(target, done)

    def _go_on(self, instance: int, done: list[int]) -> None:
        if self.plan.timed[instance % self.plan.nodes]:
            self._book(self, instance, self.times[instance])
        else:
            self.times[instance] += self.duration(instance)
            done.append(instance)


def by_instance(duration_ns: IntArray) -> IntArray:
    """Return durations of shape (nodes, cycles, columns) as (rows, columns).

    There is a row for each instance, or one for each node where the cycles share their memory.
    """
    cycles = _differing(duration_ns)
    return duration_ns[:, :cycles].transpose(1, 0, 2).reshape(-1, duration_ns.shape[2])


def by_column(duration_ns: IntArray) -> Iterator[Sequence[int]]:
    """Yield the durations of each column, in the order of `by_instance`."""
    cycles = _differing(duration_ns)
    columns = duration_ns[:, :cycles].transpose(2, 1, 0).reshape(duration_ns.shape[2], -1)
    for column in columns:
        yield column.tolist() if cycles == 1 else column.data


def _differing(duration_ns: IntArray) -> int:
    return 1 if duration_ns.strides[1] == 0 else duration_ns.shape[1]
