"""Forms that measured times may have: a start-up and a rate for each amount, segments, or the points.

A form is a law with positive parameters, so that their logarithms can be searched without limits but
the stated bounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from simulator.calibration.fit_table import Series
from simulator.quantities import FloatArray

SEGMENTS = 3
SHORTEST, LONGEST = 1e-12, 1e6  # seconds that a parameter may mean
FREE = 1e3  # a part that is so many times less than the least time is none


@dataclass(frozen=True)
class FormParameter:
    """A positive parameter: what it is, in which base unit, and between which bounds it is searched."""

    name: str
    unit: str
    low: float
    high: float


class Form(Protocol):
    """A law with parameters."""

    @property
    def name(self) -> str:
        """The name of the form in a catalog."""

    def parameters(self, series: Series) -> tuple[FormParameter, ...]:
        """Return the parameters for amounts like those of `series`."""

    def start(self, series: Series) -> FloatArray:
        """Return values to begin with, shape (parameters,), within the bounds."""

    def seconds(self, values: FloatArray, series: Series) -> FloatArray:
        """Return the times that the law gives for the amounts of `series`, shape (rows,)."""


@dataclass(frozen=True)
class Affine:
    """seconds = start_up + amount / rate, for every amount; rates are amounts per second."""

    name: str = "affine"

    def parameters(self, series: Series) -> tuple[FormParameter, ...]:
        """Return the start-up and one rate for each amount; each may be as good as free."""
        least = float(series.seconds.min())
        start_up = FormParameter("start_up", "s", max(least / FREE, SHORTEST), LONGEST)
        return (start_up, *(_rate(name, values, series) for name, values in series.amounts.items()))

    def start(self, series: Series) -> FloatArray:
        """Share the time evenly between the parts."""
        parts = 1 + len(series.amounts)
        rates = [parts * float(np.median(values / series.seconds)) for values in series.amounts.values()]
        return np.array([float(series.seconds.min()) / parts, *rates])

    def seconds(self, values: FloatArray, series: Series) -> FloatArray:
        """Return the sum."""
        total = np.full(len(series.seconds), values[0])
        for rate, amount in zip(values[1:], series.amounts.values(), strict=True):
            total = total + amount / rate
        return total


def _rate(name: str, values: FloatArray, series: Series) -> FormParameter:
    usual = values / series.seconds
    return FormParameter(name, f"{name}/s", float(usual.min()) / FREE, float(usual.max()) * FREE)


@dataclass(frozen=True)
class Segmented:
    """Straight segments in log-log axes between `segments + 1` knots, evenly spread over the sizes.

    The parameters are the times at the knots; beyond the ends, the outer segments go on. One amount only.
    """

    segments: int = SEGMENTS
    name: str = "segments"

    def knots(self, series: Series) -> FloatArray:
        """Return the sizes at the knots, shape (segments + 1,)."""
        sizes = np.log(np.unique(_only(series)))  # repeats of one size would make knots coincide
        return np.asarray(np.exp(np.quantile(sizes, np.linspace(0, 1, self.segments + 1))))

    def parameters(self, series: Series) -> tuple[FormParameter, ...]:
        """Return one time for each knot."""
        low, high = float(series.seconds.min()) / FREE, float(series.seconds.max()) * FREE
        return tuple(FormParameter(f"at_{knot:.6g}", "s", low, high) for knot in self.knots(series))

    def start(self, series: Series) -> FloatArray:
        """Begin with the measured times at the knots."""
        points = Interpolated()
        sizes, times = points.knots(series), points.start(series)
        return np.exp(np.interp(np.log(self.knots(series)), np.log(sizes), np.log(times)))

    def seconds(self, values: FloatArray, series: Series) -> FloatArray:
        """Return the times on the segments."""
        return self.at(self.knots(series), values, _only(series))

    @staticmethod
    def at(knots: FloatArray, times: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return times at `sizes` on straight lines through (knots, times) in log-log axes."""
        x, y, wanted = np.log(knots), np.log(times), np.log(sizes)
        place = np.clip(np.searchsorted(x, wanted) - 1, 0, len(x) - 2)
        slope = (y[place + 1] - y[place]) / (x[place + 1] - x[place])
        return np.asarray(np.exp(y[place] + slope * (wanted - x[place])))


def _only(series: Series) -> FloatArray:
    (sizes,) = series.amounts.values()
    return sizes


def forms_for(series: Series) -> Sequence[Form]:
    """Return the forms that a series can be held against: segments need one amount and enough sizes."""
    found: list[Form] = [Affine()]
    if len(series.amounts) == 1:
        sizes = len(np.unique(_only(series)))
        if sizes >= 2 * (SEGMENTS + 1):
            found.append(Segmented())
        if sizes >= 4:
            found.append(Interpolated())
    return found


@dataclass(frozen=True)
class Interpolated:
    """Straight lines in log-log axes through the points themselves: their times are the parameters."""

    name: str = "interpolated"

    def knots(self, series: Series) -> FloatArray:
        """Return the measured sizes."""
        return np.unique(_only(series))

    def parameters(self, series: Series) -> tuple[FormParameter, ...]:
        """Return one time for each measured size."""
        low, high = float(series.seconds.min()) / FREE, float(series.seconds.max()) * FREE
        return tuple(FormParameter(f"at_{size:.6g}", "s", low, high) for size in self.knots(series))

    def start(self, series: Series) -> FloatArray:
        """Return the log mean of the times at each size, which is the fit as well."""
        sizes = _only(series)
        return np.array([np.exp(np.log(series.seconds[sizes == one]).mean()) for one in np.unique(sizes)])

    def seconds(self, values: FloatArray, series: Series) -> FloatArray:
        """Return the times on the lines."""
        return Segmented.at(self.knots(series), values, _only(series))
