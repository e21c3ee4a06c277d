"""The closed forms for Zipf keys, against exact sums, exact variances and sampling."""

import itertools
import math
import time
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from simulator.errors import InputError
from simulator.workload.keys import BoundedZipf, Independent, Layered, Uniform, ZipfMandelbrot, batch_keys
from simulator.workload.traces import sampler_of, stream

pytestmark = pytest.mark.slow

EXPONENTS = [0.0, 0.5, 0.87, 1.0, 1.05, 1.2, 2.0]
MILLION = 1_000_000


def exact_probabilities(rows: int, exponent: float) -> NDArray[np.float64]:
    weights = np.arange(1, rows + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum())


def sampled_batches(zipf: BoundedZipf, lookups: int, count: int) -> list[NDArray[np.int64]]:
    """Return the distinct ranks of seeded batches, drawn from the exact distribution."""
    cumulative = np.cumsum(exact_probabilities(int(zipf.rows), zipf.exponent))
    draws = np.random.default_rng(7).random((count, lookups))
    return [np.unique(np.searchsorted(cumulative, row)) for row in draws]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_distinct_overlap_and_top_share_equal_the_exact_sum_over_a_million_rows(exponent: float) -> None:
    zipf, p = BoundedZipf(MILLION, exponent), exact_probabilities(MILLION, exponent)
    for lookups in (1, 100, 4096, 409_600, 5_000_000):
        present = -np.expm1(lookups * np.log1p(-p))
        assert zipf.distinct(lookups) == pytest.approx(present.sum(), rel=2e-5)
        assert zipf.overlap(lookups) == pytest.approx((present**2).sum(), rel=2e-5)
    for fraction in (0.0001, 0.01, 0.1):
        assert zipf.top_share(fraction) == pytest.approx(p[: round(fraction * MILLION)].sum(), abs=2e-5)


@pytest.mark.parametrize("exponent", [0.0, 0.8, 1.0, 1.2])
def test_distinct_and_overlap_agree_with_sampling_within_four_standard_errors(exponent: float) -> None:
    zipf, lookups, count = BoundedZipf(100_000, exponent), 2048, 200
    batches = sampled_batches(zipf, lookups, count)
    distinct = np.array([len(batch) for batch in batches])
    common = np.array([len(np.intersect1d(a, b)) for a, b in zip(batches[::2], batches[1::2], strict=True)])
    assert abs(distinct.mean() - zipf.distinct(lookups)) < 4 * distinct.std() / math.sqrt(count)
    assert abs(common.mean() - zipf.overlap(lookups)) < 4 * common.std() / math.sqrt(count / 2)
    assert distinct.std(ddof=1) == pytest.approx(zipf.distinct_sd(lookups), rel=4 / math.sqrt(2 * count))


@pytest.mark.parametrize(("exponent", "lookups"), [(0.0, 50), (0.8, 500), (1.2, 2000), (1.2, 1)])
def test_the_spread_of_distinct_keys_is_the_exact_multinomial_one(exponent: float, lookups: int) -> None:
    p = exact_probabilities(1000, exponent)
    absent = (1 - p) ** lookups
    pairs = (1 - p[:, None] - p) ** lookups - absent[:, None] * absent
    np.fill_diagonal(pairs, 0.0)
    exact = math.sqrt((absent * (1 - absent)).sum() + pairs.sum())
    assert BoundedZipf(1000, exponent).distinct_sd(lookups) == pytest.approx(exact, rel=0.03, abs=1e-6)


def test_exponent_zero_is_uniform() -> None:
    zipf, uniform = BoundedZipf(1e7, 0.0), Uniform(1e7)
    for lookups in (0.0, 0.5, 10.0, 1e6, 1e9):
        assert zipf.distinct(lookups) == pytest.approx(uniform.distinct(lookups), rel=1e-12)
        assert zipf.overlap(lookups) == pytest.approx(uniform.overlap(lookups), rel=1e-12)
    assert uniform.distinct(1e6) == pytest.approx(1e7 * -math.expm1(1e6 * math.log1p(-1e-7)), rel=1e-12)


@pytest.mark.parametrize("rows", [10_000, 1e9, 1e13])
def test_answers_are_continuous_through_exponent_one(rows: float) -> None:
    below, at, above = (BoundedZipf(rows, a).distinct(100_000) for a in (1 - 1e-9, 1.0, 1 + 1e-9))
    assert below == pytest.approx(at, rel=1e-7)
    assert above == pytest.approx(at, rel=1e-7)


def test_a_very_steep_exponent_leaves_one_key() -> None:
    steep = BoundedZipf(1e13, 500.0)
    assert steep.distinct(1e9) == pytest.approx(1.0)
    assert steep.distinct_sd(1e9) == pytest.approx(0.0, abs=1e-6)
    assert steep.top_share(1e-13) == pytest.approx(1.0)


def test_a_table_of_one_row_has_one_key() -> None:
    assert BoundedZipf(1, 0.9).distinct(17) == 1.0
    assert Uniform(1).overlap(17) == 1.0
    assert Uniform(1).distinct_sd(17) == 0.0


@pytest.mark.parametrize("keys", [BoundedZipf(1e6, 0.9), BoundedZipf(1e13, 1.0), Uniform(1e5)])
def test_distinct_keys_grow_with_lookups_and_never_pass_lookups_or_rows(keys: BoundedZipf | Uniform) -> None:
    lookups = np.geomspace(0.01, 1e8, 60)
    distinct = [keys.distinct(m) for m in lookups]
    assert all(a < b or b > 0.999 * keys.rows for a, b in pairwise(distinct))
    assert all(d <= min(m, keys.rows) * (1 + 1e-9) for d, m in zip(distinct, lookups, strict=True))
    assert keys.distinct(0) == 0.0 and keys.distinct(1) == pytest.approx(1.0)


def test_a_union_grows_with_ranks_and_lies_between_one_batch_and_the_sum() -> None:
    zipf = BoundedZipf(1e8, 0.95)
    unions = [zipf.union(4096, ranks) for ranks in (1, 2, 8, 64, 1536)]
    assert unions == sorted(unions)
    assert unions[0] == zipf.distinct(4096)
    assert unions[1] == pytest.approx(2 * zipf.distinct(4096) - zipf.overlap(4096), rel=1e-9)
    assert unions[-1] < 1536 * zipf.distinct(4096)


@pytest.mark.parametrize("exponent", [0.0, 0.9, 1.2])
def test_owner_loads_agree_with_hashing_sampled_batches(exponent: float) -> None:
    ranks, lookups, repeats = 16, 500, 400
    zipf = BoundedZipf(20_000, exponent)
    batches = sampled_batches(zipf, lookups, ranks)
    random = np.random.default_rng(3)
    spreads = []
    for _ in range(repeats):
        owner = random.integers(ranks, size=20_000)
        loads = sum(np.bincount(owner[batch], minlength=ranks) for batch in batches)
        spreads.append(np.var(loads))
    load = zipf.owner_load(lookups, ranks)
    assert load.mean == pytest.approx(np.mean([len(batch) for batch in batches]), rel=0.02)
    assert load.sd == pytest.approx(math.sqrt(np.mean(spreads)), rel=0.05)


def test_deduplicated_owners_together_receive_what_all_sources_send() -> None:
    zipf, ranks = BoundedZipf(1e9, 1.05), 64
    assert zipf.owner_load(82_000, ranks).mean * ranks == pytest.approx(ranks * zipf.distinct(82_000))
    assert zipf.raw_owner_load(82_000, ranks).mean == 82_000
    assert zipf.owner_load(82_000, 1).sd == 0.0


@pytest.mark.parametrize(("exponent", "busiest"), [(0.8, 6), (1.05, 115), (1.2, 279)])
def test_raw_owner_loads_have_the_measured_hot_owner(exponent: float, busiest: float) -> None:
    # over 1,536 shards the busiest owner is the one of the hottest key, on top of an average load
    hottest = BoundedZipf(1e9, exponent).top_share(1e-9) * 1536
    assert hottest + 1 == pytest.approx(busiest, rel=0.02)


@pytest.mark.parametrize("exponent", [0.8, 1.2])
def test_removing_duplicates_evens_out_the_owners(exponent: float) -> None:
    zipf = BoundedZipf(1e9, exponent)
    sent, raw = zipf.owner_load(65_536, 1536), zipf.raw_owner_load(65_536, 1536)
    assert sent.sd / sent.mean < raw.sd / raw.mean / 5
    assert sent.sd > math.sqrt(sent.mean)


def test_lookups_below_one_are_the_chance_of_one() -> None:
    zipf = BoundedZipf(1e6, 1.0)
    assert zipf.distinct(0.25) == pytest.approx(0.25)
    assert zipf.overlap(0.25) == pytest.approx(zipf.overlap(1) / 16)
    assert zipf.distinct_sd(0.25) == pytest.approx(math.sqrt(0.25 * 0.75))


def test_a_query_over_two_billion_rows_costs_less_than_a_millisecond() -> None:
    started = time.perf_counter()
    zipf: Independent = BoundedZipf(2e9, 0.8712345)
    zipf.distinct(409_600)
    set_up = time.perf_counter() - started
    best = min(_timed(zipf) for _ in range(20))
    assert best < 1e-3
    assert set_up < 50e-3  # 0.4 ms alone on the machine; wide, since others may share it


def _timed(zipf: Independent) -> float:
    started = time.perf_counter()
    zipf.distinct(409_600)
    return time.perf_counter() - started


@pytest.mark.parametrize("rows", [0, -5, 1.5, math.inf, math.nan, 1e16])
def test_impossible_rows_are_refused(rows: float) -> None:
    with pytest.raises(InputError, match="rows must be a whole number"):
        BoundedZipf(rows, 1.0)


@pytest.mark.parametrize("exponent", [-0.1, math.inf, math.nan])
def test_impossible_exponents_are_refused(exponent: float) -> None:
    with pytest.raises(InputError, match="exponent"):
        BoundedZipf(10, exponent)


def test_impossible_questions_are_refused() -> None:
    zipf = BoundedZipf(10, 1.0)
    with pytest.raises(InputError, match="not negative"):
        zipf.distinct(-1)
    with pytest.raises(InputError, match="finite"):
        zipf.overlap(math.nan)
    with pytest.raises(InputError, match="at least 1"):
        zipf.union(5, 0)
    with pytest.raises(InputError, match="between 0 and 1"):
        zipf.top_share(1.5)


# --- the shifted law, all statistics at once, two layers ---


@pytest.mark.parametrize("shift", [-0.9, 0.0, 7.5, 3000.0])
@pytest.mark.parametrize("exponent", [0.6, 1.0, 1.4])
def test_a_mandelbrot_law_equals_the_exact_sum_over_a_million_rows(exponent: float, shift: float) -> None:
    weights = (np.arange(1, MILLION + 1) + shift) ** -exponent
    p = weights / weights.sum()
    law = ZipfMandelbrot(MILLION, exponent, shift)
    for lookups in (1, 4096, 409_600):
        present = -np.expm1(lookups * np.log1p(-p))
        assert law.distinct(lookups) == pytest.approx(present.sum(), rel=2e-5)
        assert law.overlap(lookups) == pytest.approx((present**2).sum(), rel=3e-5)
    assert law.top_share(0.01) == pytest.approx(p[: MILLION // 100].sum(), abs=2e-5)


def test_without_a_shift_a_mandelbrot_law_is_zipfs() -> None:
    assert ZipfMandelbrot(1e8, 0.9).distinct(1e5) == BoundedZipf(1e8, 0.9).distinct(1e5)


@pytest.mark.parametrize("shift", [-1.0, math.nan, 1e13])
def test_impossible_shifts_are_refused(shift: float) -> None:
    with pytest.raises(InputError, match="shift"):
        ZipfMandelbrot(10, 1.0, shift)


@pytest.mark.parametrize("lookups", [0.0, 0.4, 5000.0, 4e5])
@pytest.mark.parametrize("ranks", [1, 1536])
def test_statistics_taken_together_equal_those_taken_one_by_one(lookups: float, ranks: int) -> None:
    zipf = BoundedZipf(1e7, 0.95)
    together = batch_keys(zipf, lookups, ranks)
    assert together.distinct == pytest.approx(zipf.distinct(lookups))
    assert together.distinct_sd == pytest.approx(zipf.distinct_sd(lookups), rel=1e-6)
    assert together.overlap == pytest.approx(zipf.overlap(lookups))
    assert together.union == pytest.approx(zipf.union(lookups, ranks))
    assert together.owner_load.mean == pytest.approx(zipf.owner_load(lookups, ranks).mean)
    assert together.owner_load.sd == pytest.approx(zipf.owner_load(lookups, ranks).sd)


def test_two_layers_ask_for_the_keys_of_both() -> None:
    hot, cold = BoundedZipf(10, 0.5), BoundedZipf(100_000, 0.8)
    layered = Layered(0.6, hot, cold)
    assert layered.rows == 100_010
    assert layered.top_share(10 / layered.rows) == pytest.approx(0.6)
    assert layered.distinct(1) == pytest.approx(1.0)
    # the cold layer gets its part of the lookups, and those are many
    assert layered.distinct(50_000) == pytest.approx(10 + cold.distinct(20_000), rel=1e-3)
    with pytest.raises(InputError, match="share"):
        Layered(1.0, hot, cold)


@pytest.mark.parametrize(
    ("rows", "exponent", "lookups"), [(1e6, 0.8, 200_000), (1e8, 1.05, 200_000), (1e9, 0.9, 100_000)]
)
def test_sampled_keys_meet_the_closed_forms(rows: float, exponent: float, lookups: int) -> None:
    zipf, count = BoundedZipf(rows, exponent), 60
    sampler = sampler_of(zipf)
    batches = [np.unique(sampler.draw(stream(5, "closed forms", 0, b), lookups)) for b in range(count)]
    pairs = itertools.pairwise(batches)
    common = np.mean([len(np.intersect1d(a, b, assume_unique=True)) for a, b in pairs])
    distinct = np.mean([len(batch) for batch in batches])
    union = len(np.unique(np.concatenate(batches[:16])))
    gaps = [
        abs(distinct / zipf.distinct(lookups) - 1),
        abs(common / zipf.overlap(lookups) - 1),
        abs(union / zipf.union(lookups, 16) - 1),
    ]
    print(f"{zipf}: distinct {gaps[0]:.4%}, overlap {gaps[1]:.4%}, union {gaps[2]:.4%} off")
    assert gaps[0] <= 0.0015
    assert gaps[1] <= 0.005
    assert gaps[2] <= 0.0024
