"""Caching with lookahead: sets of rows against sums over keys and drawn batches, and the step of Bagpipe."""

from functools import cache

import numpy as np
import pytest

from simulator.costs.occupancy import occupancy
from simulator.pipeline import Stage
from simulator.policies.bagpipe import Bagpipe
from simulator.policies.het import Het
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder
from simulator.sharding import RowWise, TrainStep
from simulator.sharding.hot_cold import HotCold
from simulator.sharding.lookahead import Lookahead
from simulator.sharding.served import Rows
from simulator.sharding.tiers import Remote
from simulator.workload.dense import Mlp
from simulator.workload.job import Workload
from simulator.workload.keys import BoundedZipf
from simulator.workload.tables import EmbeddingTable

RANKS, BATCH, KEYS, EXPONENT = 4, 50, 2000, 0.9


def total(rows: Rows) -> float:
    return sum(rows.values())


@cache
def step(ranks: int = RANKS) -> TrainStep:
    table = EmbeddingTable("items", KEYS, 16, BoundedZipf(KEYS, EXPONENT), pooling=2.0)
    return TrainStep(Workload(Mlp(inputs=8, layers=(4, 1)), (table,), BATCH), RowWise(Remote(1)), ranks)


def chances() -> np.ndarray:
    weights = np.arange(1, KEYS + 1) ** -EXPONENT
    return np.asarray(weights / weights.sum())


LOOKUPS = RANKS * BATCH * 2


@pytest.mark.parametrize("depth", [0, 1, 2, 7, 40])
def test_sets_of_rows_are_sums_over_the_chances_of_keys(depth: int) -> None:
    p, rows = chances(), step().lookahead(depth)
    used = 1 - (1 - p) ** LOOKUPS
    once = LOOKUPS * p * (1 - p) ** (LOOKUPS - 1)
    unused = (1 - used) ** depth
    assert total(rows.distinct) == pytest.approx(used.sum(), rel=1e-3)
    assert total(rows.prefetched) == pytest.approx((used * unused).sum(), rel=1e-3)
    assert total(rows.sync_now) == pytest.approx((used**2).sum(), rel=1e-3)
    assert total(rows.no_sync) == pytest.approx((once * unused).sum(), rel=2e-3)
    fetched = (used * unused).sum() - (1 - 1 / RANKS) * (once * unused**2).sum()
    assert total(rows.fetched) == pytest.approx(fetched, rel=2e-3)


def drawn(batches: int) -> np.ndarray:
    """How often each batch looks up each key, shape (batches, keys)."""
    random = np.random.default_rng(3)
    keys = random.choice(KEYS, size=(batches, LOOKUPS), p=chances())
    return np.stack([np.bincount(batch, minlength=KEYS) for batch in keys])


@pytest.mark.parametrize("depth", [1, 5, 20])
def test_sets_of_rows_are_those_of_drawn_batches(depth: int) -> None:
    """The oracle's decisions on 400 drawn batches, as the authors' code takes them."""
    counts, rows = drawn(400), step().lookahead(depth)
    used = counts > 0
    middle = range(depth, 400 - depth)
    before = [used[b - depth : b].any(axis=0) for b in middle]
    after = [used[b + 1 : b + depth + 1].any(axis=0) for b in middle]
    here = [used[b] for b in middle]
    new = np.mean([(u & ~old).sum() for u, old in zip(here, before, strict=True)])
    single = np.mean([((counts[b] == 1) & ~soon).sum() for b, soon in zip(middle, after, strict=True)])
    now = np.mean([(used[b] & used[b + 1]).sum() for b in middle])
    assert total(rows.prefetched) == pytest.approx(new, rel=0.03)
    assert total(rows.no_sync) == pytest.approx(single, rel=0.03)
    assert total(rows.sync_now) == pytest.approx(now, rel=0.03)


@pytest.mark.parametrize("depth", [1, 5, 20])
def test_the_three_sets_make_up_a_batch_and_what_enters_leaves(depth: int) -> None:
    rows = step().lookahead(depth)
    parts = total(rows.sync_now) + total(rows.sync_later) + total(rows.no_sync)
    assert parts == pytest.approx(total(rows.distinct))
    assert RANKS * total(rows.written) == pytest.approx(total(rows.prefetched))


def test_a_cache_of_ones_own_keeps_what_it_uses_again() -> None:
    """Rows of depth + 1 batches are either hits when first used in them, or enter."""
    rows = step().lookahead(6, ranks=1)
    assert total(rows.kept) + 7 * total(rows.prefetched) == pytest.approx(total(rows.used))
    assert total(rows.distinct) == pytest.approx(total(step().served.batch_rows))


def test_het_holds_the_rows_between_two_meetings_and_as_many_gradients_that_nobody_else_has() -> None:
    """Rows of 16 values in fp32 with a moment per row (row-wise Adagrad), gradients without."""
    caches = Het(6).plan(step()).caches
    used = 0.0
    for key in chances():
        used += 1 - (1 - key) ** (7 * BATCH * 2)
    assert caches["rows kept on the device"] == pytest.approx(used * (64 + 4), rel=1e-3)
    assert caches["updates not yet pushed"] == pytest.approx(used * 64, rel=1e-3)


def test_hot_and_cold_rows_are_all_rows_of_a_batch() -> None:
    one = HotCold(step(1).served, 0.01)
    assert total(one.hot) + total(one.cold) == pytest.approx(total(step(1).served.batch_rows))
    assert total(HotCold(step().served, 1.0).cold) == pytest.approx(0.0, abs=1e-9)
    assert total(HotCold(step().served, 0.0).hot) == pytest.approx(0.0, abs=1e-9)


# ---------------------------------------------------------------- Criteo Kaggle, as Bagpipe trains on it


@cache
def criteo() -> Scenario:
    return load(shipped_folder() / "bagpipe/criteo_kaggle.yaml")


def ahead(depth: int) -> Lookahead:
    return criteo().step.lookahead(depth)


WORKING_SET = {
    1: 64.8e3,
    20: 33.2e3,
    40: 27.3e3,
    60: 24.1e3,
    80: 21.9e3,
    100: 20.3e3,
    200: 15.7e3,
    300: 13.4e3,
}


@pytest.mark.parametrize("depth", WORKING_SET)
def test_prefetched_rows_of_the_lookahead_sweep_are_met(depth: int) -> None:
    assert total(ahead(depth).prefetched) == pytest.approx(WORKING_SET[depth], rel=0.01)


def test_sets_of_a_batch_are_met() -> None:
    rows = ahead(200)
    assert total(rows.distinct) == pytest.approx(92_400, rel=0.01)
    assert total(rows.sync_now) == pytest.approx(27_500, rel=0.01)
    assert total(rows.no_sync) == pytest.approx(15_700, rel=0.01)
    assert total(rows.sync_later) == pytest.approx(49_100, rel=0.01)


def test_prefetch_traffic_falls_monotonically_with_the_lookahead() -> None:
    depths = (1, 2, 5, 10, 20, 40, 80, 100, 150, 200, 300, 500, 1000)
    for kind in ("prefetched", "fetched", "written"):
        moved = [total(getattr(ahead(depth), kind)) for depth in depths]
        assert moved == sorted(moved, reverse=True), kind


@pytest.mark.parametrize(("depth", "slots"), [(200, 4e6), (300, 7e6)])
def test_the_cache_fits_in_the_slots_that_the_authors_gave_it(depth: int, slots: float) -> None:
    assert total(ahead(depth).cached) < slots


def test_the_cache_is_part_of_peak_memory() -> None:
    memory = {depth: hbm_bytes(depth) for depth in (20, 200)}
    grown = ahead(200).cached_bytes - ahead(20).cached_bytes
    assert memory[200] - memory[20] == pytest.approx(grown, rel=0.1)


def hbm_bytes(depth: int) -> float:
    settings = [f"policy.lookahead={depth}", f"run.warm_up={depth + 2}", f"run.batches={3 * depth + 40}"]
    return run_scenario(criteo().with_overrides(settings)).memory.totals()["hbm"]


# ---------------------------------------------------------------- its step in closed form


def seconds(scenario: Scenario, stage: Stage) -> float:
    return float(np.max(scenario.costs.seconds(stage.work)))


@pytest.mark.parametrize(("lookahead", "delayed"), [(20, True), (40, True), (20, False)])
def test_bagpipes_critical_path_is_compute_dense_all_reduce_sync_now_and_residues(
    lookahead: int, delayed: bool
) -> None:
    """Without contention: F + B + dense all-reduce + O + sync now + apply, and nothing of the rest.

    The rest is hidden while it is shorter: sync later behind forward to optimizer of the next batch, a
    period's fetch and write-back behind a period's batches, the oracle behind one batch. What is longer
    shows: its residue is what the maximum below leaves over.
    """
    policy = Bagpipe(lookahead, delayed)
    settings = [f"policy.lookahead={lookahead}", f"policy.delayed={str(delayed).lower()}"]
    settings += ["run.contention=false", f"run.warm_up={lookahead + 2}", f"run.batches={4 * lookahead + 40}"]
    scenario = criteo().with_overrides(settings)
    time = {stage.name: seconds(scenario, stage) for stage in scenario.graph.pipeline.stages}
    passes = time["forward"] + time["backward.0"] + time["reduce.0"] + time["optimizer"]
    urgent = time["sync_now"] + time["apply"]
    upkeep = (time["fetch"] + time["write_back"]) / policy.period
    expected = max(passes + urgent, time["sync_later"] + urgent, upkeep, time["look_ahead"])
    report = run_scenario(scenario).report
    assert report.step_ms["mean"] == pytest.approx(1e3 * expected, rel=1e-6)
    assert report.step_ms["mean"] == pytest.approx(report.lower_bound_ms, rel=1e-6)


@pytest.mark.parametrize(
    ("slow", "stages"),
    [
        ("cluster.servers.bandwidth=4 Mb/s", ("fetch", "write_back")),
        ("cluster.servers.key_time=1 ms", ("look_ahead",)),
    ],
)
def test_what_is_too_slow_to_be_hidden_sets_the_step(slow: str, stages: tuple[str, ...]) -> None:
    settings = ["policy.lookahead=20", "run.contention=false", "run.warm_up=22", "run.batches=140", slow]
    scenario = criteo().with_overrides(settings)
    found = [one for one in scenario.graph.pipeline.stages if one.name in stages]
    expected = sum(seconds(scenario, one) / one.every for one in found)
    assert run_scenario(scenario).report.step_ms["mean"] == pytest.approx(1e3 * expected, rel=0.01)


def test_delaying_sync_is_worth_what_it_takes_off_the_critical_path() -> None:
    """More rows are added up at once without it; nothing else of the critical path changes."""
    runs = [[f"policy.delayed={word}", "run.contention=false"] for word in ("true", "false")]
    fast, slow = (criteo().with_overrides([*one, "policy.lookahead=20"]) for one in runs)
    syncs = [
        seconds(one, next(s for s in one.graph.pipeline.stages if s.name == "sync_now"))
        for one in (fast, slow)
    ]
    assert syncs[1] > syncs[0]
    steps = [float(run_scenario(one).bottleneck.period_ns) / 1e9 for one in (fast, slow)]
    assert steps[1] - steps[0] == pytest.approx(syncs[1] - syncs[0], rel=1e-3)


def test_calls_occupy_cores_and_the_busiest_server() -> None:
    scenario = criteo()
    fetch = next(stage for stage in scenario.graph.pipeline.stages if stage.name == "fetch")
    assert {"cores", "server", "remote", "host_to_device"} <= occupancy(fetch.work, scenario.costs).keys()
