"""Fitting: numbers of a scenario that nobody published, found from measurements of the whole system.

A fit takes any paths of a scenario file and any quantities of its runs, and minimises the squared
logarithms of simulated over measured. It says how well each target is met, how wide each value is
for the stated doubt about the targets, and it refuses what the targets cannot tell apart.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.errors import InputError
from simulator.quantities import FloatArray
from simulator.results.report import StepReport
from simulator.scenario import Scenario, run_scenario

STEP = 1e-3  # of the searched range, at least: far above the whole nanoseconds of the clock
BLIND = 1e-6  # singular values below this share of the largest: the targets do not see it
EDGE = 1e-4  # of the searched range: nearer to an end than this, the end decided


@dataclass(frozen=True)
class Parameter:
    """A positive number at `path` of the scenario, written in `unit`, searched from `low` to `high`.

    Raises InputError unless 0 < low < high.
    """

    path: str
    low: float
    high: float
    unit: str = ""

    def __post_init__(self) -> None:
        """Refuse a range that has no logarithm or no width."""
        if not 0 < self.low < self.high < float("inf"):
            raise InputError(f"{self.path}: the range must satisfy 0 < low < high")

    def setting(self, value: float) -> str:
        """Return the `path=value` setting that gives the parameter `value`."""
        return f"{self.path}={value!r} {self.unit}".strip()

    def at(self, share: float) -> float:
        """Return the value at `share` (0 to 1) of the range, in equal ratios."""
        return float(self.low * (self.high / self.low) ** share)


@dataclass(frozen=True)
class Target:
    """A measured `value`, and how to get the same quantity from the scenario.

    `measure` receives the scenario on `workers` ranks under `policy` with `settings` applied.
    `spread` is the doubt about the value, as a share of it. Raises InputError unless the value is
    positive and the spread is not negative.
    """

    name: str
    value: float
    measure: Callable[[Scenario], float]
    workers: int | None = None
    policy: Mapping[str, Any] | None = None
    settings: tuple[str, ...] = field(default=())
    spread: float = 0.0

    def __post_init__(self) -> None:
        """Refuse values without a logarithm."""
        if not (self.value > 0 and self.spread >= 0):
            raise InputError(f'target "{self.name}": the value must be positive, the spread not negative')

    def predicted(self, scenario: Scenario) -> float:
        """Return the simulated quantity."""
        shaped = scenario if self.policy is None else scenario.with_policy(dict(self.policy))
        shaped = shaped if self.workers is None else shaped.with_workers(self.workers)
        return self.measure(shaped.with_overrides(list(self.settings)))


@dataclass(frozen=True)
class FitResult:
    """What a fit found; mappings by path of the parameter and by name of the target.

    `residuals` are simulated over measured, less 1. `intervals` are the values one spread of the
    targets below and above (targets taken as independent, to first order in the logarithm), or
    None when no target states a spread. `at_bound` names parameters that the search range stopped.
    """

    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] | None
    residuals: Mapping[str, float]
    at_bound: tuple[str, ...] = ()


def reported(quantity: Callable[[StepReport], float]) -> Callable[[Scenario], float]:
    """Return a `Target.measure` that runs the scenario and reads `quantity` off its report."""
    return lambda scenario: quantity(run_scenario(scenario).report)


def fit(scenario: Scenario, parameters: Sequence[Parameter], targets: Sequence[Target]) -> FitResult:
    """Return the values of `parameters` under which `scenario` comes nearest to `targets`.

    Least squares (scipy, trust region) on logarithms of both. Raises InputError when there are
    fewer targets than parameters, or when the targets do not determine the parameters.
    """
    from scipy.optimize import least_squares

    _check_counts(parameters, targets)
    problem = _Problem(scenario, parameters, targets)
    # scipy's difference steps are relative, so the searched range is laid from 1 to 2, away from 0
    start = np.full(len(parameters), 1.5)
    found = least_squares(
        lambda x: problem.residuals(x - 1), start, bounds=(1.0, 2.0), jac="3-point", diff_step=STEP
    )
    return problem.result(found.x - 1, found.fun, found.jac)


def _check_counts(parameters: Sequence[Parameter], targets: Sequence[Target]) -> None:
    if not parameters or len(targets) < len(parameters):
        raise InputError(f"{len(parameters)} parameters cannot be fitted on {len(targets)} targets")
    for names in ([one.path for one in parameters], [one.name for one in targets]):
        if len(set(names)) < len(names):
            raise InputError(f"a parameter or target is given twice: {', '.join(names)}")


@dataclass(frozen=True)
class _Problem:
    """The fit in shares of the searched ranges."""

    scenario: Scenario
    parameters: Sequence[Parameter]
    targets: Sequence[Target]

    def residuals(self, shares: FloatArray) -> FloatArray:
        """Return log(simulated / measured), shape (targets,)."""
        pairs = zip(self.parameters, shares, strict=True)
        changed = self.scenario.with_overrides([one.setting(one.at(share)) for one, share in pairs])
        return np.array([np.log(target.predicted(changed) / target.value) for target in self.targets])

    def result(self, shares: FloatArray, residuals: FloatArray, jacobian: FloatArray) -> FitResult:
        """Return the solution in the user's terms; `jacobian` has shape (targets, parameters)."""
        widths = np.log([one.high / one.low for one in self.parameters])
        slopes = jacobian / widths
        self._check_determined(slopes)
        paths = [one.path for one in self.parameters]
        values = {one.path: one.at(share) for one, share in zip(self.parameters, shares, strict=True)}
        names = [target.name for target in self.targets]
        errors = np.expm1(residuals).tolist()
        ends = [path for path, share in zip(paths, shares, strict=True) if not EDGE < share < 1 - EDGE]
        return FitResult(
            values, self._intervals(values, slopes), dict(zip(names, errors, strict=True)), tuple(ends)
        )

    def _check_determined(self, slopes: FloatArray) -> None:
        """Refuse parameters that no target feels, alone or against each other."""
        _, sizes, directions = np.linalg.svd(slopes, full_matrices=False)
        if sizes[-1] <= BLIND * max(sizes[0], BLIND):
            pairs = zip(self.parameters, directions[-1], strict=True)
            names = ", ".join(one.path for one, share in pairs if abs(share) > 0.1)
            raise InputError(f"the targets do not determine {names}")

    def _intervals(
        self, values: Mapping[str, float], slopes: FloatArray
    ) -> dict[str, tuple[float, float]] | None:
        spreads = np.array([target.spread for target in self.targets])
        if not spreads.any():
            return None
        widths = np.sqrt(((np.linalg.pinv(slopes) * spreads) ** 2).sum(axis=1))
        pairs = zip(values.items(), np.exp(widths).tolist(), strict=True)
        return {path: (value / factor, value * factor) for (path, value), factor in pairs}
