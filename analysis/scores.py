"""Scores of predictions: by distinct configuration, ratios of hosts, coverage of bands."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from analysis.validated import Validated
from simulator.quantities.statistics import median_and_p90

NEAR = 0.25  # an error within which a prediction still helps to decide
Answer = Callable[[Validated], float | None]


def ours(case: Validated) -> float | None:
    """Return what is predicted here."""
    return case.predicted_ms


def plain(case: Validated) -> float | None:
    """Return the plain sum."""
    return case.plain_sum_ms


def peer(case: Validated) -> float | None:
    """Return the two-stream model with the same calibration row."""
    return case.peer_ms


@dataclass(frozen=True)
class Score:
    """Errors of `count` configurations: median, share within 25 %, 90th percentile, worst."""

    count: int
    median: float
    near: float
    p90: float
    worst: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> "Score | None":
        """Return the score of errors with sign; None when there is none."""
        if not errors:
            return None
        size = np.abs(np.asarray(errors, dtype=float))
        middle, p90, count = median_and_p90(size)
        return cls(count, middle, float(np.mean(size <= NEAR)), p90, worst=float(size.max()))


@dataclass(frozen=True)
class Configuration:
    """The repetitions of one experiment: the median measured time, and the median answer of a model."""

    name: str
    group: str
    cases: tuple[Validated, ...]

    @property
    def measured_ms(self) -> float:
        """The median of the measured times."""
        return median(case.measured_ms for case in self.cases)

    def error(self, answer: Answer = ours) -> float | None:
        """Return the error of the median answer; None where there is no answer."""
        said = [value for case in self.cases if (value := answer(case)) is not None]
        return median(said) / self.measured_ms - 1 if said else None


def configurations(cases: Iterable[Validated]) -> list[Configuration]:
    """Return the distinct configurations of role `predict` that are predicted, in order of appearance.

    A configuration that holds a row of role `fit` is left out as a whole: its twins would be no evidence.
    """
    together: dict[str, list[Validated]] = {}
    for case in cases:
        if case.role != "none":
            together.setdefault(case.configuration, []).append(case)
    return [
        Configuration(name, alike[0].group, tuple(alike))
        for name, alike in together.items()
        if all(case.role == "predict" and case.predicted_ms is not None for case in alike)
    ]


def score(found: Iterable[Configuration], answer: Answer = ours) -> Score | None:
    """Return the score of a model over configurations."""
    return Score.of([error for one in found if (error := one.error(answer)) is not None])


@dataclass(frozen=True)
class Ratio:
    """The step on several hosts over that on one host, same model, accelerator and software."""

    one: Configuration
    several: Configuration

    def error(self, answer: Answer = ours) -> float | None:
        """Return the error of the ratio."""
        errors = self.one.error(answer), self.several.error(answer)
        return None if None in errors else (1 + errors[1]) / (1 + errors[0]) - 1  # type: ignore[operator]


def ratios(cases: Iterable[Validated]) -> list[Ratio]:
    """Return each predicted configuration on several hosts with its partner of the same series on fewer.

    The partner has the fewest hosts, then the same batch if there is one. It may be one that a parameter was
    fitted on, as no ratio was fitted; the larger one may not.
    """
    listed = list(cases)
    larger = [one for one in configurations(listed) if one.cases[0].size[1] > 1 and one.cases[0].series]
    known = configurations(replace(case, role="predict") for case in listed)
    pairs = [(one, _partner(one, known)) for one in larger]
    return [Ratio(partner, one) for one, partner in pairs if partner is not None]


def _partner(one: Configuration, known: Sequence[Configuration]) -> Configuration | None:
    _, hosts, batch = one.cases[0].size
    found = [
        other
        for other in known
        if other.cases[0].series == one.cases[0].series
        and other.cases[0].size[1] < hosts
        and other.cases[0].size[0] > 1
    ]

    def order(other: Configuration) -> tuple[int, bool, int]:
        size = other.cases[0].size
        return size[1], size[2] != batch, -size[0]

    return min(found, key=order, default=None)


def coverage(cases: Iterable[Validated]) -> tuple[float, float, int]:
    """Return the share of cases in their band, the median half width of bands, and how many have one."""
    banded = [case for case in cases if case.covered is not None and case.predicted_ms]
    if not banded:
        return float("nan"), float("nan"), 0
    widths = [(case.high - case.low) / 2 / case.predicted_ms for case in banded]  # type: ignore[operator]
    return sum(bool(case.covered) for case in banded) / len(banded), median(widths), len(banded)
