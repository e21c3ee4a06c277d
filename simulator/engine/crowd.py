"""All columns of a run: what all ranks learn at the same moment as vectors, the rest column by column.

A stage that follows on collectives alone is ready on all ranks by numbers that are known as soon as
the collective is released, so one operation on vectors does for all columns. Where something inside a
rank is shared, its ends are known one by one, and so is all that follows up to the next collective.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from simulator.engine.cohort import Cohort, Plan
from simulator.quantities import IntArray

FEW = 8  # columns up to which plain numbers are quicker than vectors


class Crowd:
    """Cohorts of one column each, and the vectors of what is common to all.

    `book` is that of `Cohort`; `meet(instance, at)` is called when the last of all columns arrives at a
    collective that is common. `end` is filled with completion times, ns, (nodes, cycles, columns).
    """

    def __init__(
        self,
        plan: Plan,
        duration_ns: IntArray,
        book: Callable[[Cohort, int, int], None],
        meet: Callable[[int, int], None],
    ) -> None:
        """Prepare columns with durations (nodes, cycles, columns); nothing has run yet."""
        columns = duration_ns.shape[2]
        self.plan = plan
        self.duration_ns = duration_ns
        self._times = np.zeros((columns, len(plan.waits)), dtype=np.int64)
        self._meet = meet
        self._ready: dict[int, IntArray] = {}
        self._waits = plan.own_waits()
        self._feeds = plan.feeds_of(common=True)
        feeds = plan.feeds_of(common=False)
        self._fed = [bool(targets) for targets in feeds]
        self.cohorts: list[Cohort] = []
        if not all(plan.common):
            rows = zip(by_column(duration_ns), self._times, strict=True)
            self.cohorts = [Cohort(plan, feeds, own, times.data, book) for own, times in rows]

    @property
    def end(self) -> IntArray:
        """Completion times, ns, (nodes, cycles, columns)."""
        shape = (len(self._times), self.plan.cycles, self.plan.nodes)
        return self._times[:, : self.plan.instances].reshape(shape).transpose(2, 1, 0)

    def durations(self, instance: int) -> IntArray:
        """Return the nominal duration of `instance` on each column, ns."""
        cycle, node = divmod(instance, self.plan.nodes)
        durations: IntArray = self.duration_ns[node, cycle]
        return durations

    def begin(self) -> None:
        """Start all that waits for nothing."""
        for instance in self.plan.first(common=True):
            self._go_on(instance, np.zeros(len(self._times), dtype=np.int64))
        first = self.plan.first(common=False)
        for cohort in self.cohorts:
            for instance in first:
                cohort.start(instance)

    def complete(self, instance: int, end: IntArray) -> None:
        """Record that `instance` ends at `end` on each column, and all that follows without an event."""
        node = instance % self.plan.nodes
        for target in [instance + distance for distance in self._feeds[node]]:
            self._feed(target, end)
        if self._fed[node]:
            for cohort, own in zip(self.cohorts, end.tolist(), strict=True):
                cohort.complete(instance, own)
        else:
            self._times[:, instance] = end

    def _feed(self, target: int, end: IntArray) -> None:
        known = self._ready.get(target)
        ready = self._ready[target] = end if known is None else np.maximum(known, end)
        self._waits[target] -= 1
        if self._waits[target] == 0:
            del self._ready[target]
            self._go_on(target, ready)

    def _go_on(self, instance: int, ready: IntArray) -> None:
        """A common instance has all its inputs."""
        if self.plan.meets[instance % self.plan.nodes]:
            self._meet(instance, int(ready.max()))
        else:
            self.complete(instance, ready + self.durations(instance))

    def check_complete(self) -> None:
        """Raise AssertionError when some instance never ran."""
        self.plan.check_complete(self._waits, common=True)
        for cohort in self.cohorts:
            cohort.check_complete()


def by_column(duration_ns: IntArray) -> Iterator[Sequence[int]]:
    """Yield the durations of each column of (nodes, cycles, columns), in the order of instances.

    They are those of one cycle where all cycles share their memory.
    """
    cycles = 1 if duration_ns.strides[1] == 0 else duration_ns.shape[1]
    columns = duration_ns[:, :cycles].transpose(2, 1, 0).reshape(duration_ns.shape[2], -1)
    known: dict[int, int] = {}  # one object for equal numbers: thousands of ranks then fit a cache better
    for column in columns:
        yield [known.setdefault(ns, ns) for ns in column.tolist()] if cycles == 1 else column.data
