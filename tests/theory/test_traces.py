"""Synthetic traces: exact laws, streams that depend on nothing but their key, and what effects do."""

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from simulator.errors import InfeasibleError, InputError
from simulator.workload.keys import (
    BoundedZipf,
    Layered,
    Recorded,
    Uniform,
    ZipfMandelbrot,
    read_key_log,
    summarize,
)
from simulator.workload.traces import (
    BatchSize,
    Bursts,
    Drift,
    PowerLawSampler,
    Sessions,
    SyntheticTable,
    SyntheticTrace,
    TablePopulation,
    compare_ranks,
    fit_population,
    fit_skew,
    sampled_shares,
    sampler_of,
    spot_check,
    stream,
    write_log,
)
from simulator.workload.traces.sampling import scattered

LAWS = [
    (50, 0.9, 0.0),
    (50, 1.2, -0.9),
    (40, 0.3, -0.98),
    (1000, 0.0, 0.0),
    (200, 1.0, 5.0),
    (30, 3.0, 100.0),
]


def chi_square_odds(ranks: NDArray[np.int64], rows: int, exponent: float, shift: float) -> float:
    from scipy.stats import chi2

    weights = (np.arange(1, rows + 1) + shift) ** -exponent
    expected = len(ranks) * weights / weights.sum()
    counted = np.bincount(ranks, minlength=rows + 1)[1:]
    return float(chi2.sf(((counted - expected) ** 2 / expected).sum(), rows - 1))


@pytest.mark.parametrize("law", LAWS)
def test_drawn_ranks_follow_the_law_exactly(law: tuple[int, float, float]) -> None:
    ranks = PowerLawSampler(*law).draw(stream(1, "exact", 0, 0), 1_000_000)
    assert chi_square_odds(ranks, *law) > 1e-4


@pytest.mark.parametrize("law", LAWS)
def test_ranks_at_even_quantiles_follow_the_law_too(law: tuple[int, float, float]) -> None:
    ranks = PowerLawSampler(*law).at(np.random.default_rng(2).random(1_000_000))
    assert chi_square_odds(ranks, *law) > 1e-4


def test_quantiles_of_a_large_table_meet_its_cumulative_shares() -> None:
    zipf = BoundedZipf(1e9, 0.9)
    for fraction in (1e-9, 1e-6, 1e-3, 0.1, 0.9):
        rank = int(sampler_of(zipf).at(np.array([zipf.top_share(fraction)]))[0])
        assert rank == pytest.approx(fraction * 1e9, rel=2e-3, abs=1)


def test_both_layers_of_a_layered_law_are_drawn() -> None:
    law = Layered(0.7, BoundedZipf(3, 1.0), BoundedZipf(1000, 0.5))
    for ranks in (
        sampler_of(law).draw(stream(1, "layers", 0, 0), 400_000),
        sampler_of(law).at(np.random.default_rng(3).random(400_000)),
    ):
        assert np.mean(ranks <= 3) == pytest.approx(0.7, abs=0.004)
        assert np.mean(ranks == 1) == pytest.approx(0.7 * 6 / 11, abs=0.004)
        assert ranks.max() <= 1003


@pytest.mark.parametrize("rows", [1, 2, 7, 99_991, 100_000, 1 << 17])
def test_scattering_ranks_over_rows_is_one_to_one(rows: int) -> None:
    assert np.array_equal(np.sort(scattered(np.arange(1, rows + 1), rows)), np.arange(rows))


def test_scattering_stays_inside_the_largest_tables() -> None:
    rows = 1 << 40
    places = scattered(np.array([1, 2, 1 << 30, rows]), rows)
    assert places[0] == 0 and places.min() >= 0 and places.max() < rows
    with pytest.raises(InputError, match="at most"):
        scattered(np.array([1]), rows + 1)


def test_a_stream_depends_on_its_key_and_on_nothing_else() -> None:
    again = [stream(7, "a", 3, 5).random() for _ in range(2)]
    others = [
        stream(*key).random() for key in ((8, "a", 3, 5), (7, "b", 3, 5), (7, "a", 4, 5), (7, "a", 3, 6))
    ]
    assert again[0] == again[1]
    assert len({again[0], *others}) == 5


# --- traces ---

ITEMS = SyntheticTable("items", BoundedZipf(100_000, 0.9), pooling=4)
USERS = SyntheticTable("users", BoundedZipf(1_000_000, 0.6))
BATCH = 2048


def keys_of(trace: SyntheticTrace, batch: int, rank: int = 0, table: str = "items") -> NDArray[np.int64]:
    return np.unique(trace.keys(table, rank, batch))


def overlap_at(trace: SyntheticTrace, lag: int, pairs: int = 20) -> float:
    batches = [keys_of(trace, batch) for batch in range(pairs + lag)]
    return float(np.mean([len(np.intersect1d(batches[b], batches[b + lag])) for b in range(pairs)]))


def test_a_batch_is_the_same_whenever_and_after_whatever_it_is_drawn() -> None:
    trace = SyntheticTrace((ITEMS, USERS), BATCH, correlation=0.5, sessions=Sessions(0.3, 3))
    first = trace.keys("items", 2, 9)
    trace.keys("users", 0, 0)
    same = SyntheticTrace((USERS, ITEMS), BATCH, correlation=0.5, sessions=Sessions(0.3, 3))
    assert first.shape == (BATCH, 4)
    assert np.array_equal(same.keys("items", 2, 9), first)
    assert not np.array_equal(trace.keys("items", 3, 9), first)
    assert not np.array_equal(SyntheticTrace((ITEMS,), BATCH, seed=1).keys("items", 2, 9), first)


def test_a_plain_trace_meets_the_closed_forms() -> None:
    trace = SyntheticTrace((ITEMS,), BATCH)
    checks = spot_check(ITEMS.popularity, 4 * BATCH, range(16), lambda rank, b: trace.keys("items", rank, b))
    assert [check.quantity for check in checks] == ["distinct", "overlap", "union"]
    assert max(check.errors for check in checks) <= 4


def test_sessions_keep_popularity_and_raise_the_overlap_within_their_window() -> None:
    plain = SyntheticTrace((ITEMS,), BATCH)
    sessions = SyntheticTrace((ITEMS,), BATCH, sessions=Sessions(0.5, window=3))
    hottest = [np.mean([np.mean(t.keys("items", 0, b) == 0) for b in range(60)]) for t in (plain, sessions)]
    assert hottest[1] == pytest.approx(hottest[0], rel=0.05)
    independent = ITEMS.popularity.overlap(4 * BATCH)
    assert overlap_at(sessions, 1) > 1.1 * independent
    assert 0.92 * independent < overlap_at(sessions, 8) < 1.01 * independent


@pytest.mark.parametrize("lag", [1, 5, 10, 20])
def test_drift_takes_the_overlap_away_in_proportion_to_the_lag(lag: int) -> None:
    drift = Drift(period=20)
    trace = SyntheticTrace((SyntheticTable("items", ITEMS.popularity, 4, drift),), BATCH)
    independent, chance = ITEMS.popularity.overlap(4 * BATCH), Uniform(100_000).overlap(4 * BATCH)
    expected = drift.kept(lag) * independent
    assert overlap_at(trace, lag) == pytest.approx(expected, rel=0.1, abs=0.4 * chance)


def test_drift_leaves_the_size_of_a_batch_as_it_is() -> None:
    trace = SyntheticTrace((SyntheticTable("items", ITEMS.popularity, 4, Drift(10)),), BATCH)
    sizes = [len(keys_of(trace, batch)) for batch in range(30)]
    ranks = np.arange(1, 100_001)
    assert all(len(np.unique(Drift(10).moved(ranks, batch, 100_000))) == 100_000 for batch in (0, 7, 33))
    assert np.mean(sizes) == pytest.approx(ITEMS.popularity.distinct(4 * BATCH), rel=0.02)


def test_a_burst_takes_its_share_on_all_ranks_as_long_as_it_lasts() -> None:
    bursts = Bursts(rate=0.05, length=4, share=0.25)
    trace = SyntheticTrace((SyntheticTable("items", Uniform(1_000_000), 1, bursts=bursts),), BATCH)
    shares = []
    for batch in range(200):
        active = bursts.rows(0, "items", 1_000_000, batch)
        if len(active) == 1:
            shares += [np.mean(trace.keys("items", rank, batch) == active[0]) for rank in (0, 7)]
    assert len(shares) > 20  # about 0.2 bursts are under way, over 200 batches
    assert np.mean(shares) == pytest.approx(0.25, abs=0.01)


def test_correlation_is_the_rank_correlation_of_tables_and_keeps_their_popularity() -> None:
    from scipy.stats import spearmanr

    flat = tuple(SyntheticTable(name, Uniform(1 << 20)) for name in "ab")
    trace = SyntheticTrace(flat, 200_000, correlation=0.4)
    first, second = (trace.keys(name, 0, 0).ravel() for name in "ab")
    rank_of = np.empty(1 << 20, dtype=np.int64)
    rank_of[scattered(np.arange(1, (1 << 20) + 1), 1 << 20)] = np.arange(1 << 20)
    assert spearmanr(rank_of[first], rank_of[second]).statistic == pytest.approx(0.4, abs=0.01)
    tied = SyntheticTrace((ITEMS, USERS), BATCH, correlation=0.8)
    spot_check(ITEMS.popularity, 4 * BATCH, range(8), lambda rank, b: tied.keys("items", rank, b))


def test_a_spot_check_fails_when_the_keys_follow_another_law() -> None:
    sampler = sampler_of(BoundedZipf(1e6, 0.92))
    draw = lambda rank, batch: sampler.draw(stream(1, "other", rank, batch), 50_000)  # noqa: E731
    with pytest.raises(InfeasibleError, match="standard errors apart"):
        spot_check(BoundedZipf(1e6, 0.9), 50_000, source=draw)


def test_a_spot_check_finds_the_locality_that_independence_lacks() -> None:
    trace = SyntheticTrace((ITEMS,), BATCH, sessions=Sessions(0.3))
    with pytest.raises(InfeasibleError, match="overlap"):
        spot_check(ITEMS.popularity, 4 * BATCH, range(4), lambda rank, b: trace.keys("items", rank, b))


def test_spot_checks_seldom_pass_one_standard_error_and_hardly_ever_four() -> None:
    law = BoundedZipf(1e6, 0.9)
    sampler = sampler_of(law)
    errors = []
    for trial in range(40):
        draw = lambda r, b, t=trial: sampler.draw(stream(t, "trial", r, b), 20_000)  # noqa: E731
        errors += [check.errors for check in compare_ranks(law, 20_000, (0, 1, 2, 3), draw)]
    assert max(errors) < 4.5
    assert 0.5 < np.mean(np.square(errors)) < 2


def test_impossible_traces_are_refused() -> None:
    makers = [
        lambda: SyntheticTrace((), 4),
        lambda: SyntheticTrace((ITEMS,), 0),
        lambda: SyntheticTrace((ITEMS,), 4, correlation=1.5),
        lambda: SyntheticTable("t", Uniform(5), pooling=0),
        lambda: Sessions(-0.1),
        lambda: Sessions(0.5, 0),
        lambda: Drift(0),
        lambda: Bursts(0.1, 0, 0.1),
        lambda: Bursts(2.0, 1, 0.1),
        lambda: SyntheticTrace((ITEMS,), 4).keys("item", 0, 0),
        lambda: compare_ranks(Uniform(5), 3, (), lambda rank, batch: np.arange(3)),
        lambda: fit_skew(5, 6, {0.1: 0.5}),
        lambda: fit_skew(5, 3, {}),
    ]
    for maker in makers:
        with pytest.raises(InputError):
            maker()


# --- fitting ---


def test_a_population_is_found_again_in_its_own_histogram() -> None:
    made = TablePopulation(rows_per_key=30_000, spread=1.5, exponent=0.9, coupling=0.3)
    size, larger = BatchSize(500, 40_000, 2e8), BatchSize(500, 400_000, 2e9)
    histogram = made.reuse(size)
    found = fit_population(histogram, 500, 40_000)
    assert found.exponent == pytest.approx(0.9, abs=0.02)
    assert max(found.reuse(size).distance(histogram)) < 0.005
    # and it foretells ten times the lookups
    assert max(found.reuse(larger).distance(made.reuse(larger))) < 0.02
    with pytest.raises(InputError, match="at least one table"):
        fit_population(histogram, 0, 40_000)


def test_the_expected_reuse_of_a_population_is_that_of_sampled_tables() -> None:
    population = TablePopulation(rows_per_key=2_000, spread=0.8, exponent=1.0, coupling=0.5)
    size = BatchSize(tables=64, samples=3_125, lookups=2e6)
    counts = []
    for place, (law, lookups) in enumerate(population.tables(size)):
        ranks = sampler_of(law).draw(stream(4, "population", place, 0), round(lookups))
        counts.append(np.unique(ranks, return_counts=True)[1])
    seen = np.concatenate(counts)
    expected = population.reuse(size)
    assert expected.keys == pytest.approx(len(seen), rel=0.005)
    for place, edge in enumerate(expected.edges):
        assert expected.key_shares[place] == pytest.approx(np.mean(seen <= edge), abs=0.005)
        assert expected.lookup_shares[place] == pytest.approx(seen[seen <= edge].sum() / seen.sum(), abs=0.01)


def test_lists_twice_as_long_ask_for_twice_as_many_rows_in_as_many_samples() -> None:
    population = TablePopulation(rows_per_key=2_000, spread=0.8, exponent=1.0, coupling=0.5)
    short, long = (population.reuse(BatchSize(64, 3_125, lookups)) for lookups in (2e6, 4e6))
    assert long.keys == pytest.approx(2 * short.keys, rel=0.05)
    assert long.distance(short)[0] < 0.02


@pytest.mark.parametrize("law", [BoundedZipf(300, 1.1), ZipfMandelbrot(5000, 1.3, 10.0)])
def test_a_skew_is_found_again_in_samples_of_the_fitted_law(law: BoundedZipf | ZipfMandelbrot) -> None:
    distinct, _ = sampled_shares(law, 2000, [1])
    keys = round(distinct)
    hot = [math.ceil(keys * fraction) for fraction in (0.01, 0.1, 0.5)]
    _, shares = sampled_shares(law, 2000, hot)
    fit = fit_skew(2000, keys, dict(zip((0.01, 0.1, 0.5), shares.tolist(), strict=True)))
    again, found = sampled_shares(fit.law, 2000, hot)
    assert again == pytest.approx(distinct, rel=0.06)
    assert np.max(np.abs(found - shares)[:2]) < 0.02


# --- traces as logs ---


def test_a_trace_written_as_a_log_is_read_back_key_by_key(tmp_path: Path) -> None:
    tables = SyntheticTable("a", BoundedZipf(500, 1.0)), SyntheticTable("b", BoundedZipf(90, 0.8), pooling=3)
    trace = SyntheticTrace(tables, batch=64, seed=4, sessions=Sessions(0.4))
    log = read_key_log(write_log(trace, tmp_path / "log.parquet", batches=3, ranks=2))
    codes: dict[str, list[NDArray[np.int64]]] = {"a": [], "b": []}
    for chunk in log.chunks():
        for name, parts in codes.items():
            parts.append(chunk.tables[name].codes)
    for name in codes:
        drawn = [trace.keys(name, rank, batch).ravel() for batch in range(3) for rank in range(2)]
        order = {key: code for code, key in enumerate(dict.fromkeys(np.concatenate(drawn).tolist()))}
        assert np.concatenate(codes[name]).tolist() == [order[key] for key in np.concatenate(drawn).tolist()]
    assert summarize(tmp_path / "log.parquet", 128).samples == 3 * 2 * 64


def test_sessions_drift_and_bursts_of_a_log_change_what_recorded_keys_answer(tmp_path: Path) -> None:
    law = BoundedZipf(5_000, 0.9)

    def recorded(name: str, table: SyntheticTable, sessions: Sessions | None = None) -> Recorded:
        trace = SyntheticTrace((table,), batch=256, seed=1, sessions=sessions)
        (seen,) = summarize(write_log(trace, tmp_path / f"{name}.parquet", batches=60), 256)
        return Recorded(seen)

    calm = recorded("calm", SyntheticTable("t", law))
    back = recorded("sessions", SyntheticTable("t", law), Sessions(0.4))
    drift = recorded("drift", SyntheticTable("t", law, drift=Drift(30)))
    burst = recorded("bursts", SyntheticTable("t", law, bursts=Bursts(0.5, 4, 0.1)))
    assert back.overlap(256) > 1.3 * calm.overlap(256)
    assert drift.union(256, 60) > 1.1 * calm.union(256, 60)
    assert burst.distinct(256) < 0.95 * calm.distinct(256)


def test_a_log_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    trace = SyntheticTrace((SyntheticTable("t", BoundedZipf(9, 1.0)),), batch=4)
    with pytest.raises(InputError, match="cannot write"):
        write_log(trace, tmp_path / "nowhere" / "log.parquet", 1)
    with pytest.raises(InputError, match="at least one batch"):
        write_log(trace, tmp_path / "log.parquet", 0)
