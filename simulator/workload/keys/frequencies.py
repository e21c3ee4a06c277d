"""The frequency table of observed keys, and the Zipf distribution that is nearest to it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.quantities import FloatArray
from simulator.workload.keys.popularity import KeyClasses
from simulator.workload.keys.reuse import ReuseHistogram, counted
from simulator.workload.keys.zipf import rank_buckets, zipf_weights

STEEPEST = 20.0  # an exponent beyond which one key takes everything
SHIFTS = (math.log(0.02), math.log(1e7))  # of 1 + shift


@dataclass(frozen=True)
class Frequencies:
    """`keys[j]` keys were seen `counts[j]` times each; counts fall. Exact, and small: a log of n
    lookups has at most about sqrt(2 n) different counts.
    """

    counts: tuple[int, ...]
    keys: tuple[int, ...]

    @classmethod
    def of(cls, counts: NDArray[np.integer[Any]]) -> "Frequencies":
        """Return the table of per-key lookup counts, shape (keys,); zeros are left out."""
        values, keys = np.unique(counts[counts > 0], return_counts=True)
        return cls(tuple(values[::-1].tolist()), tuple(keys[::-1].tolist()))

    @property
    def lookups(self) -> int:
        """Return the number of lookups observed."""
        return sum(count * keys for count, keys in zip(self.counts, self.keys, strict=True))

    @property
    def distinct(self) -> int:
        """Return the number of distinct keys observed."""
        return sum(self.keys)

    def classes(self) -> KeyClasses:
        """Return the multinomial popularity in which each key keeps its observed share."""
        counts = np.array(self.counts, dtype=np.float64)
        return KeyClasses(counts / self.lookups, np.array(self.keys, dtype=np.float64))

    def reuse(self) -> ReuseHistogram:
        """Return the shares of keys and lookups by how often a key was seen."""
        return counted(np.array(self.counts, dtype=np.float64), np.array(self.keys, dtype=np.float64))

    def mean_log_rank(self) -> float:
        """Return the mean of log(rank) over lookups, keys ranked by their counts from 1."""
        ends = np.cumsum(self.keys).tolist()
        terms = (
            count * (math.lgamma(end + 1) - math.lgamma(end - keys + 1))
            for count, keys, end in zip(self.counts, self.keys, ends, strict=True)
        )
        return math.fsum(terms) / self.lookups


@dataclass(frozen=True)
class ZipfFit:
    """The likeliest exponent over `rows` ranks, and the largest gap between the two cumulative shares.

    Ranks are those of the observed counts, so a log that is short for its table fits too steep an
    exponent: read it beside `ks_distance` and the lookups per distinct key.
    """

    exponent: float
    ks_distance: float
    rows: int


def _model_mean_log_rank(rows: int, exponent: float) -> float:
    first, last = rank_buckets(rows)
    weights: FloatArray = zipf_weights(rows, exponent) * (last - first + 1)
    return float(weights @ (np.log(first) + np.log(last)) / 2)


def _likeliest_exponent(observed: Frequencies) -> float:
    """Return where the likelihood is largest, between 0 and `STEEPEST`."""
    from scipy.optimize import brentq

    rows, target = observed.distinct, observed.mean_log_rank()
    if rows == 1 or target >= _model_mean_log_rank(rows, 0.0):
        return 0.0
    if target <= _model_mean_log_rank(rows, STEEPEST):
        return STEEPEST
    return float(brentq(lambda a: _model_mean_log_rank(rows, a) - target, 0.0, STEEPEST, xtol=1e-6))


def fit_zipf(observed: Frequencies) -> ZipfFit:
    """Return the maximum-likelihood bounded Zipf over the observed keys, with its KS distance.

    Our derivation: the log-likelihood -a sum(log rank) - n log H(a) of a power law with both ends
    known is stationary where its mean log rank equals the observed one.
    """
    rows, exponent = observed.distinct, _likeliest_exponent(observed)
    return ZipfFit(exponent, _ks_distance(observed, exponent, 0.0), rows)


def _ks_distance(observed: Frequencies, exponent: float, shift: float) -> float:
    """Return the largest gap between the cumulative shares of the model and the observation."""
    first, last = rank_buckets(observed.distinct)
    model = np.cumsum(zipf_weights(observed.distinct, exponent, shift) * (last - first + 1))
    return float(np.max(np.abs(model - np.interp(last, *observed.classes().cumulative))))


@dataclass(frozen=True)
class MandelbrotFit:
    """The likeliest (rank + shift)^-exponent over `rows` ranks; read it as a `ZipfFit`."""

    exponent: float
    shift: float
    ks_distance: float
    rows: int


def fit_mandelbrot(observed: Frequencies) -> MandelbrotFit:
    """Return the maximum-likelihood Zipf-Mandelbrot law over the observed keys.

    The likelihood is taken over the classes of `rank_buckets`, so its cost does not grow with the
    keys. The search runs in the exponent and log(1 + shift), from the likeliest Zipf law.
    """
    from scipy.optimize import minimize

    rows, zipf = observed.distinct, fit_zipf(observed)
    if rows <= 2:  # one key, or one ratio: a shift has nothing to say
        return MandelbrotFit(zipf.exponent, 0.0, zipf.ks_distance, rows)
    _, last = rank_buckets(rows)
    seen = np.diff(np.interp(last, *observed.classes().cumulative), prepend=0.0)

    def surprise(point: FloatArray) -> float:
        weights = zipf_weights(rows, float(point[0]), math.expm1(float(point[1])))
        return -float(seen @ np.log(np.maximum(weights, 1e-300)))

    bounds = [(0.0, STEEPEST), SHIFTS]
    found = minimize(surprise, [zipf.exponent, 0.1], method="Nelder-Mead", bounds=bounds)
    exponent, shift = float(found.x[0]), math.expm1(float(found.x[1]))
    return MandelbrotFit(exponent, shift, _ks_distance(observed, exponent, shift), rows)
