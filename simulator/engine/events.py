"""The event engine: SimPy runs the marked graph, one token machine per cohort of ranks.

A cohort is a set of ranks that moves as one: all of them as vectors when folded, one rank each
when not. Between two rendezvous a cohort needs no events: a local stage that shares nothing ends
at a known time as soon as all its inputs have known times (a stream is a "free-at" number, not a
Resource). So is the time at which a cohort arrives at a collective; when the last one is known, the
collective gets its event.
"""

import gc
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import cast

import numpy as np
import simpy

from simulator.engine.agenda import Agenda
from simulator.engine.cohort import Cohort, Plan
from simulator.engine.contention import Contention
from simulator.engine.crowd import FEW, Crowd
from simulator.engine.durations import Durations
from simulator.engine.host import SharedHost, SharedRank
from simulator.engine.hosts import Hosted, hosted
from simulator.engine.network import Course, SharedNetwork
from simulator.engine.sharing import Law
from simulator.engine.traffic import Traffic
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

    With `contention`, stages of a rank share its engines, memories and copy paths, unlike ranks share
    their host, and collectives share the network; without, every stage takes its nominal time.

    Folded: alike ranks move as one. Unfolded: each rank is a cohort of its own. Both give the same
    times, because ranks meet at collectives only. `progress(done, total)` is called once in a while
    with the collectives settled so far and in all.
    """
    per_host, kinds = (contention.per_host, contention.kind_of) if contention else (1, None)
    if durations.longer is not None:  # classes know nothing of hosts: every rank keeps its even part
        per_host = 1
    ranks = hosted(durations, per_host, kinds, folded)
    durations = ranks.durations
    simulation = _Simulation(graph, ranks, folded, contention)
    simulation.progress = progress
    with _no_cycle_search():
        end = simulation.run()
    return Timeline(graph, durations.ns, end, durations.column_of, engine="events", events=simulation.events)


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
        self, graph: MarkedGraph, ranks: Hosted, folded: bool, contention: Contention | None
    ) -> None:
        self.env = simpy.Environment()
        self.agenda = Agenda(self.env)
        _, cycles, columns = ranks.durations.ns.shape
        shared = contention.shared(bool(ranks.together)) if contention else [False] * len(graph.nodes)
        self.plan = Plan.of(graph, cycles, shared, together=folded and columns > FEW)
        self.crowd = Crowd(self.plan, ranks.durations.ns, self._book, self._meet)
        self.network = None
        if contention:
            traffic = self._share(ranks, contention) if any(shared) else Traffic()
            self.network = SharedNetwork(self.env, contention, traffic)
        nominal = ranks.durations.nominal_ns
        self.apart = (np.ptp(nominal, axis=1) > 0).tolist()  # whether some ranks are done before others
        self.missing = [len(self.crowd.cohorts)] * self.plan.instances  # still to come, by collective
        self.latest = [0] * self.plan.instances  # the last arrival known so far
        self.events = 0
        self.settled = 0
        self.progress: Progress | None = None

    def run(self) -> IntArray:
        """Run to the end; return completion times (nodes, cycles, columns)."""
        self.crowd.begin()
        self.env.run()
        self.crowd.check_complete()
        self.events += self.agenda.events + (self.network.events if self.network else 0)
        return self.crowd.end

    def _share(self, ranks: Hosted, contention: Contention) -> Traffic:
        """Let each cohort share what its rank has, and cohorts on one host what that has."""
        traffic, alone = Traffic(), Law(contention.kinds)
        shared = [
            SharedRank(self.agenda, alone, cohort.complete, traffic, int(kind))
            for cohort, kind in zip(self.crowd.cohorts, ranks.kind_of, strict=True)
        ]
        for cohort, rank in zip(self.crowd.cohorts, shared, strict=True):
            cohort.shared = rank
        law = Law(contention.kinds, contention.per_host, contention.host_limit) if ranks.together else alone
        for columns in ranks.together:
            SharedHost.of(self.agenda, law, [(shared[column], count) for column, count in columns], traffic)
        traffic.hosts = list({id(rank.host): rank.host for rank in shared}.values())
        return traffic

    def _book(self, cohort: Cohort, instance: int, ready: int) -> None:
        """Let `cohort` begin a timed stage when it is ready, which it knows beforehand."""
        if self.plan.meets[instance % self.plan.nodes]:
            self._arrive(instance, ready)
        elif ready == self.env.now:
            self._begin((cohort, instance))
        else:
            self.agenda.at(ready, self._begin, (cohort, instance))

    def _begin(self, what: tuple[Cohort, int]) -> None:
        cohort, instance = what
        assert cohort.shared
        cohort.shared.begin(instance, instance % self.plan.nodes, cohort.duration(instance))

    def _arrive(self, instance: int, at: int) -> None:
        """Note when a cohort arrives at a collective; when all are known, settle it at the last."""
        if at > self.latest[instance]:
            self.latest[instance] = at
        self.missing[instance] -= 1
        if self.missing[instance] == 0:
            self._meet(instance, self.latest[instance])

    def _meet(self, instance: int, at: int) -> None:
        """Settle a collective when the last comes, which is known by now."""
        event = self.env.timeout(at - self.env.now, value=instance)
        event.callbacks.append(self._settle)
        self.events += 1

    def _settle(self, event: simpy.Event) -> None:
        """All have arrived, the last one now: each cohort goes on after its own duration."""
        instance = cast(int, event.value)
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
        durations = self.crowd.durations(instance)
        if self.apart[instance % self.plan.nodes]:
            yield from self._carry_apart(network, instance, durations)
            return
        shortest = int(durations.min())
        yield from network.carry(instance % self.plan.nodes, shortest)
        self._release(instance, int(self.env.now) - shortest)

    def _carry_apart(
        self, network: SharedNetwork, instance: int, durations: IntArray
    ) -> Generator[simpy.Event, None, None]:
        """The same where some ranks are done before others.

        If nothing was met by the time the first is done, all are told when they end, and the flows still
        under way keep their pace. Otherwise all ranks are done when the last flow is.
        """
        begin, shortest, longest = int(self.env.now), int(durations.min()), int(durations.max())
        course = Course()
        carried = self.env.process(network.carry(instance % self.plan.nodes, longest, course))
        self.events += 1
        yield self.env.timeout(shortest)
        if not course.met:
            course.settled = True
            self._release(instance, begin)
            yield carried
        else:
            yield carried
            now = int(self.env.now)
            self.crowd.complete(instance, np.maximum(now - longest + durations, now))

    def _release(self, instance: int, since: int) -> None:
        self.crowd.complete(instance, since + self.crowd.durations(instance))
