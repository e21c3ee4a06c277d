"""Collectives of a trace: which, how many bytes, and how long without waiting for the slowest rank."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.calibration.imports.kernel_classes import COLLECTIVE, collective
from simulator.calibration.imports.kineto_events import CollectiveCall, Trace
from simulator.calibration.imports.kineto_steps import ALL_CLASSES, StepTable


@dataclass(frozen=True)
class Collective:
    """One collective on one rank: its place among them, us, and bytes of its larger buffer if known."""

    operation: str
    start: float
    duration: float
    bytes: float | None


@dataclass(frozen=True)
class Meeting:
    """The same collective on all ranks: the shortest time (us) is that of the rank that came last.

    `waited` is the mean over ranks of what they spent beyond that. `bytes` are the least and most.
    """

    operation: str
    shortest: float
    waited: float
    bytes: tuple[float, float] | None


def collectives(table: StepTable) -> tuple[Collective, ...]:
    """Return the collectives of a trace in order of their start."""
    places = np.flatnonzero(table.classes == ALL_CLASSES.index(COLLECTIVE))
    ordered = places[np.argsort(table.start[places], kind="stable")]
    calls = _Calls(table.trace)
    return tuple(_one(table.trace, int(place), calls) for place in ordered)


def meetings(ranks: Sequence[Sequence[Collective]]) -> tuple[Meeting, ...] | None:
    """Return what all ranks did together; None when they did not do the same things in the same order."""
    kinds = {tuple(one.operation for one in rank) for rank in ranks}
    if len(kinds) != 1 or len(ranks) < 2:
        return None
    return tuple(_meeting(together) for together in zip(*ranks, strict=True))


def _meeting(together: Sequence[Collective]) -> Meeting:
    lasting = [one.duration for one in together]
    known = [one.bytes for one in together if one.bytes is not None]
    shortest = min(lasting)
    waited = sum(lasting) / len(lasting) - shortest
    return Meeting(together[0].operation, shortest, waited, (min(known), max(known)) if known else None)


def _one(trace: Trace, place: int, calls: "_Calls") -> Collective:
    events = trace.events
    call = calls.of(events.launch[place])
    name = trace.names[events.name[place]]
    operation = collective(call.name) if call else "other"
    size = events.noted.get(place, call.bytes if call else None)
    return Collective(
        operation if operation != "other" else collective(name),
        events.start[place],
        events.duration[place],
        size,
    )


class _Calls:
    """Which call of the program a launch belongs to: the one that was running on its thread."""

    def __init__(self, trace: Trace) -> None:
        self._launches = {key: place for place, key in enumerate(trace.launches.key) if key >= 0}
        self._trace = trace
        self._by_thread: dict[int, list[CollectiveCall]] = {}
        for call in sorted(trace.calls, key=lambda call: call.start):
            self._by_thread.setdefault(call.thread, []).append(call)
        self._starts = {thread: [call.start for call in calls] for thread, calls in self._by_thread.items()}

    def of(self, key: int) -> CollectiveCall | None:
        """Return the innermost call with known bytes, else any, around the launch with that key."""
        place = self._launches.get(key)
        if place is None:
            return None
        launches = self._trace.launches
        around = list(self._around(launches.thread[place], launches.start[place]))
        return next((call for call in around if call.bytes is not None), around[0] if around else None)

    def _around(self, thread: int, moment: float) -> Iterator[CollectiveCall]:
        """Yield the calls on a thread that were running, the latest begun first (few are nested)."""
        calls = self._by_thread.get(thread, [])
        last = bisect_right(self._starts.get(thread, []), moment)
        for call in reversed(calls[max(0, last - 8) : last]):
            if call.start + call.duration >= moment:
                yield call
