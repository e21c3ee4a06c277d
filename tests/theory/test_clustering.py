"""Sample clustering on keys: what splitting a batch costs, and what regrouping it wins back."""

from pathlib import Path

import numpy as np
import pytest

from simulator.errors import InputError
from simulator.quantities import IntArray
from simulator.workload.clustering import (
    SampleKeys,
    SharedHistories,
    cluster,
    clustering_cpu_seconds,
    distinct_per_part,
    in_order,
    split_growth,
)
from simulator.workload.keys import LogOptions, read_key_log
from simulator.workload.keys.zipf import BoundedZipf

BATCH, LOOKUPS, MICRO_BATCHES = 512, 2048, 32
UNDIVIDED_MS, SPLIT_MS = 1185.0, 1331.33  # raw all-to-all of NestPipe, and at micro-batches of 16 samples

# Assumed: an exponent of 0.75 and samples of one user sharing 90 % of their keys. Fitted on the growth
# without clustering: 1.109 samples per user and batch. What clustering then does is a prediction.
NESTPIPE = SharedHistories(BoundedZipf(2e9, 0.75), group=1.109, share=0.9)


def sampled(model: SharedHistories, batches: int) -> list[SampleKeys]:
    return [model.sample(BATCH, LOOKUPS, seed=5, number=number) for number in range(batches)]


def mean_growth(batches: list[SampleKeys], clustered: bool) -> float:
    def parts(batch: SampleKeys) -> IntArray:
        return cluster(batch, MICRO_BATCHES) if clustered else in_order(BATCH, MICRO_BATCHES)

    return float(np.mean([split_growth(batch, parts(batch)) for batch in batches]))


def rows(*samples: tuple[int, ...]) -> SampleKeys:
    return SampleKeys.from_matrix(np.array(samples, dtype=np.int64))


def test_samples_that_share_keys_meet_in_one_micro_batch() -> None:
    batch = rows((1, 2), (11, 12), (21, 22), (1, 2), (11, 12), (21, 22))
    part_of = cluster(batch, 3)
    assert part_of[:3].tolist() == part_of[3:].tolist()
    assert sorted(part_of[:3].tolist()) == [0, 1, 2]
    assert split_growth(batch, part_of) == 1.0
    assert split_growth(batch, in_order(6, 3)) == 2.0


def test_a_group_is_completed_before_another_one_is_torn() -> None:
    """Three samples share, two share, one is alone: groups of three must not split the pair."""
    batch = rows((1, 2, 3), (7, 8, 9), (1, 2, 3), (20, 21, 22), (7, 8, 9), (1, 2, 3))
    part_of = cluster(batch, 2)
    assert part_of[0] == part_of[2] == part_of[5] != part_of[1]
    assert part_of[1] == part_of[4] == part_of[3]


def test_micro_batches_keep_equal_sizes_and_every_sample() -> None:
    part_of = cluster(SharedHistories(BoundedZipf(1e4, 1.1), 3.0, 0.5).sample(60, 20, seed=1), 5)
    assert np.bincount(part_of).tolist() == [12] * 5


def test_a_key_asked_for_twice_by_one_sample_counts_once() -> None:
    batch = rows((4, 4), (4, 5))
    assert batch.distinct == 2
    assert distinct_per_part(batch, np.array([0, 1])).tolist() == [1, 2]


def test_keys_beyond_the_packing_range_are_renumbered() -> None:
    huge = 2**62
    batch = rows((0, huge), (huge, 7), (0, 3), (7, 1))
    assert batch.distinct == 5
    part_of = cluster(batch, 2)
    assert sorted(np.bincount(part_of).tolist()) == [2, 2]
    assert distinct_per_part(batch, part_of).sum() <= 7


def test_samples_without_shared_keys_can_be_clustered_too() -> None:
    batch = rows((1,), (2,), (3,), (4,))
    assert split_growth(batch, cluster(batch, 2)) == 1.0


def test_parts_that_do_not_divide_the_batch_are_refused() -> None:
    with pytest.raises(InputError, match="3 samples cannot be split into 2"):
        cluster(rows((1,), (2,), (3,)), 2)
    with pytest.raises(InputError, match="3 samples cannot be split into 2"):
        in_order(3, 2)


def test_a_lookup_outside_the_batch_is_refused() -> None:
    with pytest.raises(InputError, match="outside the batch of 1"):
        SampleKeys(np.array([1, 2]), np.array([0, 1]), 1)
    with pytest.raises(InputError, match="differ in shape"):
        SampleKeys(np.array([1, 2]), np.array([0]), 1)


@pytest.mark.parametrize("group, share", [(0.5, 0.5), (float("nan"), 0.5), (2.0, 1.5)])
def test_impossible_groups_are_refused(group: float, share: float) -> None:
    with pytest.raises(InputError, match="mean group"):
        SharedHistories(BoundedZipf(10, 1.0), group, share)


@pytest.mark.parametrize("model", [NESTPIPE, SharedHistories(BoundedZipf(1e6, 0.9), 3.0, 0.5)])
def test_sampled_batches_follow_the_closed_forms(model: SharedHistories) -> None:
    batches = sampled(model, 8)
    distinct = np.mean([batch.distinct for batch in batches])
    assert distinct == pytest.approx(model.distinct(BATCH, LOOKUPS), rel=0.01)
    expected = model.random_growth(BATCH, LOOKUPS, MICRO_BATCHES)
    assert mean_growth(batches, clustered=False) == pytest.approx(expected, rel=0.01)


def test_the_same_seed_gives_the_same_batch_and_another_number_another_one() -> None:
    first, again, other = (NESTPIPE.sample(8, 16, seed=2, number=n) for n in (0, 0, 1))
    assert np.array_equal(first.keys, again.keys)
    assert not np.array_equal(first.keys, other.keys)


def test_one_sample_per_group_is_the_model_of_independent_lookups() -> None:
    zipf = BoundedZipf(1e6, 0.9)
    alone = SharedHistories(zipf, group=1.0, share=0.7)
    assert alone.distinct(BATCH, 10) == pytest.approx(zipf.distinct(BATCH * 10))
    independent = 8 * zipf.distinct(BATCH * 10 / 8) / zipf.distinct(BATCH * 10)
    assert alone.random_growth(BATCH, 10, 8) == pytest.approx(independent)
    assert alone.clustered_growth(BATCH, 10, 8) == pytest.approx(independent)


def test_splitting_into_micro_batches_of_16_grows_the_exchange_as_published() -> None:
    grown = UNDIVIDED_MS * mean_growth(sampled(NESTPIPE, 8), clustered=False)
    assert grown == pytest.approx(SPLIT_MS, rel=0.05)
    expected = UNDIVIDED_MS * NESTPIPE.random_growth(BATCH, LOOKUPS, MICRO_BATCHES)
    assert expected == pytest.approx(SPLIT_MS, rel=1e-3)


def test_clustering_brings_the_exchange_back_within_five_percent() -> None:
    batches = sampled(NESTPIPE, 4)
    clustered = mean_growth(batches, clustered=True)
    assert clustered * UNDIVIDED_MS == pytest.approx(UNDIVIDED_MS, rel=0.05)
    assert clustered == pytest.approx(NESTPIPE.clustered_growth(BATCH, LOOKUPS, MICRO_BATCHES), rel=0.005)
    assert mean_growth(batches, clustered=False) - clustered > 0.06


def test_independent_lookups_grow_as_published_and_clustering_cannot_repair_them() -> None:
    """A Zipf law alone can be fitted to the growth; what repeats then are keys that everybody asks for."""
    independent = SharedHistories(BoundedZipf(2e9, 0.87), group=1.0)
    batches = sampled(independent, 1)
    assert mean_growth(batches, clustered=False) == pytest.approx(SPLIT_MS / UNDIVIDED_MS, rel=0.01)
    assert mean_growth(batches, clustered=True) > 1.11


def test_groups_larger_than_a_micro_batch_are_repaired_only_in_part() -> None:
    big = SharedHistories(BoundedZipf(2e9, 0.5), group=64.0, share=0.9)
    small = SharedHistories(BoundedZipf(2e9, 0.5), group=3.0, share=0.9)
    assert mean_growth(sampled(big, 1), clustered=True) > 1.4
    assert mean_growth(sampled(small, 1), clustered=True) < 1.1


def test_clustering_cost_counts_lookups_and_samples() -> None:
    base = clustering_cpu_seconds(512, 2048, 32)
    assert 0.05 < base < 0.2
    assert clustering_cpu_seconds(512, 4096, 32) == pytest.approx(2 * base, rel=0.15)
    assert clustering_cpu_seconds(512, 2048, 8) < base < clustering_cpu_seconds(512, 2048, 128)
    with pytest.raises(InputError, match="must be positive"):
        clustering_cpu_seconds(0, 2048, 32)


def test_histories_of_a_real_log_are_brought_together(measured_data: Path) -> None:
    """Each event of the OTTO sample becomes a sample that looks up the last 32 items of its session."""
    path = measured_data / "access_traces" / "cc_by" / "otto_sessions_sample.csv"
    batch, sessions = trailing_histories(path, length=32, samples=512)
    clustered = split_growth(batch, cluster(batch, MICRO_BATCHES))
    assert clustered < 0.75 * split_growth(batch, in_order(batch.count, MICRO_BATCHES))
    by_session = in_order(batch.count, MICRO_BATCHES)[np.argsort(np.argsort(sessions, kind="stable"))]
    assert clustered < split_growth(batch, by_session)


def trailing_histories(path: Path, length: int, samples: int) -> tuple[SampleKeys, IntArray]:
    import pandas

    events = pandas.read_csv(path).sort_values("ts_ms", kind="stable").reset_index(drop=True)
    seen: dict[int, list[int]] = {}
    keys: list[list[int]] = []
    for session, item in zip(events["session"], events["item_id"], strict=True):
        seen.setdefault(session, []).append(int(item))
        keys.append(seen[session][-length:])
    keys = keys[:samples]
    lookups = np.array([key for sample in keys for key in sample], dtype=np.int64)
    places = np.repeat(np.arange(samples), [len(sample) for sample in keys])
    return SampleKeys(lookups, places, samples), events["session"].to_numpy()[:samples]


def test_a_key_log_can_be_clustered(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("item\n" + "".join(f"{key}\n" for key in (1, 2, 3, 1, 2, 3)))
    (chunk,) = read_key_log(path, LogOptions(columns=("item",))).chunks()
    table = chunk.tables["item"]
    batch = SampleKeys(table.codes, table.samples, chunk.end)
    assert split_growth(batch, cluster(batch, 3)) == 1.0
