"""Caches that serve whole batches: how many of a batch's distinct rows are not there when it starts.

A batch asks for each row once, however often it looks it up, so these are not the misses per lookup of
`closed_forms` and `curves`: lookups repeated within a batch count nothing here.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, singledispatch

import numpy as np

from simulator.errors import InputError, Where
from simulator.quantities import IntArray
from simulator.workload.caches.closed_forms import characteristic_time
from simulator.workload.caches.reuse_distance import FIRST, ReuseDistances, earlier_smaller, neighbours
from simulator.workload.keys import Independent, LogColumn, Popularity, Recorded
from simulator.workload.keys.popularity import checked_lookups
from simulator.workload.keys.recorded import MOST_LOOKUPS

FEWEST_BATCHES = 4  # two to warm the cache, two to count


def hottest_missed(popularity: Popularity, lookups: float, share: float, rows: float) -> float:
    """Return the share of a batch's distinct rows that are not among the hottest `share` of all `rows`.

    Of the hottest keys, those among m lookups are sum of 1 - (1 - p)^m over them (our derivation). Keys
    without classes give their share of lookups instead.
    """
    if not isinstance(popularity, Independent):
        return 1.0 - popularity.top_share(share)
    classes = popularity.classes
    present = np.append(0.0, np.cumsum(classes.keys * classes.present(lookups)))
    ends = np.append(0.0, np.cumsum(classes.keys))
    return 1.0 - float(np.interp(share * rows, ends, present) / present[-1]) if lookups else 1.0


@singledispatch
def lru_missed(popularity: Popularity, lookups: float, slots: float) -> float:
    """Return the share of a batch's distinct rows that an LRU cache of `slots` rows does not hold.

    A batch has `lookups` lookups. From a formula: a row hits that occurred among the lookups of the
    cache's characteristic time before the batch (Che, Tung and Wang 2002; applied to batches by us).
    From a log: its batches are replayed. Raises InputError for negative numbers, a log too short to
    replay, and keys of which neither is known.
    """
    raise InputError("what a cache would keep is not known of these keys")


@lru_missed.register
def _(popularity: Independent, lookups: float, slots: float) -> float:
    classes, time = popularity.classes, characteristic_time(popularity, slots)
    present = classes.present(checked_lookups(lookups))
    asked = classes.total(present)
    if math.isinf(time) or not asked:
        return 0.0
    return classes.total(present * classes.absent(time)) / asked


@lru_missed.register
def _(popularity: Recorded, lookups: float, slots: float) -> float:
    if popularity.log is None:
        raise InputError("a cache is replayed on a log, and these statistics came without theirs")
    return _replayed(popularity.log, max(1, round(checked_lookups(lookups))), round(slots))


@lru_cache(maxsize=4096)
def _replayed(log: LogColumn, window: int, slots: int) -> float:
    return replayed_misses(_lookups(log), window, slots, Where(str(log.path)))


@lru_cache(maxsize=64)
def _lookups(log: LogColumn) -> IntArray:
    return log.lookups()


def replayed_misses(codes: IntArray, window: int, slots: int, where: Where | None = None) -> float:
    """Return the share of rows that batches of `window` lookups miss in an LRU cache of `slots` rows.

    The lookups `codes` come in time order; the first half of the batches warms the cache. A row that is
    new to the log misses. Raises InputError with fewer than four batches.
    """
    batches = len(codes) // window
    if batches < FEWEST_BATCHES:
        problem = f"{FEWEST_BATCHES} batches of {window:,} lookups (all workers) are needed to replay a cache"
        read = f"{len(codes):,} lookups of the log were read (at most {MOST_LOOKUPS:,} are)"
        raise InputError(f"{problem}, and {read}", where or Where())
    batch = np.arange(batches * window) // window
    named = batch * (int(codes.max()) + 1) + codes[: batches * window]
    kept = np.sort(np.unique(named, return_index=True)[1])
    distances = _before_batch(codes[kept], batch[kept])
    missed = (distances == FIRST) | (distances >= slots)
    return float(missed[batch[kept] >= batches // 2].mean())


def _before_batch(rows: IntArray, batch: IntArray) -> IntArray:
    """Return how many other rows were asked for since each row's last batch and before its present one.

    Our derivation: the reuse distance also counts the rows of the present batch that stand before it
    and were last asked for before it (or never).
    """
    previous, _ = neighbours(rows)
    ranks = np.empty_like(rows)
    ranks[np.lexsort((previous, batch))] = np.arange(len(rows))
    distances = ReuseDistances().add(rows)
    within = earlier_smaller(ranks) - np.searchsorted(batch, batch)
    return np.where(distances == FIRST, FIRST, distances - within)


def _lru(popularity: Popularity, lookups: float, share: float, rows: float) -> float:
    return lru_missed(popularity, lookups, share * rows)


# The share of a batch's rows that a cache misses, from popularity, lookups, cached share and rows.
REPLACEMENTS: Mapping[str, Callable[[Popularity, float, float, float], float]] = {
    "hottest": hottest_missed,
    "lru": _lru,
}
