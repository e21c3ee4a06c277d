"""One rank, or ranks that move as one, as a data-flow machine over the instances of a marked graph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.engine.host import SharedRank
from simulator.engine.precedence import Precedence
from simulator.pipeline import MarkedGraph
from simulator.pipeline.compiled import Edge


@dataclass(frozen=True, eq=False)
class Plan:
    """The graph in flat form. Instance (node, cycle) has the index cycle * nodes + node.

    `waits[instance]` counts the inputs that lie within the run; `feeds[node]` lists the distances from
    an instance to those that wait for it. Edges that say nothing new are left out. So that nobody has
    to look whether a target lies within the run, the list of instances goes on with `spare` ones that
    always wait for one thing more; a target before the run is found there too, counted from the end.

    `timed[node]` marks stages that need the clock to begin: collectives, which `meets[node]` marks,
    and those that share something. `common[node]` marks stages of which all ranks know at the same
    moment when they are ready: those that follow on collectives alone, by way of other such stages.
    """

    nodes: int
    cycles: int
    waits: list[int]
    feeds: list[list[int]]
    timed: list[bool]
    meets: list[bool]
    common: list[bool]

    @classmethod
    def of(cls, graph: MarkedGraph, cycles: int, shared: Sequence[bool], together: bool) -> "Plan":
        """Flatten `graph` for a run of `cycles` cycles in which the `shared` nodes may slow down.

        Without `together`, no stage counts as common: every rank sees to all of its own.
        """
        count, edges = len(graph.nodes), Precedence(graph).needed
        feeds: list[list[int]] = [[] for _ in graph.nodes]
        for edge in edges:
            feeds[edge.source].append(edge.lag * count + edge.target - edge.source)
        meets = [node.stage.work.rendezvous for node in graph.nodes]
        timed = [meet or share for meet, share in zip(meets, shared, strict=True)]
        common = _common(edges, meets, shared) if together else [False] * count
        return cls(count, cycles, _waits(edges, count, cycles), feeds, timed, meets, common)

    @property
    def instances(self) -> int:
        """How many instances there are, without the spare ones."""
        return self.nodes * self.cycles

    def first(self, common: bool) -> list[int]:
        """Return the instances that wait for nothing, of the common stages or of the others."""
        unhindered = [instance for instance in range(self.instances) if self.waits[instance] == 0]
        return [instance for instance in unhindered if self.common[instance % self.nodes] == common]

    def feeds_of(self, common: bool) -> list[list[int]]:
        """Return by node the distances to common instances alone, or to the others."""
        return [
            [far for far in feeds if self.common[(node + far) % self.nodes] == common]
            for node, feeds in enumerate(self.feeds)
        ]

    def own_waits(self) -> Any:
        """Return a list of `waits` that a machine may count down: bytes where they are small enough."""
        return bytearray(self.waits) if max(self.waits) < 256 else list(self.waits)

    def check_complete(self, waits: Sequence[int], common: bool) -> None:
        """Raise AssertionError when some instance never ran: the graph was live, so all must have."""
        left = np.array(waits[: self.instances]).reshape(self.cycles, self.nodes)
        if left[:, np.array(self.common) == common].any():
            raise AssertionError("the simulation ended with stages that never ran")


def _waits(edges: Sequence[Edge], nodes: int, cycles: int) -> list[int]:
    """Return the number of inputs of each instance, spare ones included."""
    spare = sum(max([0, *(sign * edge.lag for edge in edges)]) for sign in (1, -1))
    waits = np.zeros((cycles + spare, nodes), dtype=np.int64)
    for edge in edges:
        waits[max(0, edge.lag) : max(0, cycles + min(0, edge.lag)), edge.target] += 1
        waits[cycles:, edge.target] += 1
    waits[cycles:] += 1
    return [int(count) for count in waits.ravel()]


def _common(edges: Sequence[Edge], meets: Sequence[bool], shared: Sequence[bool]) -> list[bool]:
    """Strike out the shared stages, then all that wait for one struck out which is no collective."""
    common = [not share for share in shared]
    struck = True
    while struck:
        struck = False
        for edge in edges:
            if common[edge.target] and not common[edge.source] and not meets[edge.source]:
                common[edge.target], struck = False, True
    return common


class Cohort:
    """The state of one column: which instances still wait for how many inputs, and since when.

    `times[instance]` is when its latest known input ended and, as soon as that is known, when it ends
    itself. `duration_ns` has an entry for each instance, or for each node where all cycles are alike.
    `book(cohort, instance, ready)` is called when a timed instance has all its local inputs. What is
    common to all columns is none of its business. Stages that share something run on `shared`.
    """

    __slots__ = ("_book", "_feeds", "_waits", "duration_ns", "plan", "shared", "times")

    def __init__(
        self,
        plan: Plan,
        feeds: list[list[int]],
        duration_ns: Sequence[int],
        times: Any,
        book: Callable[["Cohort", int, int], None],
    ) -> None:
        """Prepare a cohort whose completion times are written into `times`; nothing has run yet."""
        self.plan = plan
        self.duration_ns = duration_ns
        self.times = times
        self._feeds = feeds
        self._book = book
        self._waits = plan.own_waits()
        self.shared: SharedRank | None = None

    def duration(self, instance: int) -> int:
        """Return the nominal duration of `instance`, ns."""
        return self.duration_ns[instance % len(self.duration_ns)]

    def start(self, instance: int) -> None:
        """Begin an instance that waits for nothing, at the start of the run."""
        if self.plan.timed[instance % self.plan.nodes]:
            self._book(self, instance, 0)
        else:
            self.complete(instance, self.duration(instance))

    def complete(self, instance: int, end: int) -> None:
        """Record that `instance` ends at `end`, and all that follows from it without an event."""
        times, waits, feeds, timed = self.times, self._waits, self._feeds, self.plan.timed
        nodes, durations, rows = self.plan.nodes, self.duration_ns, len(self.duration_ns)
        times[instance] = end
        done = [instance]
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
        """Raise AssertionError when some instance never ran."""
        self.plan.check_complete(self._waits, common=False)
