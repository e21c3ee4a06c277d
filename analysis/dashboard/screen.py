"""What the dashboard shows for a choice: one run on the vector engine, and how it scales."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from analysis.compare import REFERENCE, Row, row_of
from analysis.dashboard.choices import OWN, Choice, compose
from analysis.dashboard.network import rebuilt
from analysis.plots.schedule import Schedule
from analysis.times import HOUR_S
from simulator.errors import RecscaleError
from simulator.results.report import StepReport
from simulator.scenario import Run, Scenario, run_scenario

ENGINE = "vector"
STEPS = 2
SIZES = (0.25, 0.5, 1.0, 2.0)  # of the chosen number of workers


@dataclass(frozen=True)
class Size:
    """One number of workers: step of a policy, ms, samples/s of all workers, cost where it is known."""

    policy: str
    workers: int
    step_ms: float
    throughput: float
    usd_per_million: float | None


@dataclass(frozen=True)
class Screen:
    """What is on the screen: the run, and what had to be changed to make it."""

    choice: Choice
    run: Run
    changes: tuple[str, ...]

    @property
    def report(self) -> StepReport:
        """The numbers."""
        return self.run.report

    @property
    def policy(self) -> str:
        """The policy's name."""
        return str(self.run.scenario.spec.policy.kind)

    @cached_property
    def reference(self) -> Size | None:
        """Serialized on as many workers, or None where it cannot run."""
        return None if self._serialized is None else _size(self._serialized)

    @cached_property
    def _serialized(self) -> Run | None:
        if self.policy == REFERENCE:
            return self.run
        try:
            return show(replace(self.choice, policy=REFERENCE)).run
        except RecscaleError:
            return None

    @cached_property
    def speedup(self) -> float | None:
        """How much faster a step is than serialized on as many workers."""
        return None if self.reference is None else self.reference.step_ms / self.report.step_ms["mean"]

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The run as a row of `recscale compare`, after serialized on as many workers where that differs."""
        own = row_of(self.run, self.policy)
        other = None if self.policy == REFERENCE else self._serialized
        return (own,) if other is None else (row_of(other, REFERENCE), own)

    @cached_property
    def schedule(self) -> Schedule:
        """Some steps of the slowest worker."""
        return Schedule(self.run, STEPS)

    @cached_property
    def sizes(self) -> tuple[Size, ...]:
        """The chosen policy and serialized on fewer and more workers; what cannot run is left out."""
        mine = self.run.scenario.cluster.ranks
        others = [size for size in self._workers if size != mine]
        policies = [self.choice.policy] if self.policy == REFERENCE else [self.choice.policy, REFERENCE]
        asked = [replace(self.choice, policy=name).on(size) for name in policies for size in others]
        found = [_size(self.run), self.reference, *map(size_of, asked)]
        return tuple(dict.fromkeys(size for size in found if size is not None))

    @property
    def _workers(self) -> list[int]:
        cluster = self.run.scenario.cluster
        hosts = sorted({max(1, round(cluster.hosts * share)) for share in SIZES})
        return [cluster.per_host * count for count in hosts]

    @property
    def notes(self) -> Iterator[str]:
        """What must be said beside the numbers."""
        yield from self.changes
        yield from self.report.notes
        yield from (f"beyond data: {what}" for what in self.report.extrapolated)
        cluster = self.run.scenario.cluster
        if cluster.ranks <= cluster.fabric.domain_size(cluster.per_host):
            yield "all workers are in one fast domain: the bandwidth between domains changes nothing"
        if self.choice.hardware != OWN:
            yield "on other hardware, nothing that was fitted to the scenario's own cluster is used"
        yield self.report.fidelity


@lru_cache(maxsize=16)  # a run with jitter on many workers holds tens of megabytes
def show(choice: Choice) -> Screen:
    """Return the screen for `choice`. Raises RecscaleError, in one line, where that cannot be run."""
    scenario, changes = long_enough(compose(choice))
    return Screen(choice, run_scenario(scenario, ENGINE), changes)


@lru_cache(maxsize=1024)
def size_of(choice: Choice) -> Size | None:
    """Return what `choice` reaches, or None where it cannot run."""
    try:
        return _size(run_scenario(long_enough(compose(choice))[0], ENGINE))
    except RecscaleError:
        return None


def _size(run: Run) -> Size | None:
    step_ms, cluster = float(run.step_ns.mean()) / 1e6, run.scenario.cluster
    if step_ms <= 0:
        return None
    throughput = run.scenario.workload.batch * cluster.ranks / step_ms * 1e3
    price = cluster.price_usd_per_hour
    usd = None if price is None else price / HOUR_S / throughput * 1e6
    return Size(run.scenario.spec.policy.kind, cluster.ranks, step_ms, throughput, usd)


def long_enough(scenario: Scenario) -> tuple[Scenario, tuple[str, ...]]:
    """Return the scenario with as many batches as its policy needs, and what had to be changed."""
    settings, graph = scenario.spec.run, scenario.graph
    deepest = max(stage.ahead for stage in graph.pipeline.stages)
    warm_up = max(settings.warm_up, deepest + 1)
    batches = max(settings.batches, warm_up + deepest + 2 * graph.period + 1)
    if (warm_up, batches) == (settings.warm_up, settings.batches):
        return scenario, ()
    given = scenario.document.data.get("run") or {}
    longer = rebuilt(scenario, run={**given, "warm_up": warm_up, "batches": batches})
    told = f"this policy works {deepest} batches ahead: run.warm_up is {warm_up}, run.batches is {batches}"
    return longer, (told,)
