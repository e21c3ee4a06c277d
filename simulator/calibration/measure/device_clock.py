"""How long operations take on a device: between events of its stream, or by the clock where it is a CPU.

A host only queues work for a GPU or an NPU and goes on, so its clock says nothing of the device. Two events
in the device's own queue do: the time between them is that of what was queued between them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from simulator.quantities import FloatArray

LEAST_S = 1e-9  # what a clock that stood still is taken to have gone on
HEAD_START = 4096  # rows and columns of a product that keeps a device busy for milliseconds
Operation = Callable[[], object]


def nothing() -> None:
    """Do nothing: what happens before an operation unless told otherwise."""


@dataclass(frozen=True)
class Timed:
    """`seconds` of each repetition, and those of the calling thread's processor, both shape (repeats,)."""

    seconds: FloatArray
    cpu: FloatArray


class Timer(Protocol):
    """Takes the time of operations."""

    def timed(self, operation: Operation, repeats: int, before: Operation = nothing) -> Timed:
        """Return the times of `repeats` repetitions; `before` goes before each and is not counted."""


@dataclass(frozen=True)
class HostTimer:
    """The clock: for operations that are done when their call returns."""

    now: Callable[[], float] = time.perf_counter

    def timed(self, operation: Operation, repeats: int, before: Operation = nothing) -> Timed:
        """Return the times from the call of `operation` to its return."""
        times = np.zeros((2, repeats))
        for turn in range(repeats):
            before()
            used, start = time.thread_time(), self.now()
            operation()
            times[:, turn] = self.now() - start, time.thread_time() - used
        return Timed(np.maximum(times[0], LEAST_S), times[1])


@dataclass(frozen=True)
class EventTimer:
    """Events on the stream that `runtime` has current: torch.cuda, torch.npu, or what has their interface.

    Of it are used `Event(enable_timing=True)` with `record()` and `elapsed_time(later)` in milliseconds, and
    `synchronize()`. `ahead` queues work first, so that the host's calls are in the queue before the device
    comes to them: otherwise short operations would be as long as the host takes to ask for them.
    """

    runtime: Any
    ahead: Operation = field(default=nothing)

    def timed(self, operation: Operation, repeats: int, before: Operation = nothing) -> Timed:
        """Return the times between two events around each `operation`; read when all of it is done."""
        pairs = [(self._event(), self._event()) for _ in range(repeats)]
        cpu = np.zeros(repeats)
        self.ahead()
        for turn, (start, end) in enumerate(pairs):
            before()
            start.record()
            used = time.thread_time()
            operation()
            cpu[turn] = time.thread_time() - used
            end.record()
        self.runtime.synchronize()
        seconds = np.array([start.elapsed_time(end) for start, end in pairs]) / 1e3
        return Timed(np.maximum(seconds, LEAST_S), cpu)

    def _event(self) -> Any:
        return self.runtime.Event(enable_timing=True)


def timer_of(device: Any) -> Timer:
    """Return what times operations on a torch device."""
    import torch

    if device.type == "cpu":
        return HostTimer()
    long = torch.rand(HEAD_START, HEAD_START, device=device)
    return EventTimer(getattr(torch, device.type), lambda: torch.matmul(long, long))
