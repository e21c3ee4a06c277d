"""Caches of embedding rows: hit rates in closed form, and exact miss curves of recorded keys."""

from simulator.workload.caches.batches import REPLACEMENTS, hottest_missed, lru_missed, replayed_misses
from simulator.workload.caches.closed_forms import (
    characteristic_time,
    lookahead_fetches,
    lru_hit_rate,
    static_hit_rate,
)
from simulator.workload.caches.curves import CacheCurves, cache_curves, curves_of
from simulator.workload.caches.reuse_distance import ReuseDistances

__all__ = [
    "REPLACEMENTS",
    "CacheCurves",
    "ReuseDistances",
    "cache_curves",
    "characteristic_time",
    "curves_of",
    "hottest_missed",
    "lookahead_fetches",
    "lru_hit_rate",
    "lru_missed",
    "replayed_misses",
    "static_hit_rate",
]
