"""The network as a state machine on a clock of whole nanoseconds.

Between two moments at which a collective starts or a class of flows ends, all rates are constant; only
at such moments are they solved for. Inside, time is real: a flow that ends at 3.4 ns frees its links
at 3.4 ns. Outside, it has ended at 4 ns, the first whole nanosecond at which its bytes are done.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from math import ceil

import numpy as np

from simulator.engine.fluid.collective import Finished
from simulator.engine.fluid.flows import FlowClasses
from simulator.engine.fluid.pool import Pool
from simulator.engine.fluid.problem import checked_capacity, checked_tick
from simulator.engine.fluid.solvers import Solver
from simulator.quantities import FloatArray, IntArray

ROUNDING_NS = 1e-6  # a flow that misses a whole nanosecond by less than this has met it
NEVER = 2**63 - 1


@dataclass(eq=False)
class _Segment:
    """A time of constant rates: begin and end in real ns since the origin, `end_ns` on the clock.

    `flows` (places in the pool) end at `due_ns`, ascending: with ticks some before and some after the
    end of the segment, otherwise with it. They are told when the first of them ends.
    """

    begin: float
    end: float
    end_ns: int
    flows: IntArray
    due_ns: IntArray
    told: bool = False

    @property
    def next_ns(self) -> int:
        """The time on the clock of the next thing that happens."""
        return self.end_ns if self.told else int(self.due_ns[0])


class Fluid:
    """Collectives that share links of `capacity` (L,), bytes/s; exact, or in ticks where dense.

    The caller drives it: `start` (or `cap`) when something changes, then a wake-up at `next_finish`,
    then `advance`, and so on. Start-up latency is the caller's: start the flows that much later.

    With `tick` > 0 (0.01 is a good value), a share of the time that the collective soonest done takes,
    ends within one tick of a moment are taken together: each flow ends at the time projected for it,
    and rates change once, at that moment. Such ends are told up to two ticks ahead, and stand even when
    a collective starts in between.
    """

    def __init__(self, capacity: FloatArray, tick: float = 0.0, solver: Solver | None = None) -> None:
        """Nothing is under way; `solver` None takes the quicker one by the size of the problem."""
        self._pool = Pool(checked_capacity(capacity), solver)
        self._tick = checked_tick(tick)
        self._origin = 0
        self._now = 0
        self._told: list[Finished] = []
        self._segment: _Segment | None = None

    def start(self, now_ns: int, flows: FlowClasses, tag: Hashable) -> None:
        """Let the flows of a collective start; ValueError if `tag` is in use or time runs backwards."""
        self._interrupt(now_ns)
        try:
            self._pool.add(tag, flows)
        finally:
            self._plan(0.0)

    def cap(self, now_ns: int, tag: Hashable, cap: FloatArray) -> None:
        """Change the caps (bytes/s per member flow, one for each class) of a collective under way."""
        self._interrupt(now_ns)
        try:
            self._pool.cap(tag, cap)
        finally:
            self._plan(0.0)

    def advance(self, now_ns: int) -> list[Finished]:
        """Let time pass until `now_ns`; return the ends that were settled since the last call."""
        self._reach(now_ns)
        told, self._told = self._told, []
        return told

    def next_finish(self) -> int | None:
        """Return when to call `advance` next, ns, or None when nothing is under way.

        Without ticks this is the next end; with ticks it may also be a moment at which rates change.
        """
        if self._told:
            return self._now
        return max(self._segment.next_ns, self._now) if self._segment else None

    def carries(self, tag: Hashable) -> bool:
        """Whether some flow of a collective has not ended yet."""
        return self._pool.carries(tag)

    def rates(self, tag: Hashable) -> FloatArray:
        """Return the present rate per member flow of each class of a collective, 0 for ended ones."""
        return self._pool.rates(tag)

    def _interrupt(self, now_ns: int) -> None:
        """Bring all flows to `now_ns` and make it the origin of real time."""
        self._reach(now_ns)
        if self._segment:
            gone = self._segment.flows[self._segment.due_ns <= now_ns]
            self._pool.pass_time(now_ns - self._origin - self._segment.begin)
            self._pool.end(gone)
        self._origin = now_ns

    def _reach(self, now_ns: int) -> None:
        if now_ns < self._now:
            raise ValueError(f"the network is at {self._now} ns and cannot go back to {now_ns} ns")
        while self._segment and self._segment.next_ns <= now_ns:
            self._step(self._segment)
        self._now = now_ns

    def _step(self, segment: _Segment) -> None:
        """Tell the ends of the segment, or end it and go on at new rates."""
        if not segment.told:
            self._told += self._pool.tell(segment.flows, segment.due_ns)
            segment.told = True
        else:
            self._pool.pass_time(segment.end - segment.begin)
            self._pool.end(segment.flows)
            self._plan(segment.end)

    def _plan(self, begin: float) -> None:
        """Lay out the next segment."""
        self._segment = None
        if len(self._pool):
            flows, spans, change = self._pool.next_ends(self._tick)
            due_ns = self._origin + np.ceil(begin + spans - ROUNDING_NS).astype(np.int64)
            end = begin + change
            self._segment = _Segment(begin, end, self._origin + ceil(end - ROUNDING_NS), flows, due_ns)
