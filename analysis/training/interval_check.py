"""How often `interval_ms` holds what was measured: cases that nothing was fitted on.

The spread of a profile is learned from such cases, so each is checked with the spread that all others give.
`python -m analysis.training.interval_check FOLDER` prints the shares.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median

from analysis.scores import Configuration, configurations
from analysis.training.cases import Case
from analysis.training.predictions import predict
from analysis.training.rows import Measured
from analysis.training.spread import Errors, half_width, kind_of
from analysis.training.tables import read_training
from simulator.scenario import run_scenario
from simulator.scenario.software_catalog import profile_data

SAMPLES = 40


@dataclass(frozen=True)
class Checked:
    """A configuration on a machine of a `kind`, ms; `low` and `high` are those of its `interval_ms`."""

    name: str
    group: str
    kind: str
    measured_ms: float
    predicted_ms: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the measured step lies in the interval."""
        return self.low <= self.measured_ms <= self.high

    @property
    def half_width(self) -> float:
        """Half of the interval over the prediction."""
        return (self.high - self.low) / 2 / self.predicted_ms


@dataclass(frozen=True)
class _Known:
    """A configuration that was not fitted, and the log of predicted over measured."""

    found: Configuration
    case: Case
    error: float

    @property
    def key(self) -> tuple[str, str]:
        return self.case.framework.family, kind_of(self.case)


def check_intervals(measured: Measured, samples: int = SAMPLES, spread: bool = True) -> list[Checked]:
    """Return one check for each configuration that was not fitted; without `spread`, of parameters only."""
    known = list(_known(measured))
    return [
        _checked(one, _width(known, place) if spread else None, samples) for place, one in enumerate(known)
    ]


def coverage(checked: Sequence[Checked]) -> tuple[float, float]:
    """Return the share inside and the median half width. Raises ValueError where there are none."""
    share = sum(one.inside for one in checked) / max(1, len(checked))
    return share, median(one.half_width for one in checked)


def _known(measured: Measured) -> Iterator[_Known]:
    rows = {row.case_id: row for row in measured.rows}
    for one in configurations(predict(measured)):
        error = one.error()
        assert error is not None  # such configurations are predicted
        yield _Known(one, Case(rows[one.cases[0].case_id], measured), log(1 + error))


def _width(known: Sequence[_Known], place: int) -> float:
    """Return the half width that all but one give for that one."""
    errors: dict[tuple[str, str], list[float]] = {}
    for other, one in enumerate(known):
        if other != place:
            errors.setdefault(one.key, []).append(one.error)
    listed: Errors = errors
    return half_width(listed, *known[place].key)


def _checked(one: _Known, width: float | None, samples: int) -> Checked:
    family, kind = one.key
    spread = {**profile_data(family)["spread"], kind: width} if width is not None else None
    case = one.case.with_software(spread=spread)
    asked = case.scenario.with_overrides([f"run.interval={{samples: {samples}}}"])
    report = run_scenario(asked, "vector").report
    ends = report.interval_ms
    assert ends is not None  # it was asked for
    step, found = report.step_ms["mean"], one.found
    return Checked(found.name, found.group, kind, found.measured_ms, step, ends["low"], ends["high"])


def _print(folder: Path) -> None:
    measured = read_training(folder)
    for title, spread in (("parameters and spread", True), ("parameters only", False)):
        found = check_intervals(measured, spread=spread)
        groups = [("all", found)]
        groups += [
            (name, [one for one in found if name in (one.group, one.kind)])
            for name in sorted({name for one in found for name in (one.group, one.kind)})
        ]
        for name, some in groups:
            share, width = coverage(some)
            print(f"{title}, {name}: {share:.0%} of {len(some)} inside, half width {width:.0%}")


if __name__ == "__main__":
    _print(Path(sys.argv[1]))
