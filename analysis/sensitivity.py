"""What each physical parameter is worth: the step with the parameter halved, doubled or improved.

Steps are those of the engine that `run` uses. Where a scenario has so many kinds of ranks and parameters
that running all would take too long, those that an estimate finds most important are run, and each entry
says which it is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log

import numpy as np

from analysis.effects import Case, Effects
from analysis.parameters import parameters
from analysis.scaled import Parameter
from simulator.errors import RecscaleError
from simulator.quantities import IntArray
from simulator.results.bottleneck import Bottleneck, find_bottleneck
from simulator.scenario import Scenario

HALF, TWICE = 0.5, 2.0
EVENTS, ESTIMATE = "events", "estimate"
MOST_INSTANCES = 1_500_000  # stages run in all, over all cases: about half a minute
MOST_PARAMETERS = 60  # of which all are run
RUN_OF_MORE = 8  # where there are more, as with many groups of hosts


@dataclass(frozen=True)
class Sensitivity:
    """The step with `parameter` halved and doubled (a share: raised to 100 % at most), ms.

    `elasticity` is per cent of step per cent of parameter over that range: -1 where the step is
    inversely proportional to it, 0 where it changes nothing. `used` tells whether any stage's time or
    what stages share depends on it. A side that is not possible is None. `engine` is `events`, or `estimate`
    for the step times what the parameter does to the critical cycle over nominal durations.
    """

    parameter: str
    value: str
    halved_ms: float | None
    doubled_ms: float | None
    elasticity: float
    used: bool
    engine: str = EVENTS


def sensitivities(effects: Effects) -> list[Sensitivity]:
    """Return one entry per physical parameter, those that matter most first."""
    found = _Steps(effects).of_all(list(parameters(effects.scenario)), _around)
    entries = [_sensitivity(one, effects.step_ns) for one in found]
    return sorted(entries, key=lambda one: (-abs(one.elasticity), not one.used, one.parameter))


@dataclass(frozen=True)
class Gain:
    """What `factor` times `parameter` makes of the step: `step_ms`, and the share of it saved.

    `engine` is as in `Sensitivity`.
    """

    parameter: str
    value: str
    factor: float
    step_ms: float
    saved_share: float
    engine: str = EVENTS


def gains(scenario: Scenario, more: float = 1.1) -> list[Gain]:
    """Return what an improvement of each physical parameter by `more` brings, the largest gains first.

    Times are made shorter by it and rates larger, whichever helps; parameters that save less than a
    thousandth of the step are left out, and so are those that cannot be that large.
    """
    effects = Effects(scenario)
    steps = _Steps(effects, better=True)
    found = steps.of_all(list(parameters(scenario)), lambda one: _improved(one, more))
    tried = [gain for one in found for gain in _gains(one, effects.step_ns)]
    kept = [gain for gain in tried if gain.saved_share >= 1e-3]
    return sorted(kept, key=lambda gain: (-gain.saved_share, gain.parameter))


Factors = Callable[[Parameter], Iterable[float]]


def _around(parameter: Parameter) -> Iterator[float]:
    yield HALF
    if parameter.largest_factor > 1:
        yield min(TWICE, parameter.largest_factor)


def _improved(parameter: Parameter, more: float) -> Iterator[float]:
    for factor in (more, 1 / more):
        yield min(factor, parameter.largest_factor)


@dataclass(frozen=True)
class _Found:
    """The steps of one parameter by factor, ns; `used` where anything depends on it."""

    parameter: Parameter
    steps: dict[float, float]
    used: bool
    engine: str = EVENTS


def _sensitivity(found: _Found, now: float) -> Sensitivity:
    steps = found.steps
    twice = next((step for factor, step in steps.items() if factor > 1), None)
    one, halved = found.parameter, steps.get(HALF)
    return Sensitivity(
        one.path, one.text, _ms(halved), _ms(twice), _elasticity(steps, now), found.used, found.engine
    )


def _gains(found: _Found, now: float) -> Iterator[Gain]:
    for factor, step in found.steps.items():
        if now:
            one = found.parameter
            yield Gain(one.path, one.text, factor, step / 1e6, 1.0 - step / now, found.engine)


def _elasticity(steps: dict[float, float], now: float) -> float:
    """Return the slope of log(step) over log(parameter) across the range that was tried."""
    ends = sorted({1.0: now, **steps}.items())
    (low, at_low), (high, at_high) = ends[0], ends[-1]
    if low == high or at_low <= 0 or at_high <= 0 or at_low == at_high:
        return 0.0
    return log(at_high / at_low) / log(high / low)


class _Steps:
    """Finds the steps of many parameters: by runs, as far as those can be afforded.

    With `better`, only factors that make some stage faster, or change nothing but what is shared.
    """

    def __init__(self, effects: Effects, better: bool = False) -> None:
        self.effects = effects
        self._better = better
        self._cycles: dict[bytes, Fraction] = {}

    def of_all(self, wanted: Sequence[Parameter], factors: Factors) -> list[_Found]:
        """Return what the factors of each parameter do, in the order given."""
        affordable = min(MOST_PARAMETERS, MOST_INSTANCES // max(1, 2 * self.effects.size))
        if len(wanted) <= affordable:
            return [self._run(one, factors) for one in wanted]
        found = [self._estimated(one, factors) for one in wanted]
        order = sorted(range(len(found)), key=lambda place: -_weight(found[place], self.effects.step_ns))
        for place in order[: min(RUN_OF_MORE, affordable)]:
            found[place] = self._run(wanted[place], factors)
        return found

    def _run(self, parameter: Parameter, factors: Factors) -> _Found:
        cases = self._cases(parameter, factors)
        steps = {factor: self.effects.step_of(case) for factor, case in cases.items()}
        return _Found(parameter, steps, self._used(cases))

    def _estimated(self, parameter: Parameter, factors: Factors) -> _Found:
        cases = self._cases(parameter, factors)
        steps = {factor: self._estimate(case) for factor, case in cases.items()}
        used = not all(case.takes_as_long_as(self.effects.base) for case in cases.values())
        return _Found(parameter, steps, used, ESTIMATE)

    def _cases(self, parameter: Parameter, factors: Factors) -> dict[float, Case]:
        """Return the cases that are possible, by factor."""
        found: dict[float, Case] = {}
        for factor in factors(parameter):
            try:
                case = self.effects.case(parameter.scaled(factor))
            except (RecscaleError, ValueError):  # beyond what the part can be
                continue
            if not (self._better and case.is_slower_than(self.effects.base)):
                found[factor] = case
        return found

    def _used(self, cases: dict[float, Case]) -> bool:
        base = self.effects.base
        return any(not one.takes_as_long_as(base) or one.key != base.key for one in cases.values())

    @cached_property
    def _cycle_now(self) -> Bottleneck:
        return find_bottleneck(self.effects.scenario.graph, self.effects.base.nominal_ns)

    def _estimate(self, case: Case) -> float:
        """Return the step times what a case does to the critical cycle over nominal durations, ns."""
        graph, base, now = self.effects.scenario.graph, self.effects.base, self._cycle_now
        if case.takes_as_long_as(base) or self._only_off_the_cycle_and_faster(case.nominal_ns):
            return self.effects.step_ns
        kinds = np.unique(case.nominal_ns, axis=1)  # of alike groups of hosts, one slower is like another
        if kinds.tobytes() not in self._cycles:
            self._cycles[kinds.tobytes()] = find_bottleneck(graph, kinds).period_ns
        cycle = self._cycles[kinds.tobytes()]
        return self.effects.step_ns * float(cycle / now.period_ns) if now.period_ns else float(cycle)

    def _only_off_the_cycle_and_faster(self, changed: IntArray) -> bool:
        """The cycle stays critical when all that changed got faster beside it: no need to look for it."""
        before, on_it = self.effects.base.nominal_ns, set(self._cycle_now.stages)
        if changed.shape != before.shape or np.any(changed > before):
            return False
        critical = np.array([node.stage.name in on_it for node in self.effects.scenario.graph.nodes])
        return np.array_equal(changed[critical], before[critical])


def _weight(found: _Found, now: float) -> float:
    return max((abs(step - now) for step in found.steps.values()), default=0.0)


def _ms(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6
