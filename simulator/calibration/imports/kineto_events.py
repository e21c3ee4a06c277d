"""The events of one Kineto (PyTorch profiler) trace that say where a step's time went.

Read in one pass over the file. What stays in memory is about 40 bytes per event on the device and 24
per launch, whatever else the trace holds.
"""

import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.calibration.imports.kernel_classes import noted_bytes, shaped_bytes
from simulator.calibration.imports.streaming import elements, header
from simulator.errors import InputError, Where

WHAT = "a profiler trace (Kineto)"
LISTS = ("traceEvents",)
MOST_NAMES = 200_000
KERNEL, COPY, SET = 0, 1, 2
_DEVICE = {"kernel": KERNEL, "gpu_memcpy": COPY, "memcpy": COPY, "gpu_memset": SET, "memset": SET}
_LAUNCHING = ("cuda_runtime", "cuda_driver", "runtime", "privateuse1_runtime")
_STEP = re.compile(r"ProfilerStep#(\d+)")
_COLLECTIVE_CALL = re.compile(r"nccl:|record_param_comms|c10d::|hccl:")


@dataclass
class DeviceEvents:
    """What ran on the device, one entry per event: us since the trace's origin, us, and whose it is."""

    start: "array[float]" = field(default_factory=lambda: array("d"))
    duration: "array[float]" = field(default_factory=lambda: array("d"))
    name: "array[int]" = field(default_factory=lambda: array("i"))
    kind: "array[int]" = field(default_factory=lambda: array("b"))
    stream: "array[int]" = field(default_factory=lambda: array("q"))
    launch: "array[int]" = field(default_factory=lambda: array("q"))
    noted: dict[int, float] = field(default_factory=dict)  # bytes of collectives, by place


@dataclass
class Calls:
    """Calls on the host: us since the trace's origin, and the thread."""

    start: "array[float]" = field(default_factory=lambda: array("d"))
    thread: "array[int]" = field(default_factory=lambda: array("q"))
    key: "array[int]" = field(default_factory=lambda: array("q"))


@dataclass(frozen=True)
class CollectiveCall:
    """A collective as the program asked for it: when, for how long (us), on which thread, how many bytes."""

    start: float
    duration: float
    thread: int
    name: str
    bytes: float | None


@dataclass
class Trace:
    """One rank's trace. `steps` are (number, start, end) of the profiler's own steps, in us."""

    file: str
    rank: int | None = None
    world: int | None = None
    device: str = ""
    names: list[str] = field(default_factory=list)
    events: DeviceEvents = field(default_factory=DeviceEvents)
    launches: Calls = field(default_factory=Calls)
    calls: list[CollectiveCall] = field(default_factory=list)
    steps: list[tuple[int, float, float]] = field(default_factory=list)
    host_operators: int = 0


def read_trace(path: str) -> Trace:
    """Return one rank's trace. Raises InputError for anything else, and for a trace without device events."""
    head = header(Path(path), LISTS, WHAT)
    trace = Trace(
        path, _whole(head.get("distributedInfo.rank")), _whole(head.get("distributedInfo.world_size"))
    )
    trace.device = str(head.get("deviceProperties.item.name", ""))
    _Collector(trace).take(elements(Path(path), LISTS, WHAT))
    if not trace.events.start:
        raise InputError(
            "has no events on a device: record it with the profiler's CUDA activities", Where(path)
        )
    trace.steps.sort(key=lambda step: step[1])
    return trace


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


class _Collector:
    """Sorts events into a trace by their category."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._numbers: dict[str, int] = {}
        self._origin: float | None = None
        self._by_category: dict[str, Callable[[Mapping[str, Any]], None]] = {
            **{category: self._device for category in _DEVICE},
            **{category: self._launch for category in _LAUNCHING},
            "user_annotation": self._annotation,
            "cpu_op": self._operator,
        }

    def take(self, events: Iterator[Any]) -> None:
        """Read all events. Raises InputError for one that has no time, or no form of an event."""
        for event in events:
            if not isinstance(event, dict) or event.get("ph") != "X":
                continue
            sort = self._by_category.get(str(event.get("cat", "")).lower())
            if sort is not None:
                self._sorted(sort, event)

    def _sorted(self, sort: Callable[[Mapping[str, Any]], None], event: Mapping[str, Any]) -> None:
        try:
            sort(event)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            name = str(event.get("name", "without a name"))[:60]
            raise InputError(
                f'is damaged: the event "{name}" has no proper time', Where(self._trace.file)
            ) from None

    def _times(self, event: Mapping[str, Any]) -> tuple[float, float]:
        start, duration = float(event["ts"]), float(event["dur"])
        if not (abs(start) < 1e18 and 0 <= duration < 1e15):
            raise ValueError
        if self._origin is None:
            self._origin = start
        return start - self._origin, duration

    def _device(self, event: Mapping[str, Any]) -> None:
        start, duration = self._times(event)
        events, args = self._trace.events, event.get("args") or {}
        if (noted := noted_bytes(args)) is not None:
            events.noted[len(events.start)] = noted
        events.start.append(start)
        events.duration.append(duration)
        events.name.append(self._number(str(event["name"])))
        events.kind.append(_DEVICE[str(event["cat"]).lower()])
        events.stream.append(_number_or(args.get("stream"), 0))
        events.launch.append(_number_or(args.get("correlation"), -1))

    def _launch(self, event: Mapping[str, Any]) -> None:
        if "launch" in str(event["name"]).lower():
            launches, args = self._trace.launches, event.get("args") or {}
            launches.start.append(self._times(event)[0])
            launches.thread.append(_number_or(event.get("tid"), 0))
            launches.key.append(_number_or(args.get("correlation"), -1))

    def _annotation(self, event: Mapping[str, Any]) -> None:
        if step := _STEP.match(str(event["name"])):
            start, duration = self._times(event)
            self._trace.steps.append((int(step[1]), start, start + duration))
        else:
            self._call(event)

    def _operator(self, event: Mapping[str, Any]) -> None:
        self._trace.host_operators += 1
        self._call(event)

    def _call(self, event: Mapping[str, Any]) -> None:
        name = str(event["name"])
        if _COLLECTIVE_CALL.match(name):
            start, duration = self._times(event)
            args = event.get("args") or {}
            size = noted_bytes(args)
            size = shaped_bytes(args) if size is None else size
            thread = _number_or(event.get("tid"), 0)
            self._trace.calls.append(CollectiveCall(start, duration, thread, name, size))

    def _number(self, name: str) -> int:
        """Return the place of a name; past a limit, names are one."""
        if name not in self._numbers and len(self._numbers) < MOST_NAMES:
            self._numbers[name] = len(self._trace.names)
            self._trace.names.append(name)
        return self._numbers.get(name, 0)


def _number_or(value: Any, default: int) -> int:
    return value if isinstance(value, int) and abs(value) < 1 << 62 else default
