"""NestPipe's micro-batches on keys that samples share: what splitting costs and clustering wins back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.fits import growth, raw_all_to_all
from analysis.published import by_id
from simulator.scenario import Scenario, load, run_scenario
from simulator.workload.clustering import SharedHistories, cluster, clustering_cpu_seconds, split_growth

SCATTERED = ["workload.clustering=none"]
SERIALIZED = {"kind": "serialized"}


@pytest.fixture(scope="module")
def clustered(checkout: Path) -> Scenario:
    return load(checkout / "scenarios/nestpipe/clustering.yaml")


@pytest.fixture(scope="module")
def scattered(clustered: Scenario) -> Scenario:
    return clustered.with_overrides(SCATTERED)


def split(scenario: Scenario, parts: int) -> Scenario:
    return scenario.with_policy({"kind": "frozen_window", "micro_batches": parts})


def test_the_raw_all_to_all_of_a_run_grows_as_published_when_samples_stay_as_they_come(
    scattered: Scenario,
) -> None:
    known = by_id()
    whole = run_scenario(scattered.with_policy(SERIALIZED)).report.raw_ms["all_to_all"]
    grown = run_scenario(split(scattered, 32)).report.raw_ms["all_to_all"]
    published = known["T19a"].value / known["T13d"].value
    print(f"{whole:.0f} ms whole, {grown:.0f} ms split: {grown / whole:.4f} times, {published:.4f} published")
    assert grown / whole == pytest.approx(published, rel=0.05)
    # the level follows from other fits, at 128 and 512 workers and with other keys
    assert whole == pytest.approx(known["T2b"].value, rel=0.05)
    assert grown == pytest.approx(known["T19a"].value, rel=0.06)


def test_with_clustering_it_falls_back_to_within_five_per_cent_of_the_whole_batch(
    clustered: Scenario,
) -> None:
    whole = run_scenario(clustered.with_policy(SERIALIZED)).report.raw_ms["all_to_all"]
    split_ms = run_scenario(split(clustered, 32)).report.raw_ms["all_to_all"]
    print(f"{whole:.0f} ms whole, {split_ms:.0f} ms split and clustered: {split_ms / whole:.4f} times")
    assert whole < split_ms <= 1.05 * whole


def test_the_growth_rises_with_the_micro_batches_and_clustering_always_helps(
    clustered: Scenario, scattered: Scenario
) -> None:
    whole = raw_all_to_all(clustered.with_policy(SERIALIZED))
    grown = [
        [raw_all_to_all(split(one, parts)) / whole for parts in (2, 8, 32)] for one in (clustered, scattered)
    ]
    print(
        f"in 2, 8, 32 micro-batches: {np.round(grown[0], 4)} clustered, {np.round(grown[1], 4)} as they come"
    )
    for shares in grown:
        assert 1.0 < shares[0] < shares[1] < shares[2]
    assert all(a < b - 0.03 for a, b in zip(*grown, strict=True))


def test_the_distinct_keys_of_micro_batches_are_those_that_sampling_and_clustering_give(
    clustered: Scenario, scattered: Scenario
) -> None:
    """The run takes only from the clustering which samples met; here all keys are counted."""
    (table,) = clustered.workload.tables
    histories, batch, lookups = (
        clustered.spec.workload.histories,
        clustered.workload.batch,
        round(table.pooling),
    )
    assert histories is not None
    model = SharedHistories(table.popularity, histories.group, histories.share)  # type: ignore[arg-type]
    drawn = model.sample(batch, lookups, seed=11)
    for scenario, part_of in ((clustered, cluster(drawn, 32)), (scattered, np.arange(batch) % 32)):
        micro, whole = scenario.step.micro_batch(32).traffic, scenario.step.traffic
        grown = 32 * micro.distinct / whole.distinct
        assert grown == pytest.approx(split_growth(drawn, part_of), rel=0.01)
        assert whole.distinct == pytest.approx(drawn.distinct, rel=0.01)


def test_clustering_takes_host_time_in_the_input_pipeline(clustered: Scenario, scattered: Scenario) -> None:
    took = [run_scenario(split(one, 32)).report.raw_ms["input"] for one in (clustered, scattered)]
    seconds = clustering_cpu_seconds(512, 2048, 32) / clustered.cluster.cores_per_rank
    print(f"input {took[1]:.2f} ms, with clustering {took[0]:.2f} ms")
    assert took[0] - took[1] == pytest.approx(seconds * 1e3, rel=1e-3)
    whole = [
        run_scenario(one.with_policy(SERIALIZED)).report.raw_ms["input"] for one in (clustered, scattered)
    ]
    assert whole[0] == whole[1]


def test_what_is_exposed_keeps_near_one_of_32_which_is_not_what_was_published(
    clustered: Scenario, scattered: Scenario
) -> None:
    """25.2 % (one source) without clustering; 27.71 ms with it, 32 times which is below the whole batch."""
    known = by_id()
    for one in (clustered, scattered):
        report = run_scenario(split(one, 32)).report
        share = report.exposed_ms["all_to_all"] / report.raw_ms["all_to_all"]
        print(f"exposed {report.exposed_ms['all_to_all']:.1f} ms, {share:.1%} of the all-to-all")
        assert share == pytest.approx(1 / 32, rel=0.1)
        assert share < 0.2 * known["T19b"].value / 100
    assert 32 * known["T20"].value < known["T13d"].value


def test_independent_keys_of_the_same_growth_cannot_be_clustered_away(clustered: Scenario) -> None:
    alone = clustered.with_overrides(
        ["workload.keys.exponent=0.87", "workload.histories={group: 1, share: 90 %}"]
    )
    assert growth(alone) == pytest.approx(growth(alone.with_overrides(SCATTERED)), rel=1e-9)
    assert growth(alone) > 1.12


def without_sources(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return {name: without_sources(one) for name, one in part.items() if name != "source"}


def test_the_scenario_holds_every_number_of_the_one_that_was_fitted_but_the_keys(checkout: Path) -> None:
    npu, ours = (
        without_sources(load(checkout / f"scenarios/nestpipe/{name}.yaml").document.data)
        for name in ("npu", "clustering")
    )
    assert ours["cluster"] == npu["cluster"]
    assert (ours["sharding"], ours["run"]) == (npu["sharding"], npu["run"])
    differ = {name for name in ours["workload"] if ours["workload"][name] != npu["workload"].get(name)}
    assert differ == {"keys", "histories", "clustering"}
