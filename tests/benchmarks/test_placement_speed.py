"""How long placement and clustering take, and how near to the best placement comes."""

import time
from dataclasses import replace

import numpy as np
import pytest

from simulator.sharding.placement import Chips, CutRules, Demand, greedy, optimized
from simulator.workload.clustering import SampleKeys, SharedHistories, cluster, clustering_cpu_seconds
from simulator.workload.keys.zipf import BoundedZipf

TABLES, DEVICES, SECONDS = 400, 32, 5.0


def model(seed: int, spread: float) -> list[Demand]:
    """Tables with log-normal loads and sizes: the largest asks for up to a fifth of everything."""
    draws = np.random.default_rng(seed)
    loads, sizes = draws.lognormal(0, spread, TABLES), draws.lognormal(0, 1.5, TABLES) * 1e9
    return [
        Demand(f"t{n}", 10**6, 256, float(loads[n]), float(sizes[n]), key_share=0.03, hot_share=0.001)
        for n in range(TABLES)
    ]


@pytest.mark.parametrize("seed, spread, room", [(0, 1.2, 1.3), (0, 2.0, 1.1), (1, 1.2, 1.3), (2, 1.5, 1.05)])
def test_400_tables_on_32_devices_are_placed_in_five_seconds(seed: int, spread: float, room: float) -> None:
    pytest.importorskip("ortools", reason="the extra [planner] is not installed")
    demands = model(seed, spread)
    chips = Chips(DEVICES, memory=room * sum(demand.memory for demand in demands) / DEVICES)
    start = time.perf_counter()
    first = greedy(demands, chips, CutRules())
    between = time.perf_counter()
    best = optimized(demands, chips)
    took = time.perf_counter() - between
    print(
        f"\ngreedy {between - start:.2f} s, gap {first.gap:.4%}, {len(first.shards)} pieces; {best.method} "
        f"{took:.2f} s, gap {best.gap:.4%}{' (proven)' if best.proven else ''}, {len(best.shards)} pieces"
    )
    assert took <= SECONDS
    assert best.busiest <= first.busiest
    assert best.gap <= 0.002
    assert (best.memory <= chips.memory * (1 + 1e-8)).all()


@pytest.mark.parametrize("batch, lookups, parts", [(512, 2048, 32), (512, 256, 8), (4096, 26, 32)])
def test_clustering_takes_the_time_that_is_charged_for_it(batch: int, lookups: int, parts: int) -> None:
    samples = SharedHistories(BoundedZipf(2e9, 0.75), group=1.109).sample(batch, lookups, seed=3)
    took = min(seconds(samples, parts) for _ in range(3))
    charged = clustering_cpu_seconds(batch, lookups, parts)
    print(f"\n{batch} x {lookups} into {parts}: {took * 1e3:.1f} ms, charged {charged * 1e3:.1f} ms")
    assert charged / 3 < took < charged * 3


def seconds(samples: SampleKeys, parts: int) -> float:
    fresh = replace(samples)  # without what it has worked out already
    start = time.process_time()
    cluster(fresh, parts)
    return time.process_time() - start
