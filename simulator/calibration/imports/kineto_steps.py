"""Where the time of each step of a trace went: computing, communicating, copying, or nothing at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.calibration.imports.kernel_classes import CLASSES, COLLECTIVE, MEMCPY, kernel_class
from simulator.calibration.imports.kineto_events import KERNEL, Trace
from simulator.calibration.imports.spans import Spans, both, covered, union
from simulator.quantities import FloatArray, IntArray

ALL_CLASSES = (*CLASSES, COLLECTIVE, MEMCPY)


@dataclass(frozen=True)
class StepTimes:
    """One step of one rank, in ms; `step` is compute + exposed + exposed copies + idle.

    `compute`, `communication` and `memcpy` are times in which at least one such event runs on the
    device; `overlapped` is communication under compute, `exposed` the rest of it, `exposed_memcpy`
    copies under neither, `idle` the time in which the device does nothing. `host` is how long the
    host was in the step, where that differs: the device may end later. `launches` counts kernels,
    copies and fills.
    """

    number: int
    step: float
    compute: float
    communication: float
    overlapped: float
    exposed: float
    memcpy: float
    exposed_memcpy: float
    idle: float
    host: float
    launches: int


@dataclass(frozen=True)
class ClassTime:
    """All events of a class in the counted steps: how many per step, and ms per step, added up."""

    name: str
    count: float
    total: float


@dataclass(frozen=True)
class StepTable:
    """The steps of a trace, and what was computed from its events."""

    trace: Trace

    @cached_property
    def start(self) -> FloatArray:
        """Starts of device events, us."""
        return np.array(self.trace.events.start, dtype=np.float64)

    @cached_property
    def end(self) -> FloatArray:
        """Ends of device events, us."""
        return self.start + np.array(self.trace.events.duration, dtype=np.float64)

    @cached_property
    def classes(self) -> IntArray:
        """The place in `ALL_CLASSES` of each event."""
        by_name = np.array([ALL_CLASSES.index(kernel_class(name)) for name in self.trace.names])
        kernels = np.array(self.trace.events.kind) == KERNEL
        names = np.array(self.trace.events.name)
        return np.where(kernels, by_name[names], ALL_CLASSES.index(MEMCPY)).astype(np.int64)

    @cached_property
    def windows(self) -> tuple[tuple[int, float, float, float], ...]:
        """Number, start, end and end on the host of each step, in us.

        A step lasts until the next one starts, the last one until host and device are done with it. A
        trace without the profiler's marks is one step, from the first device event to the last.
        """
        steps, last = self.trace.steps, float(self.end.max())
        if not steps:
            return ((0, float(self.start.min()), last, last),)
        ends = [start for _, start, _ in steps[1:]] + [max(last, steps[-1][2])]
        return tuple(
            (number, start, end, host) for (number, start, host), end in zip(steps, ends, strict=True)
        )

    @cached_property
    def steps(self) -> tuple[StepTimes, ...]:
        """The times of every step."""
        return tuple(self._step(*window) for window in self.windows)

    def spans(self, chosen: "np.ndarray") -> Spans:
        """Return what the chosen events cover."""
        return union(self.start[chosen], self.end[chosen])

    @cached_property
    def _covering(self) -> dict[str, Spans]:
        """Spans of computing, communicating and copying, and of their unions."""
        moving = self.classes == ALL_CLASSES.index(COLLECTIVE)
        copying = self.classes == ALL_CLASSES.index(MEMCPY)
        compute, communication = self.spans(~moving & ~copying), self.spans(moving)
        memcpy, kernels = self.spans(copying), both(compute, communication)
        return {
            "compute": compute,
            "communication": communication,
            "memcpy": memcpy,
            "kernels": kernels,
            "all": both(kernels, memcpy),
        }

    def _step(self, number: int, start: float, end: float, host: float) -> StepTimes:
        ms = {name: covered(spans, start, end) / 1e3 for name, spans in self._covering.items()}
        step = (end - start) / 1e3
        return StepTimes(
            number=number,
            step=step,
            compute=ms["compute"],
            communication=ms["communication"],
            overlapped=ms["compute"] + ms["communication"] - ms["kernels"],
            exposed=ms["kernels"] - ms["compute"],
            memcpy=ms["memcpy"],
            exposed_memcpy=ms["all"] - ms["kernels"],
            idle=step - ms["all"],
            host=(host - start) / 1e3,
            launches=int(((self.start >= start) & (self.start < end)).sum()),
        )

    def class_times(self) -> Iterator[ClassTime]:
        """Yield the classes that occur within the steps, most time first."""
        inside = (self.start >= self.windows[0][1]) & (self.start < self.windows[-1][2])
        count, steps = len(ALL_CLASSES), len(self.windows)
        lasting = (self.end - self.start)[inside]
        totals = np.bincount(self.classes[inside], lasting, minlength=count) / steps / 1e3
        counts = np.bincount(self.classes[inside], minlength=count) / steps
        for place in sorted(range(count), key=lambda one: -totals[one]):
            if counts[place]:
                yield ClassTime(ALL_CLASSES[place], float(counts[place]), float(totals[place]))


def mean_times(steps: Sequence[StepTimes]) -> dict[str, float]:
    """Return the mean of every time over `steps`, ms, and the mean number of launches."""
    names = [name for name in StepTimes.__dataclass_fields__ if name != "number"]
    return {name: float(np.mean([getattr(one, name) for one in steps])) for name in names}
