"""From a scenario to its report: the one place where all parts meet."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.engine.buckets import bucketed
from simulator.engine.contention import Contention
from simulator.engine.durations import Durations, refuse_oversized
from simulator.engine.events import Progress, run_events
from simulator.engine.recurrence import run_recurrence
from simulator.engine.usage import Usage, Used
from simulator.errors import InputError, did_you_mean
from simulator.results.bottleneck import Bottleneck, find_bottleneck
from simulator.results.conservation import Updates, conserved
from simulator.results.copies import with_copies
from simulator.results.exposed import Breakdown, break_down
from simulator.results.key_classes import Reuse, longest_gap
from simulator.results.least import least_ns
from simulator.results.memory import Memory
from simulator.results.report import StepReport
from simulator.results.staleness import Staleness, observe
from simulator.results.tables import counted_cycles
from simulator.results.timeline import Timeline
from simulator.scenario.bounds import counted, cycles_of, every_rank, shortest_of
from simulator.scenario.memory import checked_memory, fitting_memory
from simulator.scenario.reuse import reuse_of
from simulator.scenario.run_spec import FoldSpec
from simulator.scenario.scenario import Scenario

__all__ = ["Run", "check_window", "checked_memory", "run_scenario", "tabulated"]

ENGINES = ("events", "vector")


@dataclass(frozen=True)
class Run:
    """One simulated scenario: its timeline and everything read off it."""

    scenario: Scenario
    timeline: Timeline
    durations: Durations
    memory: Memory

    @property
    def shares(self) -> bool:
        """Whether stages and collectives share what they use."""
        return self.timeline.engine == "events" and self.scenario.spec.run.contention

    @cached_property
    def used(self) -> Used:
        """What the counted steps used of the slowest rank, its host and its links.

        Raises AssertionError where sharing has let a resource give more than it has.
        """
        scenario = self.scenario
        contention = Contention.of(self.timeline.graph, scenario.costs, scenario.spec.run.weigh())
        updates = self.timeline.update_ns[:, self.column]
        begin, end = int(updates[self.first - 1]), int(updates[self.last - 1])
        used = Usage(self.timeline, contention).between(self.column, begin, end)
        rounding = self.timeline.end_ns[:, :, 0].size / (end - begin)  # each end is up to 1 ns late
        over = {name: share for name, share in used.certain.items() if share > 1 + 1e-9 + rounding}
        if self.shares and over:
            raise AssertionError(f"more is used than there is: {over}")
        return used

    @cached_property
    def first(self) -> int:
        """The first batch whose step counts."""
        return self.scenario.spec.run.warm_up

    @property
    def column(self) -> int:
        """The column of the slowest rank."""
        return self.timeline.slowest_column

    @cached_property
    def last(self) -> int:
        """One past the last batch whose step counts: whole periods, and the pipeline is still full."""
        return counted(self.timeline.graph, self.scenario.spec.run, self.timeline.batches)[1]

    @cached_property
    def step_ns(self) -> np.ndarray:
        """Time between consecutive completed updates on the slowest rank, ns."""
        updates = self.timeline.update_ns[self.first - 1 : self.last, self.column]
        return np.diff(updates).astype(np.float64)

    @cached_property
    def breakdown(self) -> Breakdown:
        """Compute and exposed time on the slowest rank."""
        return break_down(self.timeline, self.column, self.first, self.last)

    @cached_property
    def bottleneck(self) -> Bottleneck:
        """The critical cycle over the shortest durations, of stages that nothing varies."""
        return find_bottleneck(self.timeline.graph, self.shortest.nominal_ns)

    @cached_property
    def pace(self) -> Bottleneck:
        """The critical cycle over the durations that stages had in the counted batches, on average."""
        graph, window = self.timeline.graph, counted_cycles(self.timeline, self.first, self.last)
        taken = (self.timeline.end_ns - self.timeline.began_ns)[:, window].mean(axis=1)
        return find_bottleneck(graph, np.rint(taken).astype(np.int64))

    @cached_property
    def staleness(self) -> Staleness | None:
        """What the last counted batches saw, whole periods of them."""
        period = self.timeline.graph.period
        seen = range(max(self.first, self.last - max(3, period)), self.last)
        own = observe(self.timeline, self.column, seen, self._reuse)
        return with_copies(own, self.timeline, self.column, seen)

    @cached_property
    def updates(self) -> Updates | None:
        """Which shares of the updates of rows are lost or applied twice, on the slowest rank."""
        return conserved(self.timeline, self.column, self._reuse)

    @cached_property
    def _reuse(self) -> Reuse:
        longest = longest_gap(self.timeline.graph.pipeline)
        return reuse_of(self.scenario.workload, self.timeline.ranks, longest)

    @property
    def hosts_shared(self) -> bool:
        """Whether ranks of some host differ, and so share it."""
        asked = self.timeline.engine == "events" and self.scenario.spec.run.contention
        if not asked or self.durations.longer is not None:
            return False
        hosts = self.durations.column_of.reshape(-1, self.scenario.cluster.per_host)
        return bool((hosts != hosts[:, :1]).any())

    @property
    def is_estimate(self) -> bool:
        """Whether the engine left out what the scenario lets stages, ranks and collectives share."""
        return self.timeline.engine == "vector" and self.scenario.spec.run.contention

    @cached_property
    def shortest(self) -> Durations:
        """The shortest durations that each rank can get, of ranks that are all told apart."""
        whole = self.durations.longer is None
        durations = self.durations if whole else every_rank(self.scenario, self.timeline.cycles)
        return shortest_of(self.scenario, durations)

    @cached_property
    def least_step_ns(self) -> float:
        """The least mean step of the counted batches that the shortest durations allow, ns."""
        window = self.first, self.last
        return least_ns(self.timeline.graph, self.shortest.ns, *window) / (self.last - self.first)

    @cached_property
    def lower_bound_ns(self) -> float:
        """What the mean step cannot be below: the critical cycle over the shortest durations, ns.

        Where durations vary, and while a pipeline still settles, that is a bound for the long run only; there
        it is the longest path through the counted batches. Raises AssertionError when the step is shorter by
        more than rounding, which alone is cut off.
        """
        spent = int(self.step_ns.sum())
        cycle = self.bottleneck.period_ns
        settled = self.scenario.spec.run.variation().none and cycle * len(self.step_ns) <= spent
        if settled and self.timeline.engine == "vector":
            return min(float(cycle), self.breakdown.step_ns)
        if self.least_step_ns > self.breakdown.step_ns * (1 + 1e-12):
            raise AssertionError("a step is shorter than the shortest durations allow")
        return min(float(cycle) if settled else self.least_step_ns, self.breakdown.step_ns)

    @cached_property
    def report(self) -> StepReport:
        """The report."""
        from simulator.scenario.reporting import make_report

        return make_report(self)


def run_scenario(scenario: Scenario, engine: str = "events", progress: Progress | None = None) -> Run:
    """Simulate `scenario` with `engine` (`events` or `vector`).

    `progress(done, total)` is called now and then with collectives settled and to be settled.
    Raises InputError on impossible run settings and InfeasibleError when it cannot fit or deadlocks.
    """
    if engine not in ENGINES:
        raise InputError(f'unknown engine "{engine}"{did_you_mean(engine, ENGINES)}')
    graph = scenario.graph
    checked_memory(scenario)
    settings = scenario.spec.run
    check_window(scenario)
    durations = tabulated(scenario, cycles_of(scenario))
    if engine == "vector":
        timeline = run_recurrence(graph, durations)
    else:
        shared = Contention.of(graph, scenario.costs, settings.weigh()) if settings.contention else None
        timeline = run_events(graph, durations, settings.fold != "off", shared, progress)
    return Run(scenario, timeline, durations, fitting_memory(scenario, timeline))


def tabulated(scenario: Scenario, cycles: int) -> Durations:
    """Return the durations of all stages. Raises InputError when one has no finite time."""
    settings = scenario.spec.run
    if settings.fold == "off":
        refuse_oversized(len(scenario.graph.nodes), cycles, scenario.cluster.ranks)
    durations = every_rank(scenario, cycles)
    if isinstance(settings.fold, FoldSpec) and not settings.variation().none:
        place = scenario.document.where(("run", "fold"))
        raise InputError("fold within a share goes with fixed durations only: leave out run.jitter", place)
    return classed(scenario, durations)


def classed(scenario: Scenario, durations: Durations) -> Durations:
    """Return `durations` with nearly alike ranks in one class, where the scenario asks for that."""
    fold = scenario.spec.run.fold
    return bucketed(durations, fold.within) if isinstance(fold, FoldSpec) else durations


def check_window(scenario: Scenario) -> None:
    """The steps that count must start after the deepest lookahead and end before the pipeline drains."""
    settings, graph = scenario.spec.run, scenario.graph
    deepest = max(stage.ahead for stage in graph.pipeline.stages)
    if settings.warm_up < deepest + 1:
        place = scenario.document.where(("run", "warm_up"))
        raise InputError(
            f"warm_up must be at least {deepest + 1}: this policy works {deepest} batches ahead", place
        )
    least = settings.warm_up + deepest + 2 * graph.period + 1
    if settings.batches < least:
        place = scenario.document.where(("run", "batches"))
        raise InputError(f"batches must be at least {least} with a warm-up of {settings.warm_up}", place)
