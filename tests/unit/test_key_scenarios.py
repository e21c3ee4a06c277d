"""The keys of a scenario: layers, histories and clustering, and what is refused of them."""

from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.scenario import Scenario, load, run_scenario
from simulator.workload.keys import BoundedZipf, Layered

LAYERED = "{kind: layered, share: 80 %, hot_rows: 100, hot_exponent: 0.2, exponent: 0.6}"
SHARED = "workload.histories={group: 3, share: 80 %}"


@pytest.fixture(scope="module")
def scenario(checkout: Path) -> Scenario:
    return load(checkout / "scenarios/quickstart.yaml")


def changed(scenario: Scenario, *settings: str) -> Scenario:
    return scenario.with_overrides(list(settings))


def test_layered_keys_reach_the_run(scenario: Scenario) -> None:
    layered = changed(scenario, f"workload.keys={LAYERED}")
    table = layered.workload.tables[0]
    cold = BoundedZipf(table.rows - 100, 0.6)
    assert table.popularity == Layered(0.8, BoundedZipf(100, 0.2), cold)
    asked = [one.popularity.distinct(one.lookups(layered.workload.batch)) for one in layered.workload.tables]
    assert layered.step.traffic.distinct == pytest.approx(sum(asked))
    assert run_scenario(layered).report.raw_ms["all_to_all"] > 0


def test_a_hot_layer_as_large_as_the_table_is_refused(scenario: Scenario) -> None:
    keys = LAYERED.replace("100,", "1e12,")
    with pytest.raises(InputError, match="leave none cold"):
        run_scenario(changed(scenario, f"workload.keys={keys}"))
    for share in ("0 %", "100 %"):
        with pytest.raises(InputError, match="share of a layer"):
            run_scenario(changed(scenario, f"workload.keys={LAYERED.replace('80 %', share)}"))


def test_samples_that_share_keys_ask_for_fewer_rows_and_repeat_more_of_them_in_parts(
    scenario: Scenario,
) -> None:
    shared = changed(scenario, SHARED)
    whole, alone = shared.step.traffic.distinct, scenario.step.traffic.distinct
    assert whole < 0.9 * alone
    assert shared.step.traffic.lookups == scenario.step.traffic.lookups
    split = [8 * one.step.micro_batch(8).traffic.distinct for one in (shared, scenario)]
    assert split[0] / whole > 1.05 * split[1] / alone


def test_groups_of_one_sample_change_nothing(scenario: Scenario) -> None:
    single = changed(scenario, "workload.histories={group: 1, share: 80 %}")
    assert run_scenario(single).report.step_ms == run_scenario(scenario).report.step_ms


def test_clustering_changes_micro_batches_and_neither_whole_batches_nor_their_host_time(
    scenario: Scenario,
) -> None:
    policy = "policy={kind: nestpipe, micro_batches: 8}"
    plain, clustered = (
        changed(scenario, SHARED, policy, f"workload.clustering={how}") for how in ("none", "key_centric")
    )
    rows = [one.step.micro_batch(8).traffic.distinct for one in (clustered, plain)]
    assert rows[0] < 0.9 * rows[1]
    assert clustered.step.traffic.distinct == plain.step.traffic.distinct
    read = [run_scenario(one).report.raw_ms["input"] for one in (clustered, plain)]
    assert read[0] > read[1]
    whole = [
        run_scenario(one.with_policy({"kind": "dual_buffer"})).report.raw_ms["input"]
        for one in (clustered, plain)
    ]
    assert whole[0] == whole[1]


def test_clustering_is_the_same_each_time_it_is_asked_for(scenario: Scenario) -> None:
    from simulator.workload.clustering import sharing

    settings = (SHARED, "workload.clustering=key_centric")
    first = changed(scenario, *settings).step.micro_batch(4).traffic.distinct
    sharing._growth.cache_clear()
    assert changed(scenario, *settings).step.micro_batch(4).traffic.distinct == first


def test_many_tables_are_clustered_together(scenario: Scenario) -> None:
    """Keys of equal number in different tables are different keys, and tables draw apart."""
    clustered = changed(
        scenario, "workload.histories={group: 2, share: 1}", "workload.clustering=key_centric"
    )
    whole = clustered.step.traffic.distinct
    parts = [n * clustered.step.micro_batch(n).traffic.distinct for n in (2, 16)]
    loose = changed(scenario, "workload.histories={group: 2, share: 1}").step.micro_batch(16).traffic.distinct
    assert whole < parts[0] < parts[1] < 16 * loose


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (["workload.clustering=key_centric"], "clustering needs histories"),
        (
            [SHARED, "workload.clustering=key_centric", "policy={kind: nestpipe, micro_batches: 7}"],
            "into 7 equal",
        ),
        (["workload.histories={group: 0.5, share: 0.5}"], "from 1 to"),
        (["workload.histories={group: 2, share: 2}"], "share"),
        (["workload.histories={group: 2}"], "share"),
        (["workload.clustering=key_centrik"], "none or key_centric"),
    ],
)
def test_impossible_histories_and_clusterings_are_refused_in_one_line(
    scenario: Scenario, settings: list[str], problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        run_scenario(changed(scenario, *settings))
    assert "\n" not in str(caught.value) and caught.value.where.path
