"""The flows that are under way: whose they are, what is left of them, and their rates."""

from collections.abc import Hashable

import numpy as np

from simulator.engine.fluid.collective import Collective, Finished
from simulator.engine.fluid.filling import Shares
from simulator.engine.fluid.flows import FlowClasses
from simulator.engine.fluid.joined import FEW, Joined, Joiner
from simulator.engine.fluid.problem import NEARLY
from simulator.engine.fluid.solvers import Solver, middle_of
from simulator.quantities import FloatArray, IntArray

SECONDS = 1e-9
LARGE = 512  # classes from which those that have ended are cleared away when they are half of all


class Pool:
    """All collectives under way.

    A flow's id is its place when the lists of all collectives are put one after the other. The arrays
    `active` (ids, ascending), `left` (bytes), `sliver` (bytes that are as good as none) and the rates
    have one entry for each flow that has not ended.
    """

    def __init__(self, capacity: FloatArray, solver: Solver | None) -> None:
        """Nothing is under way."""
        self._joiner = Joiner(capacity, solver)
        self._clock_ns = 0.0
        self._collectives: list[Collective] = []
        self._offsets: IntArray = np.zeros(1, dtype=np.int64)
        self._joined: Joined
        self._shares: Shares | None = None
        self._rate: FloatArray = np.zeros(0)
        self._sliver: FloatArray = np.zeros(0)
        self._left: FloatArray = np.zeros(0)
        self._active: IntArray = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        """Return the number of flows that have not ended."""
        return len(self._active)

    def add(self, tag: Hashable, flows: FlowClasses) -> None:
        """Put the flows of a new collective beside those under way; ValueError when `tag` is in use."""
        self._scatter()
        going = [old for old in self._collectives if len(old.alive)]
        if any(old.tag == tag for old in going):
            raise ValueError(f"a collective called {tag!r} is under way")
        self._gather([*going, Collective.of(tag, flows, self._clock_ns)])

    def cap(self, tag: Hashable, cap: FloatArray) -> None:
        """Give the flows of a collective new caps."""
        self._scatter()
        self._find(tag).cap(cap)
        self._gather(self._collectives)

    def carries(self, tag: Hashable) -> bool:
        """Whether some flow of a collective has not ended."""
        self._scatter()
        return any(one.tag == tag and len(one.alive) for one in self._collectives)

    def rates(self, tag: Hashable) -> FloatArray:
        """Return the present bytes/s of each class that the collective started with, 0 for ended ones."""
        self._scatter()
        collective = self._find(tag)
        first = self._offsets[self._collectives.index(collective)]
        rate = np.zeros(len(collective.told))
        self._solve()
        places = np.searchsorted(self._active, first + collective.alive)
        rate[collective.members[collective.alive]] = self._rate[places]
        return rate

    def next_ends(self, tick: float) -> tuple[IntArray, FloatArray, float]:
        """Return flows that end next (places), their spans, ascending, and when rates change, all ns.

        Without a tick: those that end first. With one, a share of the time that the collective soonest
        done will have taken: all that end within two ticks from the first on. Rates change at the mean
        of their ends, weighted by rate, so that what some hold too long others give back too soon.
        """
        self._solve()
        spans = self._left / (self._rate * SECONDS)
        until = spans.min() + (2 * tick * self._shortest_ns(spans) if tick else 0.0)
        ending = np.flatnonzero(self._left - self._sliver <= self._rate * (until * SECONDS))
        if len(ending) > 1:
            ending = ending[np.argsort(spans[ending], kind="stable")]
        change = middle_of(spans[ending], self._rate[ending]) if tick else float(spans.min())
        return ending, spans[ending], change

    def pass_time(self, span_ns: float) -> None:
        """Let the active flows run at their rates."""
        self._clock_ns += span_ns
        if len(self._active) and span_ns > 0:
            self._solve()
            self._left = self._left - self._rate * (span_ns * SECONDS)

    def tell(self, places: IntArray, times_ns: IntArray) -> list[Finished]:
        """Settle the ends of active flows; return what the caller does not know yet."""
        ids = self._active[places]
        whose = np.searchsorted(self._offsets, ids, side="right") - 1
        told = []
        for index in range(int(whose.min()), int(whose.max()) + 1):
            own = whose == index
            part = self._collectives[index].tell(ids[own] - self._offsets[index], times_ns[own])
            told += [part] if part else []
        return told

    def end(self, places: IntArray) -> None:
        """Take flows out. Shares that stay right are kept; when half of many flows is gone, tidy up."""
        going = np.ones(len(self._active), dtype=np.bool_)
        going[places] = False
        ended, self._active = self._active[places], self._active[going]
        self._left, self._sliver, self._rate = self._left[going], self._sliver[going], self._rate[going]
        if not len(self._active):
            return
        size = self._offsets[-1]
        if size > LARGE and 2 * len(self._active) < size:
            self._clear_away()
        elif self._shares and (size <= FEW or not self._joined.holds(self._shares, ended, self._active)):
            self._shares = None

    def _shortest_ns(self, spans: FloatArray) -> float:
        """Return how long the collective that is soonest done will have taken, as far as rates tell.

        That is its time so far and the mean of what its flows still need, weighted by the bytes left.
        """
        ends = np.searchsorted(self._active, self._offsets)
        left = np.maximum(self._left, self._sliver)
        weighted, shortest = left * spans, np.inf
        for collective, first, last in zip(self._collectives, ends, ends[1:], strict=False):
            if last > first:
                mean = float(weighted[first:last].sum() / max(left[first:last].sum(), 1e-300))
                shortest = min(shortest, self._clock_ns - collective.born_ns + mean)
        return shortest

    def _solve(self) -> None:
        if self._shares is None:
            self._shares = self._joined.share(self._active)
            self._rate = self._shares.rate[self._active]

    def _find(self, tag: Hashable) -> Collective:
        for collective in self._collectives:
            if collective.tag == tag:
                return collective
        raise ValueError(f"no collective called {tag!r} is under way")

    def _clear_away(self) -> None:
        self._scatter()
        going = [each for each in self._collectives if len(each.alive)]
        for collective in going:
            collective.clear_away()
        self._gather(going)

    def _scatter(self) -> None:
        """Hand each collective the state of its own flows."""
        ends = np.searchsorted(self._active, self._offsets)
        for i, collective in enumerate(self._collectives):
            own = slice(ends[i], ends[i + 1])
            collective.alive, collective.left = self._active[own] - self._offsets[i], self._left[own]

    def _gather(self, collectives: list[Collective]) -> None:
        """Put the flows of all `collectives` one after the other."""
        self._joined = self._joiner.join([each.flows for each in collectives])
        self._collectives, self._shares = collectives, None
        self._offsets = self._joined.offsets
        alive = [each.alive + start for each, start in zip(collectives, self._offsets, strict=False)]
        self._active = np.concatenate(alive)
        self._left = np.concatenate([each.left for each in collectives])
        self._sliver = NEARLY * self._joined.problem.size[self._active]
