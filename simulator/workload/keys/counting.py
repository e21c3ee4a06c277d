"""Counting one table's keys in a single pass, in memory bounded by its distinct keys."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.quantities import IntArray
from simulator.workload.draws import mix64
from simulator.workload.keys.room import grown

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


def stable_order(codes: IntArray) -> IntArray:
    """Return the order that sorts `codes` and keeps equal ones as they stand.

    Code and place share one number, so that the sort is a plain one, several times faster than a
    stable one.
    """
    bits = max(len(codes) - 1, 1).bit_length()
    if int(codes.max(initial=0)).bit_length() + bits > 62:
        return np.argsort(codes, kind="stable")
    packed = (codes << bits) | np.arange(len(codes), dtype=np.int64)
    packed.sort()
    return packed & ((1 << bits) - 1)


def owner_of(codes: IntArray, owners: int) -> IntArray:
    """Return a pseudo-random owner per key, by its hash."""
    return np.asarray(mix64(codes.astype(np.uint64)) % np.uint64(owners), dtype=np.int64)


@dataclass
class LastSeen:
    """The sample in which each key was last looked up, plus 1; 0 for a new key."""

    last: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def previous(self, chunk: TableChunk) -> IntArray:
        """Return for each lookup the sample of the one before it of the same key, or `NEVER`."""
        self.last = grown(self.last, int(chunk.codes.max(initial=-1)) + 1)
        order = stable_order(chunk.codes)
        codes, samples = chunk.codes[order], chunk.samples[order]
        first = np.diff(codes, prepend=-1) != 0
        seen = self.last[codes]
        before = np.where(first, np.where(seen == 0, NEVER, seen - 1), np.roll(samples, 1))
        self.last[codes] = samples + 1  # of repeated codes the last one stays, as the order is stable
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
    history: NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, dtype=np.uint16))
    common: IntArray = field(default_factory=lambda: np.zeros(LONGEST_LAG, dtype=np.int64))
    loads: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))

    def add(self, codes: IntArray, ages: IntArray) -> None:
        """Count one batch, given its distinct keys and how many batches ago each occurred before."""
        self.history = grown(self.history, int(codes.max(initial=-1)) + 1)
        shift = np.minimum(ages, LONGEST_LAG + 1).astype(np.uint32)
        # bit j of a key's history: it was in the batch j before this one
        history = (self.history[codes].astype(np.uint32) << shift) & np.uint32((2 << LONGEST_LAG) - 1)
        self.common += [int(np.count_nonzero(history >> lag & 1)) for lag in range(1, LONGEST_LAG + 1)]
        self.history[codes] = (history | 1).astype(np.uint16)
        load = np.bincount(owner_of(codes, self.owners), minlength=self.owners)
        self.loads += load.mean(), load.std(), load.max()
        self.batches += 1

    def lag_overlaps(self) -> tuple[float, ...]:
        """Return the mean keys common to batches 1, 2, ... apart, for the lags that occurred."""
        lags = range(1, min(LONGEST_LAG, self.batches - 1) + 1)
        return tuple(float(self.common[lag - 1]) / (self.batches - lag) for lag in lags)
