"""Fitted primitives as a catalog file: each number with its interval, source, date and range; read back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from simulator.calibration.fit_forms import Segmented
from simulator.calibration.fit_series import RESAMPLES, FittedSeries, fit_all
from simulator.calibration.fit_table import Series
from simulator.errors import InputError, Where
from simulator.quantities import FloatArray
from simulator.quantities.statistics import COVERAGE

HEADER = f"""\
# Measured primitives, fitted by `recscale calibrate fit --measured FILE`; not edited by hand.
#
# `affine`: seconds = start_up + amount / rate for each amount (rates are amounts per second).
# `segments`, `interpolated`: straight lines in log-log axes through the times `at` the sizes.
# `interval` is the middle {COVERAGE:.0%} of bootstrap fits, `range` what was measured, `held_out` the error
# on measurements kept from the fit and from the choice of its form (median and 90th percentile of
# |predicted/measured - 1|).
# A value `at_bound` says only that its part is too small to be seen.
"""


@dataclass(frozen=True)
class FitsOf:
    """One primitive and all forms fitted to it, the best first."""

    series: Series
    fits: tuple[FittedSeries, ...]

    @property
    def best(self) -> FittedSeries:
        """The form that missed the measurements kept from it by least."""
        return self.fits[0]

    def row(self) -> dict[str, Any]:
        """Return the fit in one flat record; errors are shares, None where nothing could be held out."""
        best = self.best
        return {
            "primitive": self.series.name,
            "form": best.form.name,
            "rows": len(self.series.seconds),
            "held_out_median": _known(best.held_out.median),
            "held_out_p90": _known(best.held_out.p90),
            "residual_median": best.residual,
            "forms": {one.form.name: _known(one.held_out.median) for one in self.fits},
            "parameters": {
                name: {"value": value, "low": best.intervals[name][0], "high": best.intervals[name][1]}
                for name, value in best.values.items()
            },
            "at_bound": list(best.at_bound),
        }


def fit_table(series: Iterable[Series], resamples: int = RESAMPLES) -> tuple[FitsOf, ...]:
    """Return the fits of all primitives of a table."""
    return tuple(FitsOf(one, fit_all(one, resamples)) for one in series)


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def document(fits: Sequence[FitsOf]) -> str:
    """Return the text of a catalog file."""
    import yaml

    entries = {one.series.name: _entry(one.best) for one in fits}
    body = yaml.safe_dump({"entries": entries}, sort_keys=False, width=10_000, default_flow_style=None)
    return f"{HEADER}\n{body}"


def _entry(fitted: FittedSeries) -> dict[str, Any]:
    series, errors = fitted.series, fitted.held_out
    found: dict[str, Any] = {
        "form": fitted.form.name,
        "amounts": list(series.amounts),
        "range": {name: list(ends) for name, ends in series.range.items()},
        "date": series.date,
        "held_out": {"median": _known(errors.median), "p90": _known(errors.p90), "rows": errors.rows},
        "parameters": {one.name: _number(fitted, one.name, one.unit) for one in fitted.parameters()},
    }
    if hasattr(fitted.form, "knots"):
        found["knots"] = fitted.form.knots(series).tolist()
    if series.fixed:
        found["fixed"] = dict(series.fixed)
    return found


def _number(fitted: FittedSeries, name: str, unit: str) -> dict[str, Any]:
    written: dict[str, Any] = {
        "value": _rounded(fitted.values[name]),
        "unit": unit,
        "interval": [_rounded(end) for end in fitted.intervals[name]],
        "source": fitted.series.source,
        "confidence": "inferred",
    }
    return written | ({"at_bound": True} if name in fitted.at_bound else {})


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


@dataclass(frozen=True)
class CatalogFit:
    """A fitted primitive read back: its times by amounts, and the range in which they were measured."""

    name: str
    form: str
    amounts: tuple[str, ...]
    values: tuple[float, ...]
    knots: tuple[float, ...]
    range: Mapping[str, tuple[float, float]]

    def seconds(self, **amounts: float) -> float:
        """Return the time for `amounts`. Raises InputError for amounts of other names."""
        if set(amounts) != set(self.amounts):
            raise InputError(f"{self.name} is fitted by {', '.join(self.amounts)}")
        given = np.array([amounts[name] for name in self.amounts])
        if self.form == "affine":
            return float(self.values[0] + (given / np.array(self.values[1:])).sum())
        return float(Segmented.at(np.array(self.knots), np.array(self.values), given)[0])

    def outside(self, **amounts: float) -> list[str]:
        """Return the amounts that lie outside of what was measured."""
        return [name for name, (low, high) in self.range.items() if not low <= amounts[name] <= high]


def read_fits(text: str, file: str | None = None) -> dict[str, CatalogFit]:
    """Return the primitives of a catalog text by name. Raises InputError for text in another form."""
    import yaml

    try:
        entries = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["entries"]
        return {str(name): _read(str(name), fields) for name, fields in entries.items()}
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError):
        raise InputError("is not a catalog of measured primitives", Where(file)) from None


def _read(name: str, fields: Mapping[str, Any]) -> CatalogFit:
    values: FloatArray = np.array([float(one["value"]) for one in fields["parameters"].values()])
    knots = tuple(float(knot) for knot in fields.get("knots", ()))
    ends = {amount: (float(low), float(high)) for amount, (low, high) in fields["range"].items()}
    return CatalogFit(name, fields["form"], tuple(fields["amounts"]), tuple(values.tolist()), knots, ends)
