"""The interval of a step: doubtful parameters drawn again and again, each draw simulated.

Draws run on the vector engine, in which nothing is shared: what counts is the ratio of a draw's step to
the undisturbed one, and the report's own step is stretched by it. Random spread of durations (`run.jitter`)
is drawn afresh in each.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.costs import CostModel
from simulator.engine.durations import tabulate
from simulator.engine.recurrence import run_recurrence
from simulator.errors import RecscaleError
from simulator.quantities import FloatArray
from simulator.scenario.interval_cluster import drawn_cluster
from simulator.scenario.interval_curves import curve_doubts, slowed
from simulator.scenario.interval_doubts import (
    CatalogDoubt,
    Doubt,
    PathDoubt,
    Sample,
    catalog_doubts,
    path_doubts,
)
from simulator.scenario.interval_software import (
    AS_IS,
    DrawnSoftware,
    SoftwareDoubt,
    software_doubts,
    spread_doubt,
)
from simulator.scenario.interval_spec import COVERAGE, IntervalSpec
from simulator.scenario.scenario import Scenario
from simulator.scenario.simulate import Run
from simulator.workload.draws import lognormal, mix64


def step_interval(run: Run) -> dict[str, float] | None:
    """Return `low` and `high` (ms) between which the mean step lies with `coverage`; None if not asked for.

    Raises InputError for parameters of `run.interval` that do not exist or do not enclose their value.
    """
    spec = run.scenario.spec.run.interval
    if spec is None:
        return None
    mean_ms = run.breakdown.step_ns / 1e6
    tails = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
    low, high = np.quantile(_Draws(run, spec).ratios, tails, method="hazen")  # levels are middles of parts
    return {"low": float(mean_ms * low), "high": float(mean_ms * high), "coverage": COVERAGE}


@dataclass(frozen=True)
class _Draws:
    """The samples of one run."""

    run: Run
    spec: IntervalSpec

    @cached_property
    def _by_path(self) -> tuple[PathDoubt, ...]:
        return path_doubts(self.run.scenario, self.spec.parameters)

    @cached_property
    def _of_catalog(self) -> tuple[CatalogDoubt, ...]:
        return catalog_doubts(self.run.scenario) if self.spec.catalog else ()

    @cached_property
    def _of_curves(self) -> Mapping[str, Doubt]:
        return curve_doubts(self.run.scenario) if self.spec.catalog else {}

    @cached_property
    def _of_software(self) -> tuple[SoftwareDoubt, ...]:
        named = [doubt.path for doubt in self.spec.parameters]
        return software_doubts(self.run.scenario, named) if self.spec.catalog else ()

    @property
    def _spread(self) -> FloatArray:
        """Return the factor of each sample by which the whole step is off beyond any number."""
        doubt = spread_doubt(self.run.scenario) if self.spec.catalog else None
        return np.array([doubt.drawn(sample) if doubt else 1.0 for sample in self._samples])

    @property
    def _seed(self) -> int:
        return self.run.scenario.spec.run.seed

    @property
    def ratios(self) -> FloatArray:
        """Step of each sample over the undisturbed one, shape (samples,)."""
        scenario = self.run.scenario
        base = self._mean_ns(scenario, scenario.costs, self._seed)
        found = np.array(list(self._steps(base))) / base
        levels = np.array([sample.level("between runs") for sample in self._samples])
        return found * self._spread * lognormal(levels, self.spec.between_runs)

    @property
    def _samples(self) -> list[Sample]:
        return [Sample(self._seed, index, self.spec.samples) for index in range(self.spec.samples)]

    def _steps(self, base: float) -> Iterator[float]:
        scenario, still = self.run.scenario, self.run.scenario.spec.run.variation().none
        for sample in self._samples:
            settings = [doubt.setting(sample) for doubt in self._by_path]
            try:
                changed = scenario.with_overrides(settings) if settings else scenario
                software = DrawnSoftware.of(self._of_software, sample)
                costs = software.costs(self._costs(changed, sample))
                if still and costs is scenario.costs and not software.ratios:
                    yield base  # nothing was drawn
                else:
                    yield self._mean_ns(changed, costs, _reseeded(sample), software)
            except RecscaleError as problem:
                raise self._refused(settings, problem) from problem

    def _refused(self, settings: Sequence[str], problem: RecscaleError) -> RecscaleError:
        """Return what is wrong with a draw, said as that."""
        where = self.run.scenario.document.where(("run", "interval"))
        drawn = f" ({'; '.join(settings)})" if settings else ""
        return type(problem)(f"a draw{drawn} is refused: {problem}", where)

    def _costs(self, scenario: Scenario, sample: Sample) -> CostModel:
        """Return the costs of a sample: catalog numbers and curves replaced by drawn ones."""
        costs = scenario.costs
        if self._of_catalog:
            cluster = drawn_cluster(scenario.spec.cluster, scenario.cluster, self._of_catalog, sample)
            costs = replace(costs, cluster=cluster)
        curves = {
            operation: slowed(costs.curves[operation], doubt.drawn(sample))
            for operation, doubt in self._of_curves.items()
            if operation in costs.curves
        }
        return replace(costs, curves={**costs.curves, **curves}) if curves else costs

    def _mean_ns(
        self, scenario: Scenario, costs: CostModel, seed: int, software: DrawnSoftware = AS_IS
    ) -> float:
        """Return the mean step of a run on the vector engine, ns."""
        settings, graph = scenario.spec.run, scenario.graph
        cycles = -(-settings.batches // graph.period)
        variation = replace(settings.variation(), seed=seed)
        ranks = scenario.cluster.ranks
        durations = tabulate(graph, lambda work: costs.seconds(software.held(work)), ranks, cycles, variation)
        run = Run(scenario, run_recurrence(graph, durations), durations, self.run.memory)
        return float(run.step_ns.mean())


def _reseeded(sample: Sample) -> int:
    """Return the seed of a sample's jitter, unlike that of any other."""
    mixed = mix64(np.array([sample.seed], dtype=np.uint64) + np.uint64(sample.index + 1))
    return int(mixed[0] >> np.uint64(1))
