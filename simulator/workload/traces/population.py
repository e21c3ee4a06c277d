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
START: Point = (10.8, 0.5, 0.9, 0.3)  # log rows per key of a sample, log spread, exponent, coupling
BOUNDS: tuple[Point, Point] = ((4.0, -4.0, 0.0, -1.0), (22.0, 1.6, 2.5, 2.0))
MOST_ROWS = 10**12
FINE, COARSE = 128, 8  # classes kept one by one, and how many of those behind them are joined


@dataclass(frozen=True)
class BatchSize:
    """A batch of `samples` samples that make `lookups` lookups in `tables` tables."""

    tables: int
    samples: float
    lookups: float

    @property
    def pooling(self) -> float:
        """Keys per sample and table, on average."""
        return self.lookups / (self.tables * self.samples)


@dataclass(frozen=True)
class TablePopulation:
    """Tables whose lookups per batch differ, all with one Zipf exponent.

    Logarithms of a table's lookups are spread logistically with scale `spread`, cut at 4 scales: the
    busiest tables are e^(4 spread) times as busy as the median one. With n keys per sample and table on
    average, a table of mean lookups has n x `rows_per_key` rows, one of f times as many lookups
    f^`coupling` times as many. That rows grow with the length of the lists is an assumption of ours: of
    features with lists twice as long, the same number of samples asks for about twice as many rows.
    """

    rows_per_key: float
    spread: float
    exponent: float
    coupling: float

    def tables(self, size: BatchSize) -> list[tuple[BoundedZipf, float]]:
        """Return the tables with their lookups, which sum to those of the batch: the even quantiles."""
        quantile = (np.arange(size.tables) + 0.5) / size.tables
        busy = np.exp(self.spread * np.clip(np.log(quantile / (1.0 - quantile)), -CUT, CUT))
        busy /= busy.mean()
        rows = np.clip(np.rint(self.rows_per_key * size.pooling * busy**self.coupling), 1, MOST_ROWS)
        each = size.lookups / size.tables
        return [
            (BoundedZipf(int(n), self.exponent), float(b) * each) for n, b in zip(rows, busy, strict=True)
        ]

    def reuse(self, size: BatchSize) -> ReuseHistogram:
        """Return the expected reuse in one batch. The tables are represented by 64 quantiles."""
        few = BatchSize(QUANTILES, size.samples, size.lookups * QUANTILES / size.tables)
        parts = [_rates(law, m) for law, m in self.tables(few)]
        rates, keys = (np.concatenate(column) for column in zip(*parts, strict=True))
        return expected(rates, keys * (size.tables / QUANTILES))


def _rates(law: BoundedZipf, lookups: float) -> tuple[FloatArray, FloatArray]:
    """Return mean lookups and numbers of keys by class; cold classes are joined, as a fit asks often."""
    first, last = rank_buckets(int(law.rows))
    keys = last - first + 1
    rates = zipf_weights(int(law.rows), law.exponent) * lookups
    starts = np.append(np.arange(min(FINE, len(keys))), np.arange(FINE, len(keys), COARSE))
    joined = np.add.reduceat(keys, starts)
    return np.add.reduceat(rates * keys, starts) / joined, joined


def fit_population(observed: ReuseHistogram, tables: int, samples: float) -> TablePopulation:
    """Return the population whose cumulative shares by reuse are nearest to `observed`.

    That was a batch of `samples` samples. Least squares; the shares of lookups, which hang on a few very
    hot keys, count a twentieth. The number of distinct keys is left as a test of the fit. Raises
    InputError when `tables` or `samples` is below 1.
    """
    from scipy.optimize import least_squares

    if tables < 1 or samples < 1:
        raise InputError(f"a population needs at least one table and sample, not {tables} and {samples}")
    target, size = _weighted(observed), BatchSize(tables, samples, observed.lookups)

    def gaps(point: FloatArray) -> FloatArray:
        return _weighted(_population(point).reuse(size)) - target

    found = least_squares(gaps, START, bounds=BOUNDS, diff_step=1e-3, max_nfev=80)
    return _population(found.x)


def _weighted(histogram: ReuseHistogram) -> FloatArray:
    return np.append(histogram.key_shares, LOOKUP_WEIGHT * np.array(histogram.lookup_shares))


def _population(point: FloatArray) -> TablePopulation:
    log_rows, log_spread, exponent, coupling = map(float, point)
    return TablePopulation(math.exp(log_rows), math.exp(log_spread), exponent, coupling)
