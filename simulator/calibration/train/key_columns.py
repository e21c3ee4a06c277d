"""Keys of a recorded log as whole numbers, one column per table."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.errors import InputError, Where
from simulator.quantities import FloatArray, IntArray
from simulator.workload.keys.popularity import Independent, KeyClasses, Popularity

MOST_KEYS = 20_000_000


def key_columns(path: str, tables: int) -> list[IntArray]:
    """Return the keys of the first `tables` key columns of a log, numbered in order of appearance.

    Raises InputError when the log has fewer columns, or more keys than are held in memory here.
    """
    from simulator.workload.keys.key_log import read_key_log

    log = read_key_log(path)
    if len(log.tables) < tables:
        raise InputError(
            f"has {len(log.tables)} key columns; a run with {tables} tables needs {tables}", Where(path)
        )
    names = log.tables[:tables]
    found: dict[str, list[IntArray]] = {name: [] for name in names}
    total = 0
    for chunk in log.chunks():
        for name in names:
            if name in chunk.tables:
                found[name].append(np.asarray(chunk.tables[name].codes, dtype=np.int64))
                total += len(found[name][-1])
        if total > MOST_KEYS:
            raise InputError(
                f"holds more than {MOST_KEYS:,} keys in {tables} columns: take a part", Where(path)
            )
    return [np.concatenate(parts) if parts else np.empty(0, dtype=np.int64) for parts in found.values()]


def popularity_of_log(path: str, tables: int, rows: int) -> list[Popularity]:
    """Return how often the keys of each column occur, taken modulo `rows` as a run takes them."""
    found: list[Popularity] = []
    for column in key_columns(path, tables):
        counts = np.bincount(column % rows)
        times, keys = np.unique(counts[counts > 0], return_counts=True)
        found.append(Counted(times.astype(np.float64), keys.astype(np.float64)))
    return found


@dataclass(frozen=True, eq=False)
class Counted(Independent):
    """Keys drawn as often as they were counted: `keys` keys occurred `times` times each."""

    times: FloatArray
    keys: FloatArray

    @cached_property
    def classes(self) -> KeyClasses:
        """One class per number of times."""
        return KeyClasses(self.times / float(self.times @ self.keys), self.keys)
