"""How often each key is asked for, and what follows from it for whole batches.

Everything here is an expectation over lookups that are drawn independently from one table, so a
query costs microseconds where sampling a large job's keys would cost minutes per step.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from simulator.errors import InputError
from simulator.quantities import FloatArray


@dataclass(frozen=True)
class OwnerLoad:
    """Keys that one hash-sharded owner receives per batch: mean and spread (sd) across owners.

    The spread comes from which keys the hash gives to which owner. It is therefore the same
    owners, batch after batch, that carry the hot keys.
    """

    mean: float
    sd: float


class Popularity(Protocol):
    """The keys of one table; `m` counts the lookups of one rank's batch or micro-batch.

    All answers are numbers of keys. `m` may be fractional; below 1 it is the chance of a lookup.
    Every method raises InputError when `m` is negative or not finite, or `ranks` is below 1.
    """

    def distinct(self, m: float) -> float:
        """Return the expected number of distinct keys among `m` lookups."""

    def distinct_sd(self, m: float) -> float:
        """Return the standard deviation, from batch to batch, of the number of distinct keys."""

    def overlap(self, m: float, lag: int = 1) -> float:
        """Return the expected number of keys common to two batches `lag` batches apart."""

    def union(self, m: float, ranks: int) -> float:
        """Return the expected number of distinct keys in the batches of `ranks` ranks together."""

    def owner_load(self, m: float, ranks: int) -> OwnerLoad:
        """Return what one of `ranks` owners receives when each source sends each key once."""

    def raw_owner_load(self, m: float, ranks: int) -> OwnerLoad:
        """Return what one of `ranks` owners receives when sources send duplicates too."""

    def gap_share(self, m: float, gap: int) -> float:
        """Return the share of a batch's keys that were last used `gap` batches ago."""

    def use_chances(self, m: float) -> tuple[FloatArray, FloatArray]:
        """Return the chances of keys to be in a batch, and how many keys of a batch have each of them."""

    def top_share(self, fraction: float) -> float:
        """Return the share of lookups on the hottest `fraction` of rows (rounded up to whole rows)."""

    def extrapolates(self, m: float) -> bool:
        """Return whether an answer for `m` lookups goes beyond what was observed."""


def checked_lookups(m: float, ranks: int = 1) -> float:
    """Return `m` unchanged; raise InputError unless it is finite, not negative, and `ranks` >= 1."""
    if not (math.isfinite(m) and m >= 0):
        raise InputError(f"a number of lookups must be finite and not negative, not {m}")
    if ranks < 1:
        raise InputError(f"the number of ranks must be at least 1, not {ranks}")
    return m


@dataclass(frozen=True, eq=False)
class KeyClasses:
    """A popularity in which `keys[j]` keys are each looked up with `probability[j]`.

    Both arrays have shape (classes,); probabilities fall and sum, weighted by `keys`, to 1.
    """

    probability: FloatArray
    keys: FloatArray

    @cached_property
    def _log_miss(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log1p(-np.minimum(self.probability, 1.0)))

    def present(self, m: float) -> FloatArray:
        """Return each key's chance to occur among `m` lookups: 1 - (1 - p)^m, or m p below one."""
        if m < 1:
            return m * self.probability
        return np.asarray(-np.expm1(m * self._log_miss))

    def absent(self, m: float) -> FloatArray:
        """Return each key's chance not to occur among `m` lookups, (1 - p)^m."""
        return np.exp(m * self._log_miss) if m > 0 else np.ones_like(self.keys)

    def total(self, values: FloatArray) -> float:
        """Return the sum of `values`, shape (classes,), over all keys."""
        return float(self.keys @ values)

    @cached_property
    def cumulative(self) -> tuple[FloatArray, FloatArray]:
        """Return (rows, share of lookups) up to the end of each class, from the hottest down."""
        keys, shares = np.cumsum(self.keys), np.cumsum(self.keys * self.probability)
        return np.append(0.0, keys), np.append(0.0, shares / shares[-1])

    def top_share(self, fraction: float) -> float:
        """Return the share of lookups on the hottest `fraction` of keys, rounded up to whole keys."""
        if not 0.0 <= fraction <= 1.0:
            raise InputError(f"a fraction of rows must lie between 0 and 1, not {fraction}")
        rows, shares = self.cumulative
        return float(np.interp(math.ceil(round(fraction * float(rows[-1]), 9)), rows, shares))


class Independent(ABC):
    """The closed forms for lookups drawn independently of each other from fixed key classes."""

    @property
    @abstractmethod
    def classes(self) -> KeyClasses:
        """Return the popularity as classes of equally likely keys."""

    def distinct(self, m: float) -> float:
        """Return sum of 1 - (1 - p)^m over the keys."""
        return self.classes.total(self.classes.present(checked_lookups(m)))

    def distinct_sd(self, m: float) -> float:
        """Return the standard deviation of the distinct keys.

        Our derivation: the multinomial covariance of two keys' absences is, to first order in the
        product of their probabilities, -m p_i p_j ((1 - p_i)(1 - p_j))^(m-1); exact for m <= 1.
        """
        classes, m = self.classes, checked_lookups(m)
        hit = classes.present(m)
        weight = classes.probability * classes.absent(max(m - 1.0, 0.0))
        pairs = classes.total(weight) ** 2 - classes.total(weight**2)
        return math.sqrt(max(classes.total(hit * (1.0 - hit)) - m * min(m, 1.0) * pairs, 0.0))

    def overlap(self, m: float, lag: int = 1) -> float:
        """Return the expected common keys of two batches; independent lookups forget the lag."""
        return self.classes.total(self.classes.present(checked_lookups(m)) ** 2)

    def union(self, m: float, ranks: int) -> float:
        """Return the distinct keys of `ranks` batches, which are one batch of `ranks` times m."""
        return self.distinct(checked_lookups(m, ranks) * ranks)

    def owner_load(self, m: float, ranks: int) -> OwnerLoad:
        """Return the load of an owner when every source removes duplicates before it sends.

        Our derivation: a key that a batch holds with chance s is sent by Binomial(ranks, s)
        sources, and the hash puts it on one owner in `ranks`.
        """
        hit = self.classes.present(checked_lookups(m, ranks))
        squares = self.classes.total(hit * (1.0 - hit) + ranks * hit**2)
        return OwnerLoad(self.classes.total(hit), math.sqrt((1.0 - 1.0 / ranks) * squares))

    def raw_owner_load(self, m: float, ranks: int) -> OwnerLoad:
        """Return the load of an owner when duplicates are sent: a key arrives Binomial(ranks m, p)."""
        p, m = self.classes.probability, checked_lookups(m, ranks)
        squares = self.classes.total(m * p * (1.0 - p) + ranks * (m * p) ** 2)
        return OwnerLoad(m, math.sqrt((1.0 - 1.0 / ranks) * squares))

    def gap_share(self, m: float, gap: int) -> float:
        """Return the share of keys present now and `gap` batches ago, and absent in between."""
        present = self.classes.present(checked_lookups(m))
        total = self.classes.total(present)
        again = self.classes.total(present**2 * (1.0 - present) ** (gap - 1))
        return again / total if total else 0.0

    def use_chances(self, m: float) -> tuple[FloatArray, FloatArray]:
        """Return each class's chance to be present, and the expected number of its keys in a batch."""
        present = self.classes.present(checked_lookups(m))
        return present, self.classes.keys * present

    def top_share(self, fraction: float) -> float:
        """Return the share of lookups on the hottest `fraction` (0 to 1) of rows."""
        return self.classes.top_share(fraction)

    def extrapolates(self, m: float) -> bool:
        """Return False: a distribution given by a formula holds for any number of lookups."""
        return False
