"""Counting one table's keys in a single pass, in memory bounded by its distinct keys."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.quantities import IntArray

NEVER = -(1 << 62)
LONGEST_LAG = 8  # batches; two-batch policies need 1 or 2, caches a few more


@dataclass(frozen=True, eq=False)
class TableChunk:
    """The lookups of some consecutive samples in one table.

    `codes` numbers keys from 0 in order of first appearance; `samples` (not falling) is the
    sample of each lookup, counted from the start of the log; both have shape (lookups,).
    `missing` counts the empty cells.
    """

    codes: IntArray
    samples: IntArray
    missing: int = 0


def grown(values: IntArray, size: int, fill: int) -> IntArray:
    """Return `values` with room for `size` entries, new ones set to `fill`; doubles, so it is cheap."""
    if size <= len(values):
        return values
    room = np.full(max(size, 2 * len(values)) - len(values), fill, dtype=np.int64)
    return np.concatenate([values, room])


def owner_of(codes: IntArray, owners: int) -> IntArray:
    """Return a pseudo-random owner per key: the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    mixed = codes.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((mixed ^ (mixed >> np.uint64(31))) % np.uint64(owners), dtype=np.int64)


@dataclass
class LastSeen:
    """The sample in which each key was last looked up."""

    last: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def previous(self, chunk: TableChunk) -> IntArray:
        """Return for each lookup the sample of the one before it of the same key, or `NEVER`."""
        self.last = grown(self.last, int(chunk.codes.max(initial=-1)) + 1, NEVER)
        order = np.argsort(chunk.codes, kind="stable")
        codes, samples = chunk.codes[order], chunk.samples[order]
        first = np.diff(codes, prepend=-1) != 0
        before = np.where(first, self.last[codes], np.roll(samples, 1))
        self.last[codes] = samples  # of repeated codes the last one stays, as the sort is stable
        previous = np.empty_like(before)
        previous[order] = before
        return previous


@dataclass
class WindowCounter:
    """Distinct keys per window of `size` samples, and keys common to neighbouring windows."""

    size: int
    open_new: int = 0
    open_shared: int = 0
    open_index: int = 0
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))

    def add(self, samples: IntArray, previous: IntArray, end: int) -> NDArray[np.bool_]:
        """Count lookups up to sample `end`; return which are the first of their key in a window."""
        window, before = samples // self.size, previous // self.size
        new = window != before
        shared = window[new & (before == window - 1)]
        self._close(window[new], shared, end // self.size)
        return np.asarray(new)

    def _close(self, new: IntArray, shared: IntArray, index: int) -> None:
        length = index - self.open_index + 1
        fresh = np.bincount(new - self.open_index, minlength=length)
        common = np.bincount(shared - self.open_index, minlength=length)
        fresh[0] += self.open_new
        common[0] += self.open_shared
        closed = fresh[:-1].astype(np.float64)
        self.sums += closed.sum(), (closed**2).sum(), common[:-1].sum()
        self.open_new, self.open_shared, self.open_index = int(fresh[-1]), int(common[-1]), index


@dataclass
class BatchCounter:
    """What needs one batch at a time: overlap at several lags, and the load of hash-sharded owners."""

    owners: int
    batches: int = 0
    history: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    latest: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    common: IntArray = field(default_factory=lambda: np.zeros(LONGEST_LAG, dtype=np.int64))
    loads: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))

    def add(self, codes: IntArray) -> None:
        """Count one batch, given its distinct keys."""
        size = int(codes.max(initial=-1)) + 1
        self.history, self.latest = grown(self.history, size, 0), grown(self.latest, size, NEVER)
        age = np.minimum(self.batches - self.latest[codes], LONGEST_LAG + 1)
        # bit j of a key's history: it was in the batch j before this one
        history = (self.history[codes] << age) & ((2 << LONGEST_LAG) - 1)
        self.common += [int(np.count_nonzero(history >> lag & 1)) for lag in range(1, LONGEST_LAG + 1)]
        self.history[codes], self.latest[codes] = history | 1, self.batches
        load = np.bincount(owner_of(codes, self.owners), minlength=self.owners)
        self.loads += load.mean(), load.std(), load.max()
        self.batches += 1

    def lag_overlaps(self) -> tuple[float, ...]:
        """Return the mean keys common to batches 1, 2, ... apart, for the lags that occurred."""
        lags = range(1, min(LONGEST_LAG, self.batches - 1) + 1)
        return tuple(float(self.common[lag - 1]) / (self.batches - lag) for lag in lags)
