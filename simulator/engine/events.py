"""The event engine: SimPy runs the marked graph, one token machine per cohort of ranks.

A cohort is a set of ranks that moves as one: all of them as vectors when folded, one rank each
when not. Between two rendezvous a cohort needs no events: a local stage that shares nothing ends
at a known time as soon as all its inputs have known times (a stream is a "free-at" number, not a
Resource). At a collective each cohort spends one event to arrive; the last arrival settles it.
"""

from typing import Any, cast

import numpy as np
import simpy

from simulator.engine.cohort import Cohort, Plan
from simulator.engine.durations import Durations
from simulator.pipeline import MarkedGraph
from simulator.results.timeline import Timeline


def run_events(graph: MarkedGraph, durations: Durations, folded: bool = True) -> Timeline:
    """Return the completion times of all instances, simulated event by event.

    Folded: all ranks move as one cohort of vectors. Unfolded: each rank is a cohort of its own.
    Both give the same times, because ranks meet at collectives only.
    """
    if not folded:
        durations = Durations(durations.ns[:, :, durations.column_of], np.arange(len(durations.column_of)))
    columns = durations.ns.shape[2]
    groups = [slice(0, columns)] if folded else [slice(c, c + 1) for c in range(columns)]
    end, events = _Simulation(graph, durations, groups).run()
    return Timeline(graph, durations.ns, end, durations.column_of, engine="events", events=events)


class _Simulation:
    """One run: the SimPy environment, the cohorts and the meetings that are under way."""

    def __init__(self, graph: MarkedGraph, durations: Durations, groups: list[slice]) -> None:
        self.env = simpy.Environment()
        self.plan = Plan.of(graph, durations.ns.shape[1])
        self.cohorts = [Cohort(self.plan, durations.ns[:, :, group], self._book) for group in groups]
        self.missing: dict[int, int] = {}  # cohorts still to come, by collective under way
        self.events = 0

    def run(self) -> tuple[np.ndarray, int]:
        """Run to the end; return completion times (nodes, cycles, columns) and the events spent."""
        for cohort in self.cohorts:
            cohort.begin()
        self.env.run()
        for cohort in self.cohorts:
            cohort.check_complete()
        return np.concatenate([cohort.times() for cohort in self.cohorts], axis=2), self.events

    def _book(self, cohort: Cohort, instance: int, ready: Any) -> None:
        """Let `cohort` arrive at a collective when the last of its ranks is ready."""
        last = int(ready) if cohort.width == 1 else int(ready.max())
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
        now = int(self.env.now)
        for cohort in self.cohorts:
            cohort.complete(instance, now + cohort.duration(instance))
