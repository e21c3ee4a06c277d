"""Timing on several ranks of one machine by their one clock, and what is kept of it.

A barrier, then everybody's own duration, hides waiting: ranks that share a core would each seem to
run at full speed. All ranks of a machine share the monotonic clock, so a collective takes from its last
arrival to its last end, and a computation from its first start to its last end.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from simulator.calibration.measure.channel import Channel
from simulator.calibration.measure.pinning import short_turns
from simulator.quantities import FloatArray

LEAST_REPEATS, MOST_REPEATS = 7, 41
WIDTH = 256  # of the matrices that a computing thread multiplies: together they fill half a usual L2 cache
LEAST_ONE_S = 1.5e-3  # shorter computations are run several times in a row and divided


@dataclass(frozen=True)
class Point:
    """What one size took: `seconds` (median), its spread, CPU seconds of the calling thread, and how often.

    Of a collective also: `back_to_back`, the time of one of several in a row without a barrier between
    them, and `stolen_seconds`, what it takes from a thread that computes on the same core meanwhile
    (interrupts and lost caches included, which no thread is charged for).
    """

    size: float
    seconds: float
    p90_over_p50: float
    cpu_seconds: float
    repeats: int
    back_to_back: float | None = None
    stolen_seconds: float | None = None


@dataclass(frozen=True)
class Stopwatch:
    """Times operations on all ranks of `channel`, about `budget` seconds for each size.

    Before each collective the link rests for `rest` seconds, so that a token bucket is full.
    """

    channel: Channel
    budget: float = 0.2
    rest: float = 0.0

    def compute(self, size: float, operation: Callable[[int], object]) -> Point:
        """Time a local operation that all ranks do at once; `operation(i)` is the i-th of a kind."""
        once = self._agreed(self._roughly(operation))
        inner = max(1, round(LEAST_ONE_S / once))
        repeats = self._repeats(once * inner)

        def several(turn: int) -> None:
            for index in range(inner):
                operation(turn * inner + index)

        start, end, cpu = self._series(several, repeats)
        return _point(size, (end.max(axis=0) - start.min(axis=0)) / inner, cpu / inner)

    def collective(self, size: float, operation: Callable[[int], object]) -> Point:
        """Time a collective: from the last arrival to the last end, and back to back."""
        once = self._agreed(self._roughly(operation))
        repeats = self._repeats(1.5 * once + self.rest)
        start, end, cpu = self._series(operation, repeats, self.rest)
        point = _point(size, end.max(axis=0) - start.max(axis=0), cpu)
        row = self._in_a_row(operation, max(3, repeats // 3))
        return replace(point, back_to_back=row, stolen_seconds=self._stolen(operation, row))

    def _stolen(self, operation: Callable[[int], object], once: float) -> float:
        """Return what one collective takes from a computing thread: the time less what that one got done."""
        count = max(3, round(self.budget / max(once, 1e-5)))
        self.channel.barrier()
        with Spinner() as spinner:
            alone = spinner.pace(lambda: time.sleep(self.budget / 2))
            self.channel.barrier()
            began = time.perf_counter()
            beside = spinner.done(lambda: [operation(turn) for turn in range(count)])
            passed = time.perf_counter() - began
        lost = max(0.0, passed - beside / alone) / count
        return float(np.median(self.channel.all_gather(np.array([lost]))))

    def _in_a_row(self, operation: Callable[[int], object], count: int) -> float:
        def all_of_them(turn: int) -> None:
            for index in range(count):
                operation(index)

        operation(0)  # empties the token bucket of a shaped link
        start, end, _ = self._series(all_of_them, 1)
        return float(end.max() - start.max()) / count

    def _roughly(self, operation: Callable[[int], object]) -> float:
        operation(0)
        self.channel.barrier()
        began = time.perf_counter()
        operation(1)
        return time.perf_counter() - began

    def _agreed(self, seconds: float) -> float:
        """Return the longest of everybody's estimates, so that all ranks do the same."""
        return float(np.max(self.channel.all_gather(np.array([max(seconds, 1e-7)]))))

    def _repeats(self, once: float) -> int:
        return int(np.clip(self.budget / once, LEAST_REPEATS, MOST_REPEATS))

    def _series(
        self, operation: Callable[[int], object], repeats: int, rest: float = 0.0
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return start, end and CPU time, seconds, shape (ranks, repeats)."""
        times = np.zeros((3, repeats))
        for turn in range(repeats):
            if rest:
                time.sleep(rest)
            self.channel.barrier()
            times[0, turn] = time.perf_counter()
            used = time.thread_time()
            operation(turn)
            times[2, turn] = time.thread_time() - used
            times[1, turn] = time.perf_counter()
        everybody = [part.reshape(3, repeats) for part in self.channel.all_gather(times.reshape(-1))]
        start, end, cpu = np.stack(everybody, axis=1)
        return start, end, cpu


def _point(size: float, seconds: FloatArray, cpu: FloatArray) -> Point:
    median = float(np.median(seconds))
    spread = float(np.quantile(seconds, 0.9)) / median
    return Point(size, median, spread, float(np.median(cpu)), len(seconds))


class Spinner:
    """A thread that multiplies small matrices, and counts them, until it is left."""

    def __init__(self) -> None:
        """Make the matrices."""
        self._matrix = np.ones((WIDTH, WIDTH), dtype=np.float32)
        self._count = 0
        self._stop = False
        self._thread = threading.Thread(target=self._spin, daemon=True)

    def __enter__(self) -> "Spinner":
        """Start; the calling thread goes first from now on, as threads that communicate do in a run."""
        short_turns()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop."""
        self._stop = True
        self._thread.join()

    def done(self, action: Callable[[], object]) -> int:
        """Return how many products were done during `action`."""
        before = self._count
        action()
        return self._count - before

    def pace(self, action: Callable[[], object]) -> float:
        """Return products per second during `action`."""
        began = time.perf_counter()
        done = self.done(action)
        return max(1, done) / (time.perf_counter() - began)

    def _spin(self) -> None:
        while not self._stop:
            self._matrix @ self._matrix
            self._count += 1
