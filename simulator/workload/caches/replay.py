"""Replaying lookups through LFU and Belady's caches, one by one."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from simulator.quantities import IntArray
from simulator.workload.caches.reuse_distance import FIRST, neighbours


def lfu_distances(codes: IntArray) -> IntArray:
    """Return how many keys had been looked up more often than each lookup's key, `FIRST` if new.

    A cache of C rows that always holds the C keys with the most lookups so far (counts of dropped
    keys are kept, rare keys are not loaded) hits the lookups whose distance is below C, so one pass
    gives all sizes. Keys lie in an array by falling count; a lookup swaps its key to the front of
    those with equal counts.
    """
    place: dict[int, int] = {}
    ranked: list[int] = []
    count: dict[int, int] = {}
    begins: dict[int, int] = {}  # the first place of each count
    distances = np.full(len(codes), FIRST, dtype=np.int64)
    for index, key in enumerate(codes.tolist()):
        at = place.get(key)
        if at is None:
            at = place[key] = len(ranked)
            ranked.append(key)
            begins.setdefault(0, at)
        else:
            distances[index] = at
        seen = count.get(key, 0)
        front = begins[seen]
        other = ranked[front]
        ranked[front], ranked[at] = key, other
        place[other], place[key] = at, front
        begins[seen] = front + 1
        begins.setdefault(seen + 1, front)
        count[key] = seen + 1
        if seen == 0:
            del begins[0]
    return distances


def belady_hits(codes: IntArray, slots: Sequence[int]) -> list[int]:
    """Return the most hits that any cache of each size in `slots` can have (Belady 1966).

    A row need not be loaded when it is looked up. A hit keeps a row in one slot from one lookup of
    its key to the next, so hits are intervals on as many machines as there are slots; taking them
    by their ends, each on the free machine that was freed last, schedules the most (Faigle and
    Nawijn 1995).
    """
    previous, _ = neighbours(codes)
    ends = np.flatnonzero(previous >= 0)
    intervals = list(zip(previous[ends].tolist(), ends.tolist(), strict=True))
    return [_scheduled(intervals, size) for size in slots]


def _scheduled(intervals: list[tuple[int, int]], machines: int) -> int:
    free = [-1] * machines  # when each machine was freed, in rising order
    taken = 0
    for start, end in intervals:
        machine = bisect_right(free, start) - 1
        if machine >= 0:
            del free[machine]
            free.append(end)
            taken += 1
    return taken
