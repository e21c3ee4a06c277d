"""What real logs have and independent draws have not: sessions, drift, bursts."""

import math
from dataclasses import dataclass

import numpy as np

from simulator.errors import InputError
from simulator.quantities import IntArray
from simulator.workload.draws import mix64
from simulator.workload.traces.streams import stream

MOST_GROUPS, LEAST_GROUP = 64, 16
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples spread evenly between whole numbers


def checked_odds(name: str, odds: float) -> None:
    """Raise InputError unless `odds` lie between 0 and 1."""
    if not 0.0 <= odds <= 1.0:
        raise InputError(f"{name} must lie between 0 and 1, not at {odds}")


@dataclass(frozen=True)
class Sessions:
    """Users come back: a lookup repeats an earlier one of its rank with odds `repeat`.

    The earlier one is any of the fresh lookups of one of the `window` batches before, all equally
    likely. Each lookup alone still follows the table's popularity; neighbouring batches share more
    keys, and a batch holds a few per cent fewer.
    Raises InputError for odds outside 0..1 or a window below 1.
    """

    repeat: float
    window: int = 1

    def __post_init__(self) -> None:
        """Refuse impossible odds and windows."""
        checked_odds("the odds to repeat", self.repeat)
        if self.window < 1:
            raise InputError(f"sessions must reach back at least 1 batch, not {self.window}")


@dataclass(frozen=True)
class Drift:
    """Popularity moves on: every rank of the popularity passes to another row each `period` batches.

    Ranks fall into up to 64 groups that change at different times, spread evenly, so after `lag`
    batches about the share `kept(lag)` of ranks still has its row. Within a group the rows are dealt
    out anew, one to each rank: two ranks never share a row. Raises InputError unless the period is
    positive.
    """

    period: float

    def __post_init__(self) -> None:
        """Refuse an impossible period."""
        if not (math.isfinite(self.period) and self.period > 0):
            raise InputError(f"the period of a drift must be positive, not {self.period}")

    def kept(self, lag: float) -> float:
        """Return the share of ranks whose row is the same `lag` batches later."""
        return max(0.0, 1.0 - lag / self.period)

    def moved(self, ranks: IntArray, batch: int, rows: int) -> IntArray:
        """Return the rank (1..rows) whose first row each of `ranks` has in `batch`."""
        groups = np.arange(max(1, min(MOST_GROUPS, rows // LEAST_GROUP)))
        sizes = (rows - groups + len(groups) - 1) // len(groups)
        ages = np.floor(batch / self.period + groups * GOLDEN % 1.0).astype(np.int64)
        dealt = mix64(mix64(groups.astype(np.uint64)) + ages.view(np.uint64)) % sizes.astype(np.uint64)
        shifts = np.where(ages == 0, 0, dealt.astype(np.int64))
        place, group = np.divmod(ranks - 1, len(groups))
        return np.asarray((place + shifts[group]) % sizes[group] * len(groups) + group + 1)


@dataclass(frozen=True)
class Bursts:
    """News: in each batch a burst begins with odds `rate` and lasts `length` batches, on all ranks.

    While it lasts, a lookup goes with odds `share` to the burst's row, one drawn from the whole
    table. Raises InputError for odds outside 0..1 or a length below 1.
    """

    rate: float
    length: int
    share: float

    def __post_init__(self) -> None:
        """Refuse impossible odds and lengths."""
        checked_odds("the rate of bursts", self.rate)
        checked_odds("the share of a burst", self.share)
        if self.length < 1:
            raise InputError(f"a burst must last at least 1 batch, not {self.length}")

    def rows(self, seed: int, table: str, rows: int, batch: int) -> list[int]:
        """Return the rows of the bursts under way in `batch`."""
        starts = (stream(seed, f"burst of {table}", 0, b) for b in range(batch - self.length + 1, batch + 1))
        return [int(draws.integers(rows)) for draws in starts if draws.random() < self.rate]
