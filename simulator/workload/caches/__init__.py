"""Caches of embedding rows: hit rates in closed form, and exact miss curves of recorded keys."""

from simulator.workload.caches.closed_forms import (
    characteristic_time,
    lookahead_fetches,
    lru_hit_rate,
    static_hit_rate,
)
from simulator.workload.caches.curves import CacheCurves, cache_curves, curves_of
from simulator.workload.caches.reuse_distance import ReuseDistances

__all__ = [
    "CacheCurves",
    "ReuseDistances",
    "cache_curves",
    "characteristic_time",
    "curves_of",
    "lookahead_fetches",
    "lru_hit_rate",
    "static_hit_rate",
]
