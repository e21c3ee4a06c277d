"""The event engine: SimPy runs the marked graph, one token machine per cohort of ranks.

A cohort is a set of ranks that moves as one: all of them as vectors when folded, one rank each
when not. Between two rendezvous a cohort needs no events: a local stage that shares nothing ends
at a known time as soon as all its inputs have known times (a stream is a "free-at" number, not a
Resource). At a collective each cohort spends one event to arrive; the last arrival settles it.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import simpy

from simulator.engine.cohort import Cohort, Plan, by_instance
from simulator.engine.durations import Durations
from simulator.pipeline import MarkedGraph
from simulator.quantities import IntArray
from simulator.results.timeline import Timeline

Progress = Callable[[int, int], None]
BETWEEN_REPORTS = 16


def run_events(
    graph: MarkedGraph, durations: Durations, folded: bool = True, progress: Progress | None = None
) -> Timeline:
    """Return the completion times of all instances, simulated event by event.

    Folded: all columns move as one cohort of vectors. Unfolded: each rank is a cohort of its own.
    Both give the same times, because ranks meet at collectives only. `progress(done, total)` is
    called once in a while with the collectives settled so far and in all.
    """
    simulation = _Simulation(graph, durations, folded)
    simulation.progress = progress
    with _no_cycle_search():
        end = simulation.run()
    column_of = durations.column_of if folded else np.arange(len(durations.column_of), dtype=np.int64)
    duration_ns = durations.ns if folded else durations.ns[:, :, durations.column_of]
    return Timeline(graph, duration_ns, end, column_of, engine="events", events=simulation.events)


@contextmanager
def _no_cycle_search() -> Iterator[None]:
    """Millions of events come and go without cycles; looking for some costs a fifth of the run."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Simulation:
    """One run: the SimPy environment, the cohorts, and the collectives that are under way."""

    def __init__(self, graph: MarkedGraph, durations: Durations, folded: bool) -> None:
        self.env = simpy.Environment()
        self.plan = Plan.of(graph, durations.ns.shape[1])
        self.cohorts = list(self._folded(durations) if folded else self._unfolded(durations))
        self.missing: dict[int, int] = {}  # cohorts still to come, by collective under way
        self.events = 0
        self.settled = 0
        self.progress: Progress | None = None

    def _folded(self, durations: Durations) -> Iterator[Cohort]:
        yield Cohort(self.plan, durations.ns.shape[2], by_instance(durations.ns), self._book)

    def _unfolded(self, durations: Durations) -> Iterator[Cohort]:
        columns = range(durations.ns.shape[2])
        shared = [by_instance(durations.ns[:, :, column : column + 1]) for column in columns]
        for column in durations.column_of:
            yield Cohort(self.plan, 1, shared[column], self._book)

    def run(self) -> IntArray:
        """Run to the end; return completion times (nodes, cycles, columns)."""
        for cohort in self.cohorts:
            cohort.begin()
        self.env.run()
        for cohort in self.cohorts:
            cohort.check_complete()
        return np.concatenate([cohort.times() for cohort in self.cohorts], axis=2)

    def _book(self, cohort: Cohort, instance: int, ready: Any) -> None:
        """Let `cohort` arrive at a collective when the last of its ranks is ready."""
        last = ready if cohort.width == 1 else int(ready.max())
        event = self.env.timeout(last - self.env.now, value=instance)
        event.callbacks.append(self._arrive)
        self.events += 1

    def _arrive(self, event: simpy.Event) -> None:
        instance = cast(int, event.value)
        missing = self.missing.get(instance, len(self.cohorts)) - 1
        self.missing[instance] = missing
        if missing == 0:
            del self.missing[instance]
            self._settle(instance)

    def _settle(self, instance: int) -> None:
        """All have arrived, the last one now: each cohort goes on after its own duration."""
        self.settled += 1
        if self.progress and self.settled % BETWEEN_REPORTS == 0:
            self.progress(self.settled, sum(self.plan.meets) * self.plan.cycles)
        now = int(self.env.now)
        for cohort in self.cohorts:
            cohort.complete(instance, now + cohort.duration_ns[instance])
