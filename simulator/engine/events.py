"""The event engine: SimPy runs the marked graph, one token machine per cohort of ranks.

A cohort is a set of ranks that moves as one: all of them as vectors when folded, one rank each
when not. Between two rendezvous a cohort needs no events: a local stage that shares nothing ends
at a known time as soon as all its inputs have known times (a stream is a "free-at" number, not a
Resource). At a collective each cohort spends one event to arrive; the last arrival settles it.
"""

import gc
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import simpy

from simulator.engine.cohort import Cohort, Plan, by_instance
from simulator.engine.contention import Contention
from simulator.engine.durations import Durations
from simulator.engine.network import SharedNetwork
from simulator.engine.sharing import Needs, SharedRank
from simulator.pipeline import MarkedGraph
from simulator.quantities import IntArray
from simulator.results.timeline import Timeline

Progress = Callable[[int, int], None]
BETWEEN_REPORTS = 16


def run_events(
    graph: MarkedGraph,
    durations: Durations,
    folded: bool = True,
    contention: Contention | None = None,
    progress: Progress | None = None,
) -> Timeline:
    """Return the completion times of all instances, simulated event by event.

    With `contention`, stages of a rank share its engines, memories and copy paths, and collectives
    share the network; without, every stage takes its nominal time.

    Folded: alike ranks move as one. Unfolded: each rank is a cohort of its own. Both give the same
    times, because ranks meet at collectives only. `progress(done, total)` is called once in a while
    with the collectives settled so far and in all.
    """
    simulation = _Simulation(graph, durations, folded, contention)
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

    def __init__(
        self, graph: MarkedGraph, durations: Durations, folded: bool, contention: Contention | None
    ) -> None:
        self.env = simpy.Environment()
        self.needs = contention.needs if contention else Needs.none(graph)
        self.plan = Plan.of(graph, durations.ns.shape[1], self.needs.shared)
        self.network = SharedNetwork(self.env, contention) if contention else None
        self.cohorts = list(self._grouped(durations, folded))
        self.ranks = {id(cohort): self._shared_rank(cohort) for cohort in self.cohorts}
        self.missing: dict[int, int] = {}  # cohorts still to come, by collective under way
        self.events = 0
        self.settled = 0
        self.progress: Progress | None = None

    def _grouped(self, durations: Durations, folded: bool) -> Iterator[Cohort]:
        """Yield one cohort of all columns, or one per column where ranks share, or one per rank."""
        columns = range(durations.ns.shape[2])
        if folded and not any(self.needs.shared):
            yield Cohort(self.plan, len(columns), by_instance(durations.ns), self._book)
            return
        each = [by_instance(durations.ns[:, :, column : column + 1]) for column in columns]
        for column in columns if folded else durations.column_of:
            yield Cohort(self.plan, 1, each[column], self._book)

    def _shared_rank(self, cohort: Cohort) -> SharedRank:
        return SharedRank(self.env, self.needs, lambda instance: cohort.complete(instance, int(self.env.now)))

    def run(self) -> IntArray:
        """Run to the end; return completion times (nodes, cycles, columns)."""
        for cohort in self.cohorts:
            cohort.begin()
        self.env.run()
        for cohort in self.cohorts:
            cohort.check_complete()
        self.events += sum(rank.events for rank in self.ranks.values())
        self.events += self.network.events if self.network else 0
        return np.concatenate([cohort.times() for cohort in self.cohorts], axis=2)

    def _book(self, cohort: Cohort, instance: int, ready: Any) -> None:
        """Let `cohort` begin a timed stage when the last of its ranks is ready."""
        last = ready if cohort.width == 1 else int(ready.max())
        if last == self.env.now and not self.plan.meets[instance % self.plan.nodes]:
            self._begin_shared(cohort, instance)
            return
        event = self.env.timeout(last - self.env.now, value=(cohort, instance))
        event.callbacks.append(self._begin)
        self.events += 1

    def _begin(self, event: simpy.Event) -> None:
        cohort, instance = cast(tuple[Cohort, int], event.value)
        node = instance % self.plan.nodes
        if self.plan.meets[node]:
            self._arrive(instance)
        else:
            self._begin_shared(cohort, instance)

    def _begin_shared(self, cohort: Cohort, instance: int) -> None:
        rank = self.ranks[id(cohort)]
        rank.begin(instance, instance % self.plan.nodes, cohort.duration_ns[instance])

    def _arrive(self, instance: int) -> None:
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
        if self.network:
            self.env.process(self._carry(self.network, instance))
        else:
            self._release(instance, int(self.env.now))

    def _carry(self, network: SharedNetwork, instance: int) -> Generator[simpy.Event, None, None]:
        """Take a collective through the network; what others cost it there delays all ranks alike.

        Ranks may take unequally long (jitter): the first to end must not be told later than it ends.
        """
        shortest = min(cohort.shortest(instance) for cohort in self.cohorts)
        yield from network.carry(instance % self.plan.nodes, shortest)
        self._release(instance, int(self.env.now) - shortest)

    def _release(self, instance: int, since: int) -> None:
        for cohort in self.cohorts:
            cohort.complete(instance, since + cohort.duration_ns[instance])
