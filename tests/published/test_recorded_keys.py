"""The scenario on a recorded log: what was measured is what the run moves."""

from pathlib import Path

import numpy as np
import pytest

from simulator.errors import InputError
from simulator.quantities import IntArray
from simulator.scenario import Scenario, load, run_scenario
from simulator.workload.keys import LogStatistics, read_key_log, summarize


@pytest.fixture(scope="module")
def scenario(checkout: Path) -> Scenario:
    return load(checkout / "scenarios/recorded_keys.yaml")


@pytest.fixture(scope="module")
def log(checkout: Path, scenario: Scenario) -> LogStatistics:
    return summarize(checkout / "scenarios/data/open_bandit_bts_women.csv.gz", scenario.workload.batch)


def test_the_distinct_keys_of_every_table_are_those_measured_in_the_log(
    scenario: Scenario, log: LogStatistics
) -> None:
    measured = {table.name: table.at_batch.distinct for table in log}
    for table in scenario.workload.tables:
        asked = table.popularity.distinct(table.lookups(scenario.workload.batch))
        assert asked == pytest.approx(measured[table.name], rel=1e-9), table.name


def test_the_exchange_moves_the_measured_rows_and_not_those_of_a_formula(
    scenario: Scenario, log: LogStatistics
) -> None:
    names = {table.name for table in scenario.workload.tables}
    rows = sum(table.at_batch.distinct for table in log if table.name in names)
    (exchange,) = [c for c in run_scenario(scenario).report.collectives if c["name"] == "exchange"]
    assert exchange["bytes"] == pytest.approx(rows * 128 * 4, rel=1e-9)


def test_uniform_keys_would_send_more_and_take_longer(scenario: Scenario) -> None:
    recorded = run_scenario(scenario)
    uniform = run_scenario(scenario.with_overrides(["workload.keys={kind: uniform}"]))
    sent = [
        next(c["bytes"] for c in run.report.collectives if c["name"] == "exchange")
        for run in (recorded, uniform)
    ]
    assert sent[1] > 1.5 * sent[0]
    assert uniform.report.step_ms["mean"] > recorded.report.step_ms["mean"]


def test_the_shipped_log_answers_the_run_without_extrapolating(scenario: Scenario) -> None:
    report = run_scenario(scenario).report
    assert report.ranks == 8
    assert report.extrapolated == []


LRU = "{kind: hbm_cache, share: 40 %, replacement: lru}"


def host_link_bytes(scenario: Scenario, tier: str) -> float:
    """Return the bytes of rows that the average owner fetches from its host's memory."""
    return float(np.mean(scenario.with_overrides([f"sharding.tier={tier}"]).step.traffic.bytes_buffered))


def test_the_misses_of_a_cache_in_a_run_are_those_of_the_log_replayed(
    scenario: Scenario, checkout: Path
) -> None:
    from simulator.workload.caches import replayed_misses

    whole, cached = host_link_bytes(scenario, "dram"), host_link_bytes(scenario, LRU)
    log = read_key_log(checkout / "scenarios/data/open_bandit_bts_women.csv.gz")
    codes: dict[str, list[IntArray]] = {table.name: [] for table in scenario.workload.tables}
    for chunk in log.chunks():
        for name, parts in codes.items():
            parts.append(chunk.tables[name].codes)
    batch = scenario.workload.batch * scenario.cluster.ranks
    expected = 0.0
    for table in scenario.workload.tables:
        slots = round(0.4 * table.rows)
        share = replayed_misses(np.concatenate(codes[table.name]), batch, slots)
        union = table.popularity.union(table.lookups(scenario.workload.batch), scenario.cluster.ranks)
        missed = max(share * union, union - 0.4 * table.rows)  # no batch finds more rows than the cache holds
        expected += missed * table.row_bytes / scenario.cluster.ranks
    print(f"fetched per owner: {whole:,.0f} bytes without a cache, {cached:,.0f} with one")
    assert cached == pytest.approx(expected, rel=1e-9)
    assert 0 < cached < whole


def test_a_cache_of_the_hottest_rows_beats_one_that_replaces_them(scenario: Scenario) -> None:
    assert host_link_bytes(scenario, LRU.replace("lru", "hottest")) <= host_link_bytes(scenario, LRU)


def test_a_log_too_short_to_replay_a_cache_is_refused_naming_both_lengths(scenario: Scenario) -> None:
    many = scenario.with_overrides([f"sharding.tier={LRU}", "workload.batch=512"])
    with pytest.raises(
        InputError, match=r"4 batches of 4,096 lookups .* 10,000 lookups of the log were read"
    ):
        run_scenario(many)


def test_micro_batches_of_a_recorded_log_can_be_clustered(scenario: Scenario) -> None:
    split = scenario.with_policy({"kind": "nestpipe", "micro_batches": 8})
    clustered = split.with_overrides(["workload.clustering=key_centric"])
    rows = [8 * one.step.micro_batch(8).traffic.distinct for one in (split, clustered)]
    whole = scenario.step.traffic.distinct
    print(f"rows in 8 micro-batches over the whole: {rows[0] / whole:.2f} as recorded, {rows[1] / whole:.2f}")
    assert whole < rows[1] < 0.8 * rows[0]
    assert clustered.step.traffic.distinct == whole


def test_what_clustering_makes_of_recorded_batches_is_counted_on_their_keys(
    scenario: Scenario, checkout: Path
) -> None:
    from simulator.workload.clustering import SampleKeys, cluster, distinct_per_part

    (chunk,) = read_key_log(checkout / "scenarios/data/open_bandit_bts_women.csv.gz").chunks()
    names, wanted = [table.name for table in scenario.workload.tables], 0.0
    for first in (0, 64):
        here = slice(first, first + 64)
        keys = [100 * at + chunk.tables[name].codes[here] for at, name in enumerate(names)]
        batch = SampleKeys.from_matrix(np.stack(keys, axis=1))
        wanted += distinct_per_part(batch, cluster(batch, 8)).sum() / batch.distinct / 2
    clustered = scenario.with_overrides(["workload.clustering=key_centric"])
    grown = 8 * clustered.step.micro_batch(8).traffic.distinct / scenario.step.traffic.distinct
    assert grown == pytest.approx(wanted, rel=0.03)


def test_clustering_tables_of_different_logs_and_histories_beside_a_log_are_refused(
    scenario: Scenario,
) -> None:
    mixed = scenario.with_overrides(
        ["workload.clustering=key_centric", "workload.tables[0].keys={kind: uniform}"]
    )
    with pytest.raises(InputError, match="from one recorded log"):
        run_scenario(mixed)
    with pytest.raises(InputError, match="in a recorded log already"):
        run_scenario(scenario.with_overrides(["workload.histories={group: 2, share: 0.5}"]))
