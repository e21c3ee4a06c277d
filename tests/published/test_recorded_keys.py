"""The scenario on a recorded log: what was measured is what the run moves."""

from pathlib import Path

import pytest

from simulator.scenario import Scenario, load, run_scenario
from simulator.workload.keys import LogStatistics, summarize


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
