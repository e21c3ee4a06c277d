"""Sharing inside a rank: stages of different streams that need the same engine, memory or copy path.

What is shared max-min is the fraction of its uncontended speed at which each stage runs, so flops
and bytes never meet in one unit: a stage that runs at fraction s takes s times its need of every
resource, and no resource gives more than 1 (progressive filling, as for flows on links; Bertsekas
and Gallager, Data Networks, section 6.5.2).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from simulator.engine.agenda import Agenda
from simulator.engine.precedence import Precedence
from simulator.pipeline import MarkedGraph
from simulator.quantities import FloatArray

Need = Mapping[str, float]
FULL = 1.0 + 1e-9


@dataclass(frozen=True, eq=False)
class Needs:
    """What each node needs of its rank's resources at full speed (share of each, 0 to 1).

    `shared[node]` is false where no resource can be asked for more than it has: such a stage never
    slows down, and the engine spends no events on it.
    """

    by_node: Sequence[Need]
    shared: Sequence[bool]
    _known: dict[tuple[int, ...], tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: MarkedGraph, by_node: Sequence[Need]) -> "Needs":
        """Find the stages that can meet others on a resource which is then asked for too much.

        At the worst a stage meets, of each other stream, the largest need among the stages that the
        order of the graph lets overlap with it.
        """
        need, overlap = _table(by_node), Precedence(graph).may_overlap
        asked = need.copy()
        streams = np.array([node.stream for node in graph.nodes])
        for stream in np.unique(streams):
            members = np.flatnonzero(streams == stream)
            for node in np.flatnonzero(streams != stream):
                asked[node] += np.where(overlap[node, members, None], need[members], 0.0).max(axis=0)
        scarce = (asked > FULL) & (need > 0.0)
        return cls(by_node, [bool(row.any()) for row in scarce])

    @classmethod
    def none(cls, graph: MarkedGraph) -> "Needs":
        """Return the needs of stages that share nothing."""
        return cls([{}] * len(graph.nodes), [False] * len(graph.nodes))

    def speeds(self, nodes: tuple[int, ...]) -> tuple[float, ...]:
        """Return the fraction of full speed at which each of `nodes` runs when they run together."""
        known = self._known.get(nodes)
        if known is None:
            known = self._known[nodes] = fill([self.by_node[node] for node in nodes])
        return known


def _table(by_node: Sequence[Need]) -> FloatArray:
    """Return what each node needs of each resource, (nodes, resources)."""
    resources = sorted({name for need in by_node for name in need})
    return np.array([[need.get(name, 0.0) for name in resources] for need in by_node])


def fill(needs: Sequence[Need]) -> tuple[float, ...]:
    """Return max-min speeds (0 to 1) of activities that need these shares of each resource."""
    speeds = [1.0] * len(needs)
    rising = set(range(len(needs)))
    while rising:
        level, full = _next_level(needs, speeds, rising)
        frozen = rising if full is None else {i for i in rising if needs[i].get(full, 0.0) > 0.0}
        for index in frozen:
            speeds[index] = level
        rising = rising - frozen
    return tuple(speeds)


def _next_level(needs: Sequence[Need], speeds: Sequence[float], rising: set[int]) -> tuple[float, str | None]:
    """Return how far the rising speeds can go together, and the resource that is full then, if any."""
    level, full = 1.0, None
    for resource in sorted({name for index in rising for name in needs[index]}):
        asked = sum(needs[i].get(resource, 0.0) for i in rising)
        taken = sum(speeds[i] * need.get(resource, 0.0) for i, need in enumerate(needs) if i not in rising)
        if asked > 0.0 and asked * level + taken > FULL:
            level, full = max(0.0, (1.0 - taken) / asked), resource
    return level, full


class _Running:
    """One stage that runs: how much of its uncontended time is left, and how fast it goes."""

    __slots__ = ("instance", "left_ns", "node", "speed")

    def __init__(self, instance: int, node: int, left_ns: float) -> None:
        self.instance = instance
        self.node = node
        self.left_ns = left_ns
        self.speed = 1.0


NEVER = 2**63
ROUNDING_NS = 1e-6  # a stage that misses a whole nanosecond by less than this has met it


class SharedRank:
    """The stages that run on one rank now. `done(instance, now)` is called when one of them ends.

    Inside, time is real: a stage that ends at 3.4 ns gives back what it held at 3.4 ns. Outside, it
    has ended at 4 ns. One wake-up is pending at a time; where an end moves away from it, it is left to
    pass in vain, which is cheaper than a second one.
    """

    __slots__ = (
        "_agenda",
        "_done",
        "_needs",
        "_running",
        "_shared_by",
        "_since",
        "_span_ns",
        "_telling",
        "_wake_at",
    )

    def __init__(self, agenda: Agenda, needs: Needs, done: Callable[[int, int], None]) -> None:
        """Start with an idle rank."""
        self._agenda = agenda
        self._needs = needs
        self._done = done
        self._running: list[_Running] = []
        self._since = 0  # the time up to which what is left of each is right
        self._span_ns = 0.0  # from then to the next end
        self._shared_by = 0  # how many ran when speeds were set
        self._wake_at = NEVER
        self._telling = False

    def begin(self, instance: int, node: int, duration_ns: int) -> None:
        """Start `instance` now; alone it takes `duration_ns`."""
        started = _Running(instance, node, duration_ns)
        if self._telling:  # it follows at once on a stage that has just ended
            self._running.append(started)
        elif self._running:
            over = self._run_to(self._agenda.now)
            self._running.append(started)
            self._go_on(over)
        else:  # alone: most stages are, and need no more than this
            self._running.append(started)
            self._since, self._span_ns, self._shared_by = self._agenda.now, duration_ns, 1
            self._wake_by(self._since + duration_ns)

    def _run_to(self, now: int) -> list[_Running]:
        """Let the running stages proceed to the present; return those that have ended."""
        left, self._since = float(now - self._since), now
        over: list[_Running] = []
        while self._running and self._span_ns <= left + ROUNDING_NS:
            left = max(0.0, left - self._span_ns)
            over += self._first_to_end()
        for one in self._running:
            one.left_ns -= one.speed * left
        self._span_ns -= left
        return over

    def _first_to_end(self) -> list[_Running]:
        """Let time pass to the next end; return what ends there."""
        span = self._span_ns
        over: list[_Running] = []
        going: list[_Running] = []
        for one in self._running:
            one.left_ns -= one.speed * span
            (over if one.left_ns <= ROUNDING_NS * one.speed else going).append(one)
        self._running = going
        self._set_speeds()
        return over

    def _set_speeds(self) -> None:
        """Share anew among what runs now, and see when the next one ends."""
        running = self._running
        self._shared_by = len(running)
        if len(running) == 1:  # a stage needs at most all of a resource
            running[0].speed = 1.0
            self._span_ns = running[0].left_ns
        elif running:
            speeds = self._needs.speeds(tuple([one.node for one in running]))
            for one, speed in zip(running, speeds, strict=True):
                one.speed = speed
            self._span_ns = min([one.left_ns / one.speed for one in running])

    def _go_on(self, over: list[_Running]) -> None:
        """Tell what has ended, share with what has begun, and see to it that somebody wakes up."""
        now = self._since
        self._telling = True
        for one in over:
            self._done(one.instance, now)
        self._telling = False
        if self._running:
            if len(self._running) > self._shared_by:
                self._set_speeds()
            self._wake_by(now + ceil(self._span_ns - ROUNDING_NS))

    def _wake_by(self, moment: int) -> None:
        if moment < self._wake_at:
            self._wake_at = moment
            self._agenda.at(moment, self._wake, moment)

    def _wake(self, moment: int) -> None:
        if moment == self._wake_at:
            self._wake_at = NEVER
            self._go_on(self._run_to(moment))
