"""Clustering the batches that a log recorded, and what its micro-batches then ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from simulator.errors import InputError, Where
from simulator.quantities import IntArray
from simulator.workload.clustering.grouping import cluster
from simulator.workload.clustering.samples import SampleKeys
from simulator.workload.clustering.sharing import BATCHES, checked_batch
from simulator.workload.clustering.volume import distinct_per_part
from simulator.workload.keys import LogColumn, LogOptions, Recorded, read_key_log
from simulator.workload.keys.popularity import Popularity

HALVINGS = 60


@dataclass(frozen=True)
class RegroupedLog:
    """A table of a log whose batches are clustered, by the keys of all columns in use, before they are split.

    `popularity` answers for batches as they were recorded. The first batches of the log are clustered, and
    the table's micro-batches hold as many more distinct keys as those of its own column do there.
    """

    columns: tuple[LogColumn, ...]
    popularity: Recorded
    pooling: float
    batch: int

    def fresh(self, samples: float) -> float:
        """Return the share of lookups at which samples as recorded would hold as many distinct keys.

        Raises InputError when micro-batches do not divide the batch, or the log has no whole batch.
        """
        if samples >= self.batch:
            return 1.0
        parts, whole = round(self.batch / samples), self.pooling * self.batch
        assert self.popularity.log is not None
        grown = _growth(self.columns, self.batch, parts)[self.popularity.log.name]
        wanted = self.popularity.distinct(whole) * grown / parts
        return _lookups_of(self.popularity, wanted, whole) / (self.pooling * samples)


def _lookups_of(popularity: Popularity, distinct: float, most: float) -> float:
    """Return how many lookups, at most `most`, have `distinct` distinct keys."""
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if popularity.distinct(middle) < distinct else (low, middle)
    return high


@lru_cache(maxsize=16)
def _growth(columns: tuple[LogColumn, ...], batch: int, parts: int) -> Mapping[str, float]:
    """Return the distinct keys of all micro-batches over those of whole batches, by column."""
    names = [column.name for column in columns]
    split, whole = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for recorded in recorded_batches(columns, checked_batch(batch)):
        part_of = cluster(together(list(recorded.values())), parts)
        for name, keys in recorded.items():
            split[name] += int(distinct_per_part(keys, part_of).sum())
            whole[name] += keys.distinct
    return {name: split[name] / max(whole[name], 1) for name in names}


def together(columns: Sequence[SampleKeys]) -> SampleKeys:
    """Return the keys of several columns, each in a range of its own."""
    sizes = [int(column.keys.max(initial=-1)) + 1 for column in columns]
    first = np.cumsum([0, *sizes[:-1]])
    keys = np.concatenate([column.keys + start for column, start in zip(columns, first, strict=True)])
    return SampleKeys(keys, np.concatenate([column.samples for column in columns]), columns[0].count)


def recorded_batches(columns: Sequence[LogColumn], batch: int) -> list[dict[str, SampleKeys]]:
    """Return the keys of the log's first whole batches, by column. Raises InputError if it has none."""
    names, path = tuple(column.name for column in columns), columns[0].path
    found: dict[str, list[tuple[IntArray, IntArray]]] = {name: [] for name in names}
    ends = dict.fromkeys(names, 0)
    for chunk in read_key_log(path, LogOptions(names, columns[0].separator)).chunks():
        for name, table in chunk.tables.items():
            if ends[name] < BATCHES * batch:
                found[name].append((table.codes, table.samples))
            ends[name] = chunk.end
        if min(ends.values()) >= BATCHES * batch:
            break
    whole = min(BATCHES, min(ends.values()) // batch)
    if not whole:
        problem = f"the log has {min(ends.values())} samples, and clustering needs a batch of {batch}"
        raise InputError(problem, Where(str(path)))
    return [{name: _batch(parts, number, batch) for name, parts in found.items()} for number in range(whole)]


def _batch(parts: Sequence[tuple[IntArray, IntArray]], number: int, batch: int) -> SampleKeys:
    keys, samples = (np.concatenate(arrays).astype(np.int64) for arrays in zip(*parts, strict=True))
    inside = (samples >= number * batch) & (samples < (number + 1) * batch)
    return SampleKeys(keys[inside], samples[inside] - number * batch, batch)
