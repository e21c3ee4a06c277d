"""The statistics of one table, gathered chunk by chunk."""

import math

import numpy as np

from simulator.quantities import FloatArray, IntArray
from simulator.workload.keys.counting import BatchCounter, LastSeen, TableChunk, WindowCounter, owner_of
from simulator.workload.keys.drift import DriftCounter
from simulator.workload.keys.frequencies import Frequencies, fit_mandelbrot, fit_zipf
from simulator.workload.keys.room import grown
from simulator.workload.keys.statistics import OwnerSpread, RangeSpread, TableStatistics, WindowStatistics

FINEST = 16  # the smallest window is this part of a batch (micro-batches)


def _window_sizes(batch: int) -> list[int]:
    parts = (2**k for k in range(FINEST.bit_length() - 1, 0, -1))
    return [batch // part for part in parts if batch % part == 0]


class TableCounter:
    """Counts one table's lookups; `batch` is in samples, `owners` hash-sharded owners are assumed."""

    def __init__(self, name: str, batch: int, owners: int) -> None:
        """Start with nothing counted."""
        self.name, self.batch, self.samples = name, batch, 0
        self._counts = np.empty(0, dtype=np.uint32)
        self.distinct = self._missing = 0
        self._pooling_squares = 0.0
        self._seen = LastSeen()
        self._fine = [WindowCounter(size) for size in _window_sizes(batch)]
        self._coarse = [WindowCounter(batch)]
        self._batches = BatchCounter(owners)
        self._waiting = np.empty((2, 0), dtype=np.int64)  # distinct keys of the open batch, their ages
        self._drift = DriftCounter(batch)

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
                self._add_batches(chunk.codes[new], samples, previous, end)

    def _add_batches(self, codes: IntArray, samples: IntArray, previous: IntArray, end: int) -> None:
        start = self.samples // self.batch
        edges = np.arange(start + 1, end // self.batch + 1) * self.batch
        keys = np.stack([codes, samples // self.batch - previous // self.batch])
        *complete, rest = np.split(keys, np.searchsorted(samples, edges), axis=1)
        for part in complete:
            self._batches.add(*np.concatenate([self._waiting, part], axis=1))
            self._waiting = self._waiting[:, :0]
        self._waiting = np.concatenate([self._waiting, rest], axis=1)

    def _add_volume(self, chunk: TableChunk, end: int) -> None:
        self._count(chunk, end)
        lengths = np.bincount(chunk.samples - self.samples, minlength=end - self.samples)
        self._pooling_squares += float((lengths.astype(np.float64) ** 2).sum())
        self._missing += chunk.missing
        self.samples = end

    def _count(self, chunk: TableChunk, end: int) -> None:
        """Count lookups per key, stopping at the marks of the drift."""
        codes, samples = chunk.codes, chunk.samples
        while end >= self._drift.mark:
            here = int(np.searchsorted(samples, self._drift.mark))
            self._count_codes(codes[:here])
            self._drift.reach(self._counts[: self.distinct])
            codes, samples = codes[here:], samples[here:]
        self._count_codes(codes)

    def _count_codes(self, codes: IntArray) -> None:
        self.distinct = max(self.distinct, int(codes.max(initial=-1)) + 1)
        self._counts = grown(self._counts, self.distinct)
        np.add.at(self._counts, codes, np.uint32(1))

    def finish(self, places: FloatArray | None = None) -> TableStatistics:
        """Return what was counted; needs at least one lookup and one complete batch.

        `places` orders the keys between 0 and 1 for range sharding, by code (None: as they appeared).
        """
        frequencies = Frequencies.of(self._counts[: self.distinct])
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
            mandelbrot=fit_mandelbrot(frequencies),
            ranges=self._range_spread(places),
            drift=self._drift.drift(),
        )

    def _owner_spread(self, lookups: int) -> OwnerSpread:
        owners = self._batches.owners
        mean, sd, busiest = (self._batches.loads / self._batches.batches).tolist()
        owner = owner_of(np.arange(self.distinct), owners)
        raw = np.bincount(owner, weights=self._counts[: self.distinct], minlength=owners)
        return OwnerSpread(owners, mean, sd, busiest, float(raw.max()) * owners / lookups)

    def _range_spread(self, places: FloatArray | None) -> RangeSpread:
        """Return the loads of owners of equal ranges of rows."""
        owners, counts = self._batches.owners, self._counts[: self.distinct].astype(np.float64)
        if places is None:
            places = np.arange(self.distinct) / self.distinct
        owner = np.minimum((places * owners).astype(np.int64), owners - 1)
        present = -np.expm1(-counts * (self.batch / self.samples))  # Poisson lookups per batch
        raw, keys = (np.bincount(owner, weights=w, minlength=owners) for w in (counts, present))
        return RangeSpread(owners, float(raw.max() / raw.mean()), float(keys.max() / keys.mean()))


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
