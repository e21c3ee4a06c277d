"""Caches: closed forms against replay, and replay against the plainest possible caches."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from simulator.errors import InputError
from simulator.workload.caches import (
    ReuseDistances,
    characteristic_time,
    curves_of,
    hottest_missed,
    lookahead_fetches,
    lru_hit_rate,
    lru_missed,
    replayed_misses,
    static_hit_rate,
)
from simulator.workload.caches.replay import belady_hits, lfu_distances
from simulator.workload.caches.reuse_distance import FIRST, earlier_smaller
from simulator.workload.keys import BoundedZipf, Uniform
from simulator.workload.traces import sampler_of, stream

Keys = NDArray[np.int64]


def drawn(keys: int, lookups: int, exponent: float = 0.8) -> Keys:
    return sampler_of(BoundedZipf(keys, exponent)).draw(stream(3, "caches", keys, lookups), lookups) - 1


def plain_distances(codes: Keys) -> list[int]:
    """Keep a list of the keys, the latest first."""
    recent: list[int] = []
    distances = []
    for key in codes.tolist():
        distances.append(recent.index(key) if key in recent else FIRST)
        if key in recent:
            recent.remove(key)
        recent.insert(0, key)
    return distances


def plain_best_hits(codes: Keys, slots: int) -> int:
    """Keep, after each lookup, the rows that are needed again the soonest."""
    keys, following, needed = codes.tolist(), {}, []
    for place in range(len(keys) - 1, -1, -1):
        needed.append(following.get(keys[place], 10 * len(keys) + place))
        following[keys[place]] = place
    cache: dict[int, int] = {}
    hits = 0
    for key, need in zip(keys, reversed(needed), strict=True):
        hits += key in cache
        cache[key] = need
        if len(cache) > slots:
            del cache[max(cache, key=lambda one: cache[one])]
    return hits


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 1000, 4097])
def test_earlier_smaller_entries_are_counted_as_by_hand(size: int) -> None:
    values = np.random.default_rng(size).permutation(size)
    by_hand = [int(np.count_nonzero(values[:place] < values[place])) for place in range(size)]
    assert earlier_smaller(values).tolist() == by_hand


@pytest.mark.parametrize(("keys", "lookups"), [(1, 1), (1, 40), (7, 60), (400, 3000), (3000, 3000)])
def test_reuse_distances_are_those_of_a_list_of_recent_keys(keys: int, lookups: int) -> None:
    codes = drawn(keys, lookups)
    assert ReuseDistances().add(codes).tolist() == plain_distances(codes)


@pytest.mark.parametrize("pieces", [2, 9, 500])
def test_reuse_distances_do_not_depend_on_how_the_stream_is_cut(pieces: int) -> None:
    codes, stack = drawn(300, 2000), ReuseDistances()
    cut = np.concatenate([stack.add(part) for part in np.array_split(codes, pieces)])
    assert np.array_equal(cut, ReuseDistances().add(codes))


@pytest.mark.parametrize(("keys", "lookups"), [(5, 50), (100, 1500), (400, 500)])
def test_no_cache_hits_more_than_beladys_and_his_is_reached(keys: int, lookups: int) -> None:
    codes = drawn(keys, lookups, 0.6)
    sizes = [1, 2, 3, 7, 20, keys]
    assert belady_hits(codes, sizes) == [plain_best_hits(codes, size) for size in sizes]


def test_lfu_distances_rank_keys_by_their_counts() -> None:
    codes, counts = drawn(60, 1500), Counter[int]()
    for key, distance in zip(codes.tolist(), lfu_distances(codes).tolist(), strict=True):
        more = sum(count > counts[key] for count in counts.values())
        as_many = sum(count >= counts[key] for count in counts.values())
        assert (distance == FIRST) if counts[key] == 0 else (more <= distance < as_many)
        counts[key] += 1


def test_miss_curves_fall_with_size_and_end_at_the_first_lookups() -> None:
    curves = curves_of("items", drawn(3000, 20_000))
    for curve in (curves.lru, curves.lfu, curves.belady):
        assert all(a >= b for a, b in pairwise(curve))
        assert curve[-1] == pytest.approx(curves.distinct / curves.lookups)
    for lru, lfu, best in zip(curves.lru, curves.lfu, curves.belady, strict=True):
        assert best <= min(lru, lfu)
    assert curves.slots[-1] == curves.distinct
    assert curves.rows()[0] == {
        "table": "items",
        "slots": 1,
        "lru_misses": curves.lru[0],
        "lfu_misses": curves.lfu[0],
        "belady_misses": curves.belady[0],
    }


def test_curves_without_lookups_or_slots_are_refused() -> None:
    with pytest.raises(InputError, match="no lookups"):
        curves_of("items", np.empty(0, dtype=np.int64))
    with pytest.raises(InputError, match="at least one slot"):
        curves_of("items", drawn(10, 20), slots=(0, 5))


@pytest.mark.parametrize("exponent", [0.7, 0.9, 1.2])
def test_the_lru_closed_form_is_within_a_thousandth_of_replay(exponent: float) -> None:
    zipf, warm, lookups = BoundedZipf(50_000, exponent), 500_000, 2_000_000
    codes = sampler_of(zipf).draw(stream(11, "lru", 0, 0), warm + lookups)
    distances = ReuseDistances().add(codes)[warm:]
    for slots in (100, 1000, 10_000):
        replayed = np.count_nonzero((distances != FIRST) & (distances < slots)) / lookups
        predicted = lru_hit_rate(zipf, slots)
        print(f"exponent {exponent}, {slots} slots: LRU {replayed:.5f} replayed, {predicted:.5f} predicted")
        assert predicted == pytest.approx(replayed, abs=1e-3)


def test_a_static_cache_hits_the_shares_of_the_hottest_keys() -> None:
    zipf = BoundedZipf(20_000, 0.9)
    codes = sampler_of(zipf).draw(stream(12, "static", 0, 0), 2_000_000)
    for slots in (1, 50, 3000):
        hits = np.count_nonzero(codes <= slots) / len(codes)
        assert static_hit_rate(zipf, slots) == pytest.approx(hits, abs=1e-3)
        assert static_hit_rate(zipf, slots) > lru_hit_rate(zipf, slots)


def test_an_lru_cache_of_equally_likely_keys_hits_as_often_as_it_is_large() -> None:
    for slots in (1, 10, 400):
        assert lru_hit_rate(Uniform(1000), slots) == pytest.approx(slots / 1000, rel=1e-3)
    assert lru_hit_rate(Uniform(1000), 0) == 0.0
    assert lru_hit_rate(Uniform(1000), 1000) == 1.0
    assert math.isinf(characteristic_time(Uniform(1000), 5000))


def test_rows_fetched_with_lookahead_are_those_that_recent_batches_lack() -> None:
    zipf, lookups, reach = BoundedZipf(20_000, 0.9), 3000, 5
    sampler = sampler_of(zipf)
    batches = [np.unique(sampler.draw(stream(13, "ahead", 0, b), lookups)) for b in range(200)]
    fetched = [
        len(np.setdiff1d(batch, np.concatenate(batches[place - reach : place])))
        for place, batch in enumerate(batches)
        if place >= reach
    ]
    expected = lookahead_fetches(zipf, lookups, reach)
    assert expected == pytest.approx(np.mean(fetched), abs=4 * np.std(fetched) / math.sqrt(len(fetched)))
    assert lookahead_fetches(zipf, lookups, 0) == pytest.approx(zipf.distinct(lookups))
    assert lookahead_fetches(zipf, lookups, 1) == pytest.approx(
        zipf.distinct(lookups) - zipf.overlap(lookups)
    )


def test_impossible_caches_are_refused() -> None:
    with pytest.raises(InputError, match="slots"):
        lru_hit_rate(Uniform(10), -1)
    with pytest.raises(InputError, match="slots"):
        static_hit_rate(Uniform(10), math.nan)
    with pytest.raises(InputError, match="batches"):
        lookahead_fetches(Uniform(10), 5, -1)


# --- caches that serve batches of distinct rows ---


def batch_misses(codes: NDArray[np.int64], window: int, slots: int) -> float:
    """Replay a cache by hand: the rows of a batch that it lacks when the batch starts, last half counted."""
    held: dict[int, None] = {}
    missed = asked = 0
    batches = len(codes) // window
    for number in range(batches):
        rows = list(dict.fromkeys(codes[number * window : (number + 1) * window].tolist()))
        if number >= batches // 2:
            asked, missed = asked + len(rows), missed + sum(row not in held for row in rows)
        for row in rows:
            held.pop(row, None)
            held[row] = None
        while len(held) > slots:
            del held[next(iter(held))]
    return missed / asked


@pytest.mark.parametrize("exponent", [0.6, 1.0])
@pytest.mark.parametrize("slots", [3_000, 20_000])
def test_a_batch_misses_in_closed_form_and_in_replay_what_a_cache_kept_by_hand_lacks(
    exponent: float, slots: int
) -> None:
    keys, window = BoundedZipf(50_000, exponent), 1_000
    codes = sampler_of(keys).draw(stream(0, "batches", 0, 0), 200 * window)
    by_hand, replayed = batch_misses(codes, window, slots), replayed_misses(codes, window, slots)
    formula = lru_missed(keys, window, slots)
    print(f"{slots} slots: by hand {by_hand:.4f}, replayed {replayed:.4f}, formula {formula:.4f}")
    assert replayed == pytest.approx(by_hand, abs=1e-12)
    assert formula == pytest.approx(by_hand, abs=0.01)
    assert hottest_missed(keys, window, slots / 50_000, 50_000) < by_hand


def test_rows_repeated_within_a_batch_are_asked_for_once_so_batches_miss_more_than_lookups() -> None:
    keys, slots = BoundedZipf(50_000, 1.0), 5_000
    assert lru_missed(keys, 10_000, slots) > 1.5 * (1.0 - lru_hit_rate(keys, slots))
    assert lru_missed(keys, 1.0, slots) == pytest.approx(1.0 - lru_hit_rate(keys, slots), rel=1e-6)


def test_a_cache_of_all_rows_misses_none_and_one_without_slots_all() -> None:
    keys = BoundedZipf(1_000, 0.9)
    assert lru_missed(keys, 100, 1_000) == 0.0
    assert lru_missed(keys, 100, 0) == pytest.approx(1.0)
    codes = sampler_of(keys).draw(stream(0, "all", 0, 0), 40_000)
    assert replayed_misses(codes, 100, 1_000) == pytest.approx(0.0, abs=0.01)


def test_a_log_of_fewer_than_four_batches_is_not_replayed() -> None:
    with pytest.raises(
        InputError, match=r"4 batches of 30 lookups .* 100 lookups .* read \(at most 4,194,304 are\)"
    ):
        replayed_misses(np.arange(100), 30, 5)
