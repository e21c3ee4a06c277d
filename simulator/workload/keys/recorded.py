"""Keys as a log recorded them: measured statistics stand in for a distribution."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from simulator.quantities import FloatArray, IntArray
from simulator.workload.keys.key_log import LogOptions, read_key_log
from simulator.workload.keys.popularity import Independent, KeyClasses, OwnerLoad, checked_lookups
from simulator.workload.keys.statistics import TableStatistics, WindowStatistics

MOST_LOOKUPS = 1 << 22  # that are read again from a log
ENOUGH_WINDOWS = 8  # below this a measured spread is noisier than the formula


@dataclass(frozen=True)
class Correction:
    """Measured over independent, as a factor known at some numbers of lookups.

    Between them it is interpolated in log(m), outside it keeps the nearest value.
    """

    lookups: tuple[float, ...] = (1.0,)
    factors: tuple[float, ...] = (1.0,)

    def at(self, m: float) -> float:
        """Return the factor at `m` lookups."""
        points: FloatArray = np.log(self.lookups)
        return float(np.interp(math.log(max(m, 1.0)), points, self.factors))


def _correction(points: list[tuple[float, float, float]]) -> Correction:
    """Return the correction through (lookups, measured, independent), sorted by lookups."""
    known = sorted((m, measured / expected) for m, measured, expected in points if expected > 0)
    return Correction(*zip(*known, strict=True)) if known else Correction()


@dataclass(frozen=True)
class LogColumn:
    """The column of a log that a table's keys were recorded in."""

    path: Path
    name: str
    separator: str | None = None

    @property
    def options(self) -> LogOptions:
        """How to read the column."""
        return LogOptions(columns=(self.name,), separator=self.separator)

    def lookups(self, most: int = MOST_LOOKUPS) -> IntArray:
        """Return the first `most` lookups in time order, keys numbered from 0. Raises InputError."""
        parts: list[IntArray] = []
        for chunk in read_key_log(self.path, self.options).chunks():
            parts.append(chunk.tables[self.name].codes)
            if sum(map(len, parts)) >= most:
                break
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])[:most]


@dataclass(frozen=True, eq=False)
class Recorded(Independent):
    """A table's keys, answered from the statistics of a log.

    The base is the multinomial over the observed key counts. Real lookups are not independent
    (sessions, drift), so each answer is that base times a correction: measured over multinomial
    at windows of the log from a sixteenth of its batch upwards in factors of two. At a measured
    window (the log's batch above all) the answer is therefore the measurement itself; between
    windows the correction is interpolated in log(m); at one lookup it is exactly 1; at the whole
    log the distinct keys are those of the log. `distinct` never grows past those: keys that the
    log never saw cannot be answered for, and `extrapolates` says so. A batch of `ranks` ranks is
    taken as that many consecutive batches of the log. `log` is where the statistics were taken, for
    what they do not say: the order of lookups.
    """

    statistics: TableStatistics
    log: LogColumn | None = None

    @cached_property
    def classes(self) -> KeyClasses:
        """Return the multinomial over the observed counts."""
        return self.statistics.frequencies.classes()

    def _points(
        self, measured: Callable[[WindowStatistics], float | None], base: Callable[[float], float]
    ) -> list[tuple[float, float, float]]:
        seen = ((window.lookups, measured(window)) for window in self.statistics.windows)
        return [(m, value, base(m)) for m, value in seen if value is not None and m > 1]

    @cached_property
    def _distinct_correction(self) -> Correction:
        points = self._points(lambda window: window.distinct, super().distinct)
        observed = self.statistics.frequencies
        whole = (float(observed.lookups), float(observed.distinct), super().distinct(observed.lookups))
        return _correction([(1.0, 1.0, 1.0), *(p for p in points if p[0] < whole[0]), whole])

    @cached_property
    def _sd_correction(self) -> Correction:
        def measured(window: WindowStatistics) -> float | None:
            return window.distinct_sd if window.windows >= ENOUGH_WINDOWS else None

        return _correction(self._points(measured, super().distinct_sd))

    @cached_property
    def _overlap_correction(self) -> Correction:
        return _correction(self._points(lambda window: window.overlap, super().overlap))

    def distinct(self, m: float) -> float:
        """Return the expected distinct keys: measured at the log's windows, corrected between."""
        corrected = super().distinct(m) * self._distinct_correction.at(m)
        return min(corrected, m, float(self.statistics.frequencies.distinct))

    def distinct_sd(self, m: float) -> float:
        """Return the spread of the distinct keys, measured where the log has 8 windows or more."""
        return super().distinct_sd(m) * self._sd_correction.at(m)

    def overlap(self, m: float, lag: int = 1) -> float:
        """Return the common keys of two batches `lag` apart, as far as the log's own lags reach.

        The decay with the lag is the one measured at the log's batch; longer lags keep the last.
        """
        neighbours = super().overlap(m) * self._overlap_correction.at(m)
        return min(neighbours * self._decay(lag), self.distinct(m))

    def _decay(self, lag: int) -> float:
        lags = self.statistics.lag_overlaps
        if not lags or lags[0] == 0:
            return 1.0
        return lags[min(max(lag, 1), len(lags)) - 1] / lags[0]

    def owner_load(self, m: float, ranks: int) -> OwnerLoad:
        """Return the load with the measured mean and the relative spread of the multinomial."""
        independent = super().owner_load(m, ranks)
        factor = self.distinct(m) / independent.mean if independent.mean else 1.0
        return OwnerLoad(independent.mean * factor, independent.sd * factor)

    def extrapolates(self, m: float) -> bool:
        """Return whether `m` lookups are more than the log has."""
        return checked_lookups(m) > self.statistics.frequencies.lookups
