"""The statistics of one table, gathered chunk by chunk."""

import math

import numpy as np

from simulator.quantities import IntArray
from simulator.workload.keys.counting import (
    BatchCounter,
    LastSeen,
    TableChunk,
    WindowCounter,
    grown,
    owner_of,
)
from simulator.workload.keys.frequencies import Frequencies, fit_zipf
from simulator.workload.keys.statistics import OwnerSpread, TableStatistics, WindowStatistics

FINEST = 16  # the smallest window is this part of a batch (micro-batches)


def _window_sizes(batch: int) -> list[int]:
    parts = (2**k for k in range(FINEST.bit_length() - 1, 0, -1))
    return [batch // part for part in parts if batch % part == 0]


class TableCounter:
    """Counts one table's lookups; `batch` is in samples, `owners` hash-sharded owners are assumed."""

    def __init__(self, name: str, batch: int, owners: int) -> None:
        """Start with nothing counted."""
        self.name, self.batch, self.samples = name, batch, 0
        self._counts = np.empty(0, dtype=np.int64)
        self.distinct = self._missing = 0
        self._pooling_squares = 0.0
        self._seen = LastSeen()
        self._fine = [WindowCounter(size) for size in _window_sizes(batch)]
        self._coarse = [WindowCounter(batch)]
        self._batches = BatchCounter(owners)
        self._waiting = np.empty(0, dtype=np.int64)

    def add(self, chunk: TableChunk, end: int) -> None:
        """Count a chunk, which brings the log to `end` samples."""
        self._widen(end)
        previous = self._seen.previous(chunk)
        for counter in self._fine:
            counter.add(chunk.samples, previous, end)
        self._add_coarse(chunk, previous, end)
        self._add_volume(chunk, end)

    def _widen(self, end: int) -> None:
        """Double the largest window until it spans the log; all before lies in its first window."""
        while self._coarse[-1].size < end:
            self._coarse.append(WindowCounter(2 * self._coarse[-1].size, open_new=self.distinct))

    def _add_coarse(self, chunk: TableChunk, previous: IntArray, end: int) -> None:
        """Count windows of a batch and more; only the first of a key in one can be it in the next."""
        samples = chunk.samples
        for place, counter in enumerate(self._coarse):
            new = counter.add(samples, previous, end)
            samples, previous = samples[new], previous[new]
            if place == 0:
                self._add_batches(chunk.codes[new], samples, end)

    def _add_batches(self, codes: IntArray, samples: IntArray, end: int) -> None:
        start = self.samples // self.batch
        edges = np.arange(start + 1, end // self.batch + 1) * self.batch
        *complete, rest = np.split(codes, np.searchsorted(samples, edges))
        for part in complete:
            self._batches.add(np.concatenate([self._waiting, part]))
            self._waiting = self._waiting[:0]
        self._waiting = np.concatenate([self._waiting, rest])

    def _add_volume(self, chunk: TableChunk, end: int) -> None:
        seen = np.bincount(chunk.codes)
        self._counts = grown(self._counts, len(seen), 0)
        self.distinct += int(np.count_nonzero(self._counts[: len(seen)][seen > 0] == 0))
        self._counts[: len(seen)] += seen
        lengths = np.bincount(chunk.samples - self.samples, minlength=end - self.samples)
        self._pooling_squares += float((lengths.astype(np.float64) ** 2).sum())
        self._missing += chunk.missing
        self.samples = end

    def finish(self) -> TableStatistics:
        """Return what was counted; needs at least one lookup and one complete batch."""
        frequencies = Frequencies.of(self._counts)
        mean = frequencies.lookups / self.samples
        spread = math.sqrt(max(self._pooling_squares / self.samples - mean**2, 0.0))
        counters = [*self._fine, *self._coarse]
        windows = [_window(c, mean) for c in counters if c.open_index > 0]
        return TableStatistics(
            name=self.name,
            samples=self.samples,
            missing=self._missing,
            pooling_mean=mean,
            pooling_sd=spread,
            batch=self.batch,
            frequencies=frequencies,
            windows=tuple(windows),
            lag_overlaps=self._batches.lag_overlaps(),
            owners=self._owner_spread(frequencies.lookups),
            fit=fit_zipf(frequencies),
        )

    def _owner_spread(self, lookups: int) -> OwnerSpread:
        owners = self._batches.owners
        mean, sd, busiest = (self._batches.loads / self._batches.batches).tolist()
        owner = owner_of(np.arange(len(self._counts)), owners)
        raw = np.bincount(owner, weights=self._counts, minlength=owners)
        return OwnerSpread(owners, mean, sd, busiest, float(raw.max()) * owners / lookups)


def _window(counter: WindowCounter, pooling: float) -> WindowStatistics:
    windows, (new, squares, common) = counter.open_index, counter.sums.tolist()
    mean = new / windows
    return WindowStatistics(
        samples=counter.size,
        lookups=pooling * counter.size,
        windows=windows,
        distinct=mean,
        distinct_sd=math.sqrt(max(squares - windows * mean**2, 0.0) / max(windows - 1, 1)),
        overlap=common / (windows - 1) if windows > 1 else None,
    )
