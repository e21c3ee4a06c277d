"""Hit rates of caches under independent lookups, in closed form."""

import math

import numpy as np

from simulator.errors import InputError
from simulator.workload.keys.popularity import Independent, checked_lookups


def _checked_slots(slots: float) -> None:
    if not (math.isfinite(slots) and slots >= 0):
        raise InputError(f"a cache's slots must be finite and not negative, not {slots}")


def static_hit_rate(popularity: Independent, slots: float) -> float:
    """Return the share of lookups on the `slots` hottest keys: what LFU tends to, and no cache
    beats without knowing the future. Raises InputError for negative slots.
    """
    _checked_slots(slots)
    return float(np.interp(slots, *popularity.classes.cumulative))


def characteristic_time(popularity: Independent, slots: float) -> float:
    """Return the lookups after which an LRU cache of `slots` rows has dropped a key not asked for
    again: those among which `slots` keys are distinct (Che, Tung and Wang 2002). Infinite when
    all keys fit. Raises InputError for negative slots.
    """
    from scipy.optimize import brentq

    _checked_slots(slots)
    keys = float(popularity.classes.cumulative[0][-1])
    if slots >= keys:
        return math.inf
    if slots <= 1.0:
        return slots
    low = high = slots
    while popularity.classes.total(popularity.classes.present(high)) < slots:
        low, high = high, 4.0 * high

    def excess(log_time: float) -> float:
        return popularity.classes.total(popularity.classes.present(math.exp(log_time))) - slots

    return math.exp(float(brentq(excess, math.log(low), math.log(high), xtol=1e-10)))


def lru_hit_rate(popularity: Independent, slots: float) -> float:
    """Return the share of lookups that an LRU cache of `slots` rows serves (Che's approximation).

    A lookup hits when its key occurred among the lookups of the characteristic time before it.
    Raises InputError for negative slots.
    """
    time = characteristic_time(popularity, slots)
    classes = popularity.classes
    if math.isinf(time):
        return 1.0
    return classes.total(classes.probability * classes.present(time))


def lookahead_fetches(popularity: Independent, m: float, batches: int) -> float:
    """Return the rows fetched per batch of `m` lookups when rows stay for `batches` batches.

    A key is fetched when it occurs in a batch and in none of the `batches` before it; by symmetry
    that is also the number of keys of a batch that none of the next `batches` uses. Our derivation:
    sum of q (1 - q)^batches. Raises InputError for a negative number of either.
    """
    checked_lookups(m)
    if batches < 0:
        raise InputError(f"the number of batches must not be negative, not {batches}")
    hit = popularity.classes.present(m)
    absent = np.exp(batches * np.log1p(-np.minimum(hit, 1.0 - 1e-16))) if batches else 1.0
    return popularity.classes.total(hit * absent)
