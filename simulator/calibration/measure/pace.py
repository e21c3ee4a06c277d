"""How fast the machine is just now: neighbours on the same memory slow it down, and no counter says so.

On a shared machine reads of rows were seen to take up to 1.8 times as long for seconds on end, on one
core or on both, while the kernel reported neither load nor stolen time. So reference work is timed before and
after whatever is measured, and what was measured at a slow pace is measured again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from simulator.calibration.measure.channel import Array, Channel
from simulator.quantities import IntArray

STEADY = 1.25  # of the usual time of the reference work: slower is disturbed
TABLE_ROWS, WIDTH, READ = 200_000, 32, 8_000  # 26 MB of rows, more than fit into a core's own caches
LOOKS, FIRST_LOOKS = 5, 12
TRIES = 2
Found = TypeVar("Found")


@dataclass(frozen=True)
class Paced(Generic[Found]):
    """What was `found`, and the `pace` of the machine meanwhile: 1 is usual, above is slower."""

    found: Found
    pace: float

    @property
    def steady(self) -> bool:
        """Whether the machine was left alone."""
        return self.pace <= STEADY


@dataclass(eq=False)
class Pace:
    """Times reference work on all ranks of `channel`; `patience` is how often it lets work be repeated."""

    channel: Channel
    patience: int = 60
    _seen: list[float] = field(default_factory=list)
    _table: Array = field(default_factory=lambda: np.ones((TABLE_ROWS, WIDTH), dtype=np.float32))
    _rows: list[IntArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Learn how fast the machine usually is."""
        random = np.random.default_rng(self.channel.rank)
        self._rows = [random.integers(0, TABLE_ROWS, READ) for _ in range(LOOKS)]
        for _ in range(FIRST_LOOKS):
            self.now()
            time.sleep(0.01)

    def now(self) -> float:
        """Return the time of the reference work, of the slowest rank, over its median so far.

        It is processor time, so that ranks which share a core do not count each other.
        """
        taken = [self._look(rows) for rows in self._rows]
        everybody = self.channel.all_gather(np.array([float(np.median(taken))]))
        slowest = float(np.max(everybody))
        self._seen.append(slowest)
        return self._last

    @property
    def _last(self) -> float:
        return self._seen[-1] / float(np.median(self._seen))

    def _look(self, rows: IntArray) -> float:
        began = time.thread_time()
        np.take(self._table, rows, axis=0)
        return time.thread_time() - began

    def around(self, measured: Callable[[], Found]) -> Paced[Found]:
        """Return what `measured` returns and the slower of the paces before (the last look) and after it."""
        before = self._last
        found = measured()
        return Paced(found, max(before, self.now()))

    def steadily(self, measured: Callable[[], Found]) -> Paced[Found]:
        """Return the same; repeat once what was slow, and keep the one at the better pace.

        All ranks see the same pace, and so repeat the same.
        """
        best = self.around(measured)
        for _ in range(TRIES - 1):
            if best.steady or not self.patience:
                break
            self.patience -= 1
            best = min(best, self.around(measured), key=lambda one: one.pace)
        return best
