"""Timing on several ranks of one machine by their one clock, and what is kept of it.

All ranks of a machine share the monotonic clock, so a collective takes from its last arrival to its last
end. A computation takes everybody's own duration where each rank has a core to itself. Ranks that share a
core would each seem to run at full speed then, as some wait in the barrier while others compute: there it is
the processor time, times the ranks of a core.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from simulator.calibration.measure.channel import Array, Channel
from simulator.calibration.measure.pace import Pace
from simulator.calibration.measure.spinner import Spinner
from simulator.quantities import FloatArray

LEAST_REPEATS, MOST_REPEATS = 4, 41
TURNS = 2  # a computing thread is watched alone and beside collectives in turns: paces drift
ELSEWHERE_BYTES = 4 << 20  # more than a core's own cache holds: what the other stages of a step use


@dataclass(frozen=True)
class Point:
    """What one size took: `seconds` (median), its spread, CPU seconds of the calling thread, and how often.

    Of a collective also: `back_to_back`, the time of one of several in a row without a barrier between
    them, and `stolen_seconds`, what it takes from a thread that computes on the same core meanwhile
    (interrupts and lost caches included, which no thread is charged for). `pace` is that of the machine
    meanwhile (see `Pace`), if it was looked at.
    """

    size: float
    seconds: float
    p90_over_p50: float
    cpu_seconds: float
    repeats: int
    back_to_back: float | None = None
    stolen_seconds: float | None = None
    pace: float | None = None


@dataclass(frozen=True, eq=False)
class Stopwatch:
    """Times operations on all ranks of `channel`, about `budget` seconds for each size.

    Before each collective the link rests for `rest` seconds, so that a token bucket is full. With a `pace`,
    what was taken while the machine was slow is taken again. `sharing` ranks share a core.
    """

    channel: Channel
    budget: float = 0.2
    rest: float = 0.0
    pace: Pace | None = None
    sharing: float = 1.0

    def compute(self, size: float, operation: Callable[[int], object]) -> Point:
        """Time a local operation that all ranks do at once; `operation(i)` is the i-th of a kind."""
        return self._steadily(lambda: self._computed(size, operation))

    def collective(self, size: float, operation: Callable[[int], object]) -> Point:
        """Time a collective: from the last arrival to the last end, and back to back."""
        return self._steadily(lambda: self._met(size, operation))

    def together(self, size: float, operation: Callable[[int], object]) -> Point:
        """Time what all ranks do at once and others do for them: from the last arrival to the last end."""
        return self._steadily(lambda: self._beside(size, operation))

    def _steadily(self, measured: Callable[[], Point]) -> Point:
        if self.pace is None:
            return measured()
        paced = self.pace.steadily(measured)
        return replace(paced.found, pace=paced.pace)

    def _computed(self, size: float, operation: Callable[[int], object]) -> Point:
        start, end, cpu = self._cold(operation)
        taken = end - start if self.sharing <= 1.0 else self.sharing * cpu
        return _point(size, taken.max(axis=0), cpu)

    def _beside(self, size: float, operation: Callable[[int], object]) -> Point:
        start, end, cpu = self._cold(operation)
        return _point(size, end.max(axis=0) - start.max(axis=0), cpu)

    def _cold(self, operation: Callable[[int], object]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return start, end and CPU time of calls that each find another's data in the cache."""
        return self._series(operation, self._repeats(self._agreed(self._roughly(operation))), self._others)

    def _others(self) -> None:
        """Use the core's cache for something else, as the other stages of a step do."""
        np.add(self.elsewhere, 1.0, out=self.elsewhere)

    @cached_property
    def elsewhere(self) -> Array:
        """What a computation finds in the core's cache instead of its own data."""
        return np.zeros(ELSEWHERE_BYTES // 4, dtype=np.float32)

    def _met(self, size: float, operation: Callable[[int], object]) -> Point:
        once = self._agreed(self._roughly(operation))
        repeats = self._repeats(1.5 * once + self.rest)
        start, end, cpu = self._series(operation, repeats, lambda: time.sleep(self.rest))
        point = _point(size, end.max(axis=0) - start.max(axis=0), cpu)
        row = self._in_a_row(operation, max(3, repeats // 3))
        return replace(point, back_to_back=row, stolen_seconds=self._stolen(operation))

    def _stolen(self, operation: Callable[[int], object]) -> float:
        """Return what one collective takes from a computing thread: the time less what that one got done."""
        watched = np.zeros((2, 2))  # alone, beside: products and seconds
        self.channel.barrier()
        with Spinner() as spinner:
            count = self._count_beside(operation)
            for _ in range(TURNS):
                watched[0] += spinner.during(lambda: time.sleep(self.budget / 2 / TURNS))
                self.channel.barrier()
                watched[1] += spinner.during(lambda: [operation(turn) for turn in range(count)])
        products, seconds = watched.T
        alone = max(1.0, products[0]) / seconds[0]
        lost = max(0.0, seconds[1] - products[1] / alone) / (TURNS * count)
        return float(np.median(self.channel.all_gather(np.array([lost]))))

    def _count_beside(self, operation: Callable[[int], object]) -> int:
        """Return how many collectives fit into a turn; beside a computing thread each may take far longer."""
        once = float(np.mean([self._roughly(operation) for _ in range(3)]))
        return max(1, round(self.budget / TURNS / self._agreed(once)))

    def _in_a_row(self, operation: Callable[[int], object], count: int) -> float:
        def all_of_them(turn: int) -> None:
            for index in range(count):
                operation(index)

        operation(0)  # empties the token bucket of a shaped link
        start, end, _ = self._series(all_of_them, 1, lambda: None)
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
        self, operation: Callable[[int], object], repeats: int, before: Callable[[], object]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return start, end and CPU time, seconds, shape (ranks, repeats); `before()` comes before each."""
        times = np.zeros((3, repeats))
        for turn in range(repeats):
            before()
            self.channel.barrier()
            used = time.thread_time()
            times[0, turn] = time.perf_counter()
            operation(turn)
            times[1, turn] = time.perf_counter()
            times[2, turn] = time.thread_time() - used
        everybody = [part.reshape(3, repeats) for part in self.channel.all_gather(times.reshape(-1))]
        start, end, cpu = np.stack(everybody, axis=1)
        return start, end, cpu


def _point(size: float, seconds: FloatArray, cpu: FloatArray) -> Point:
    median = float(np.median(seconds))
    spread = float(np.quantile(seconds, 0.9)) / median
    return Point(size, median, spread, float(np.median(cpu)), len(seconds))


def merged(points: Sequence[Point]) -> Point:
    """Return the median of what one size took in several sweeps."""

    def middle(values: Sequence[float | None]) -> float | None:
        there = [value for value in values if value is not None]
        return float(np.median(there)) if there else None

    names = [field.name for field in fields(Point)]
    medians: dict[str, Any] = {name: middle([getattr(point, name) for point in points]) for name in names}
    return Point(**{**medians, "repeats": sum(point.repeats for point in points)})
