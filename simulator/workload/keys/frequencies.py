"""The frequency table of observed keys, and the Zipf distribution that is nearest to it."""

import math
from dataclasses import dataclass

import numpy as np

from simulator.quantities import FloatArray, IntArray
from simulator.workload.keys.popularity import KeyClasses
from simulator.workload.keys.zipf import rank_buckets, zipf_weights

STEEPEST = 20.0  # an exponent beyond which one key takes everything


@dataclass(frozen=True)
class Frequencies:
    """`keys[j]` keys were seen `counts[j]` times each; counts fall. Exact, and small: a log of n
    lookups has at most about sqrt(2 n) different counts.
    """

    counts: tuple[int, ...]
    keys: tuple[int, ...]

    @classmethod
    def of(cls, counts: IntArray) -> "Frequencies":
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
    first, last = rank_buckets(rows)
    model = np.cumsum(zipf_weights(rows, exponent) * (last - first + 1))
    seen = np.interp(last, *observed.classes().cumulative)
    return ZipfFit(exponent, float(np.max(np.abs(model - seen))), rows)
