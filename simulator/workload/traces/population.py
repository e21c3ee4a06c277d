"""A population of tables in four numbers, and fitting it to a histogram of reuse."""

import math
from dataclasses import dataclass

import numpy as np

from simulator.errors import InputError
from simulator.quantities import FloatArray
from simulator.workload.keys.reuse import ReuseHistogram, expected
from simulator.workload.keys.zipf import BoundedZipf, rank_buckets, zipf_weights

QUANTILES = 64
CUT = 4.0
LOOKUP_WEIGHT = 0.05
Point = tuple[float, float, float, float]
START: Point = (13.0, 0.5, 0.9, 0.3)  # log rows, log spread, exponent, coupling
BOUNDS: tuple[Point, Point] = ((7.0, -4.0, 0.0, -1.0), (22.0, 1.6, 2.5, 2.0))
MOST_ROWS = 10**12
FINE, COARSE = 128, 8  # classes kept one by one, and how many of those behind them are joined


@dataclass(frozen=True)
class TablePopulation:
    """Tables whose lookups per batch differ, all with one Zipf exponent.

    Logarithms of a table's lookups are spread logistically with scale `spread`, cut at 4 scales: the
    busiest tables are e^(4 spread) times as busy as the median one. A table of mean lookups has
    `rows` rows, one of f times as many lookups rows x f^`coupling`.
    """

    rows: float
    spread: float
    exponent: float
    coupling: float

    def tables(self, count: int, lookups: float) -> list[tuple[BoundedZipf, float]]:
        """Return `count` tables with their lookups, which sum to `lookups`: the even quantiles."""
        quantile = (np.arange(count) + 0.5) / count
        busy = np.exp(self.spread * np.clip(np.log(quantile / (1.0 - quantile)), -CUT, CUT))
        busy /= busy.mean()
        rows = np.clip(np.rint(self.rows * busy**self.coupling), 1, MOST_ROWS)
        each = lookups / count
        return [
            (BoundedZipf(int(n), self.exponent), float(b) * each) for n, b in zip(rows, busy, strict=True)
        ]

    def reuse(self, tables: int, lookups: float) -> ReuseHistogram:
        """Return the expected reuse in one batch of `lookups` lookups over `tables` tables.

        The tables are represented by 64 quantiles.
        """
        parts = [_rates(law, m) for law, m in self.tables(QUANTILES, lookups * QUANTILES / tables)]
        rates, keys = (np.concatenate(column) for column in zip(*parts, strict=True))
        return expected(rates, keys * (tables / QUANTILES))


def _rates(law: BoundedZipf, lookups: float) -> tuple[FloatArray, FloatArray]:
    """Return mean lookups and numbers of keys by class; cold classes are joined, as a fit asks often."""
    first, last = rank_buckets(int(law.rows))
    keys = last - first + 1
    rates = zipf_weights(int(law.rows), law.exponent) * lookups
    starts = np.append(np.arange(min(FINE, len(keys))), np.arange(FINE, len(keys), COARSE))
    joined = np.add.reduceat(keys, starts)
    return np.add.reduceat(rates * keys, starts) / joined, joined


def fit_population(observed: ReuseHistogram, tables: int) -> TablePopulation:
    """Return the population whose cumulative shares by reuse are nearest to `observed`.

    Least squares; the shares of lookups, which hang on a few very hot keys, count a twentieth. The
    number of distinct keys is left as a test of the fit. Raises InputError when `tables` is below 1.
    """
    from scipy.optimize import least_squares

    if tables < 1:
        raise InputError(f"a population needs at least one table, not {tables}")
    target = _weighted(observed)

    def gaps(point: FloatArray) -> FloatArray:
        return _weighted(_population(point).reuse(tables, observed.lookups)) - target

    found = least_squares(gaps, START, bounds=BOUNDS, diff_step=1e-3, max_nfev=80)
    return _population(found.x)


def _weighted(histogram: ReuseHistogram) -> FloatArray:
    return np.append(histogram.key_shares, LOOKUP_WEIGHT * np.array(histogram.lookup_shares))


def _population(point: FloatArray) -> TablePopulation:
    log_rows, log_spread, exponent, coupling = map(float, point)
    return TablePopulation(math.exp(log_rows), math.exp(log_spread), exponent, coupling)
