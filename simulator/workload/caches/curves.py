"""Miss curves of recorded keys: LRU, LFU and the best possible cache, by size."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator.errors import InputError
from simulator.quantities import IntArray
from simulator.workload.caches.replay import belady_hits, lfu_distances
from simulator.workload.caches.reuse_distance import FIRST, ReuseDistances
from simulator.workload.keys.key_log import LogOptions, read_key_log
from simulator.workload.keys.reading import Progress, unwatched

DEFAULT_LOOKUPS = 200_000
SIZES_PER_DECADE = 2


@dataclass(frozen=True)
class CacheCurves:
    """Misses per lookup of a table's first `lookups` lookups, for caches of `slots` rows.

    LRU loads each row that it misses, LFU keeps the rows looked up most so far, and `belady` is the
    fewest misses that any cache can have. First lookups miss in each, so the curves end at distinct
    keys over lookups.
    """

    table: str
    lookups: int
    distinct: int
    slots: tuple[int, ...]
    lru: tuple[float, ...]
    lfu: tuple[float, ...]
    belady: tuple[float, ...]

    def rows(self) -> list[dict[str, str | int | float]]:
        """Return one flat record per size."""
        sizes = zip(self.slots, self.lru, self.lfu, self.belady, strict=True)
        return [
            {"table": self.table, "slots": c, "lru_misses": a, "lfu_misses": f, "belady_misses": b}
            for c, a, f, b in sizes
        ]


def curves_of(table: str, codes: IntArray, slots: tuple[int, ...] | None = None) -> CacheCurves:
    """Return the curves of the lookups `codes`, in time order; exact.

    `slots` default to two sizes per factor ten, up to all keys. Raises InputError when there are no
    lookups or a size is below 1.
    """
    if not len(codes):
        raise InputError(f'table "{table}" has no lookups to replay')
    distinct = len(np.unique(codes))
    slots = _default_slots(distinct) if slots is None else slots
    if min(slots) < 1:
        raise InputError(f"a cache needs at least one slot, not {min(slots)}")
    best = tuple(1.0 - hits / len(codes) for hits in belady_hits(codes, slots))
    lru, lfu = ReuseDistances().add(codes), lfu_distances(codes)
    return CacheCurves(table, len(codes), distinct, slots, _misses(lru, slots), _misses(lfu, slots), best)


def _misses(distances: IntArray, slots: tuple[int, ...]) -> tuple[float, ...]:
    again = np.sort(distances[distances != FIRST])
    hits = np.searchsorted(again, slots, side="left")
    return tuple((1.0 - hits / len(distances)).tolist())


def _default_slots(distinct: int) -> tuple[int, ...]:
    steps = max(2, round(SIZES_PER_DECADE * np.log10(max(distinct, 2))) + 1)
    return tuple(np.unique(np.rint(np.geomspace(1, distinct, steps)).astype(int)).tolist())


def cache_curves(
    path: str | Path,
    options: LogOptions | None = None,
    lookups: int = DEFAULT_LOOKUPS,
    slots: tuple[int, ...] | None = None,
    progress: Progress = unwatched,
) -> tuple[CacheCurves, ...]:
    """Return the curves of each table of a key log, over its first `lookups` lookups.

    LFU and Belady's cache are replayed lookup by lookup, about a million per second and size; the
    limit keeps that short. Raises InputError as `read_key_log` does, and when a table has no keys.
    """
    log = read_key_log(path, options)
    kept: dict[str, list[IntArray]] = {table: [] for table in log.tables}
    missing = dict.fromkeys(log.tables, lookups)
    for chunk in log.chunks(progress):
        for name, table in chunk.tables.items():
            kept[name].append(table.codes[: missing[name]])
            missing[name] -= len(kept[name][-1])
        if not any(missing.values()):
            break
    none = np.empty(0, dtype=np.int64)
    return tuple(curves_of(name, np.concatenate([*parts, none]), slots) for name, parts in kept.items())
