"""Spans of time: how much of a window is covered, by one set of spans or by two at once."""

import numpy as np

from simulator.quantities import FloatArray

Spans = tuple[FloatArray, FloatArray]  # starts and ends, sorted and apart


def union(starts: FloatArray, ends: FloatArray) -> Spans:
    """Return the spans that cover what `starts` to `ends`, shape (events,), cover together."""
    if not len(starts):
        return np.empty(0), np.empty(0)
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    new = np.concatenate(([True], starts[1:] > ends[:-1]))
    last = np.concatenate((np.flatnonzero(new)[1:] - 1, [len(starts) - 1]))
    return starts[new], ends[last]


def both(one: Spans, other: Spans) -> Spans:
    """Return the union of two sets of spans."""
    return union(np.concatenate((one[0], other[0])), np.concatenate((one[1], other[1])))


def covered(spans: Spans, start: float, end: float) -> float:
    """Return how much of the window from `start` to `end` the spans cover."""
    inside = np.minimum(spans[1], end) - np.maximum(spans[0], start)
    return float(np.maximum(inside, 0.0).sum())
