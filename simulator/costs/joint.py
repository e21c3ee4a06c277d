"""When each message of an exchange arrives, if messages that meet on a link share it max-min.

All rates rise together until links are full; messages there keep their rate, the others go on (Bertsekas
and Gallager, Data Networks, section 6.5.2). Whole matrices of messages are treated at once, so that a
round costs a few sums over blocks of ranks rather than a look at every way.

Two things are rounded: a link counts as full when it is nearly so, and messages that end close to each
other give back their share of the links at one moment, each ending at its own. Against exact filling on
512 ranks that moves the end of an exchange by less than 3 %, and not at all where loads are few and plain.
Up to `EXACT` ranks nothing is rounded.
"""

import numpy as np
from numpy.typing import NDArray

from simulator.hardware.crossings import Crossings
from simulator.quantities import FloatArray

NEARLY_FULL = 0.02
TOGETHER = 0.05  # of the time so far: ends so close to each other change rates at one moment
AT_LEAST = 0.02  # the same, of the time of the busiest link
EXACT, ROUGH = 16, 128  # ranks up to which nothing is rounded, and from which all that is allowed
ROUNDING = 1e-9

ROUNDED = 0.03
"""By how much this may move the end of an exchange."""


def arrivals(links: Crossings, messages: FloatArray) -> FloatArray:
    """Return seconds until each message, bytes (ranks, ranks), is done; 0 where there is none."""
    left, done = messages.copy(), np.zeros_like(messages)
    rough = min(1.0, max(0.0, (len(messages) - EXACT) / (ROUGH - EXACT)))
    apart = rough * AT_LEAST * float((_all(links, messages) / links.capacity).max(initial=0.0))
    going, now = messages > 0.0, 0.0
    while going.any():
        rate = _rates(links, going, rough * NEARLY_FULL + ROUNDING)
        due = np.divide(left, rate, out=np.full_like(left, np.inf), where=going)
        first = float(due.min())
        ending = due <= first + max(apart, (rough * TOGETHER + ROUNDING) * (now + first))
        done[ending] = now + due[ending]
        span = _middle(due[ending], rate[ending])
        left -= rate * span
        going &= ~ending
        np.maximum(left, 0.0, out=left)
        now += span
    return done


def _middle(due: FloatArray, rate: FloatArray) -> float:
    """Return the mean of `due`, weighted by rate: what some hold too long others give back too soon."""
    return float(np.average(due, weights=rate))


def _rates(links: Crossings, going: NDArray[np.bool_], nearly: float) -> FloatArray:
    """Return the max-min rate of each message that is under way, bytes/s; 0 for the others.

    A link is full when less than the share `nearly` of it is left.
    """
    rate, rising, left = np.zeros(going.shape), going.copy(), links.capacity.copy()
    while rising.any():
        count = _all(links, rising.astype(float))
        offered = np.divide(left, count, out=np.full_like(left, np.inf), where=count > 0.0)
        lowest = np.where(rising, links.least(offered), 0.0)
        full = (count > 0.0) & (_all(links, lowest) >= (1.0 - nearly) * left)
        bound = links.least(np.where(full, offered, np.inf))
        ready = rising & (bound <= lowest * (1.0 + nearly))
        rate[ready] = lowest[ready]
        left = np.maximum(left - _all(links, np.where(ready, lowest, 0.0)), 0.0)
        rising &= ~ready
    return rate


def _all(links: Crossings, messages: FloatArray) -> FloatArray:
    return np.asarray(links.loads(messages).sum(axis=0), np.float64)
