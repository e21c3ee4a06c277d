"""What each physical parameter is worth: the lower bound on a step with the parameter halved and doubled."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from analysis.parameters import parameters
from analysis.scaled import Parameter
from simulator.errors import RecscaleError
from simulator.quantities import IntArray
from simulator.results.bottleneck import Bottleneck, find_bottleneck
from simulator.scenario import Scenario
from simulator.scenario.nominal import nominal_ns

HALF, TWICE = 0.5, 2.0


@dataclass(frozen=True)
class Sensitivity:
    """The lower bound with `parameter` halved and doubled (a share: raised to 100 % at most), ms.

    `elasticity` is per cent of step per cent of parameter over that range: -1 where the step is
    inversely proportional to it, 0 where it changes nothing. `used` tells whether any stage's time
    depends on it. A side that is not possible is None.
    """

    parameter: str
    value: str
    halved_ms: float | None
    doubled_ms: float | None
    elasticity: float
    used: bool


def sensitivities(scenario: Scenario, bottleneck: Bottleneck) -> list[Sensitivity]:
    """Return one entry per physical parameter of `scenario`, those that matter most first."""
    base = _Base(scenario, bottleneck)
    found = [base.sensitivity(parameter) for parameter in parameters(scenario)]
    return sorted(found, key=lambda one: (-abs(one.elasticity), not one.used, one.parameter))


@dataclass(frozen=True)
class Gain:
    """What `factor` times `parameter` makes of the lower bound: `step_ms`, and the share of it saved."""

    parameter: str
    value: str
    factor: float
    step_ms: float
    saved_share: float


def gains(scenario: Scenario, bottleneck: Bottleneck, more: float = 1.1) -> list[Gain]:
    """Return what an improvement of each physical parameter by `more` brings, the largest gains first.

    Times are made shorter by it and rates larger, whichever helps; parameters that save less than a
    thousandth of the step are left out, and so are those that cannot be that large.
    """
    base = _Base(scenario, bottleneck)
    tried = [
        base.gain(parameter, factor) for parameter in parameters(scenario) for factor in (more, 1 / more)
    ]
    kept = [gain for gain in tried if gain is not None and gain.saved_share >= 1e-3]
    return sorted(kept, key=lambda gain: (-gain.saved_share, gain.parameter))


class _Base:
    """The scenario as it is, and how to find its lower bound with something changed."""

    def __init__(self, scenario: Scenario, bottleneck: Bottleneck) -> None:
        self.scenario = scenario
        self.graph = scenario.graph
        self.nominal = nominal_ns(scenario)
        self.bound = float(bottleneck.period_ns)
        stages = set(bottleneck.stages)
        self.critical = np.array([node.stage.name in stages for node in self.graph.nodes])

    def sensitivity(self, parameter: Parameter) -> Sensitivity:
        """Return what halving and doubling `parameter` does."""
        tried = [(factor, self._bound(parameter, factor)) for factor in self._factors(parameter)]
        bounds = {factor: bound for factor, (bound, _) in tried if bound is not None}
        twice = next((bound for factor, bound in bounds.items() if factor > 1), None)
        return Sensitivity(
            parameter.path,
            parameter.text,
            _ms(bounds.get(HALF)),
            _ms(twice),
            self._elasticity(bounds),
            any(used for _, (_, used) in tried),
        )

    def gain(self, parameter: Parameter, factor: float) -> Gain | None:
        """Return what `factor` times `parameter` brings, or None where it is not possible."""
        bound, _ = self._bound(parameter, min(factor, parameter.largest_factor))
        if bound is None or not self.bound:
            return None
        saved = 1.0 - bound / self.bound
        return Gain(parameter.path, parameter.text, min(factor, parameter.largest_factor), bound / 1e6, saved)

    def _factors(self, parameter: Parameter) -> Iterator[float]:
        yield HALF
        if parameter.largest_factor > 1:
            yield min(TWICE, parameter.largest_factor)

    def _elasticity(self, bounds: dict[float, float]) -> float:
        """Return the slope of log(bound) over log(parameter) across the range that was tried."""
        ends = sorted({1.0: self.bound, **bounds}.items())
        (low, at_low), (high, at_high) = ends[0], ends[-1]
        if low == high or at_low <= 0 or at_high <= 0 or at_low == at_high:
            return 0.0
        return log(at_high / at_low) / log(high / low)

    def _bound(self, parameter: Parameter, factor: float) -> tuple[float | None, bool]:
        """Return the lower bound in ns with the parameter scaled, and whether any stage's time changed."""
        try:
            changed = self._changed(parameter, factor)
        except (RecscaleError, ValueError):  # beyond what the part can be
            return None, False
        if changed.shape == self.nominal.shape and np.array_equal(changed, self.nominal):
            return self.bound, False
        if self._only_off_the_cycle_and_faster(changed):
            return self.bound, True
        return float(find_bottleneck(self.graph, changed).period_ns), True

    def _changed(self, parameter: Parameter, factor: float) -> IntArray:
        seconds: Callable[..., object] = parameter.scaled(factor)
        return nominal_ns(self.scenario, seconds)  # type: ignore[arg-type]

    def _only_off_the_cycle_and_faster(self, changed: IntArray) -> bool:
        """The cycle stays critical when all that changed got faster beside it: no need to look for it."""
        if changed.shape != self.nominal.shape or np.any(changed > self.nominal):
            return False
        return np.array_equal(changed[self.critical], self.nominal[self.critical])


def _ms(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6
