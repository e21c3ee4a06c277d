"""Nothing is advised by a number that the event engine contradicts: here one rank uses a whole host."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from analysis.compare import Request, compare
from analysis.explain import explain
from analysis.plan import Answered, answer, read_question
from analysis.sensitivity import MOST_PARAMETERS, RUN_OF_MORE
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.bounds import least_step_ns

SCENARIO = """
name: x
cluster:
  accelerator: a100_80
  per_host: 8
  hosts: 1
  host: {name: h, cores: 64, dram_bytes: 2 TB, dram_bandwidth: 100 GB/s, dram_efficiency: 0.5}
workload:
  model: {kind: profile, flops: 1000.0, memory_bytes: 0 B, parameters: 1000.0, activation_bytes: 4 kB}
  tables: [{name: t0, rows: 20000000, dimension: 128, pooling: 20}]
  keys: {kind: uniform}
  batch: 4096
sharding: {kind: table_wise, tier: dram}
policy: {kind: serialized}
run: {batches: 40, warm_up: 16}
"""
QUESTION = """
scenario: base.yaml
target: {samples: 1e10%s}
hardware:
  - {name: whole_tables, workers: [8], money: {price: 2 USD/h, power: 650 W},
     settings: {sharding: {kind: table_wise, tier: dram}}}
  - {name: spread_slow_host, workers: [8], money: {price: 2 USD/h, power: 650 W},
     settings: {sharding: {kind: row_wise, tier: dram}, cluster.host.dram_bandwidth: 20 GB/s}}
policies: [{kind: serialized}]
"""


@pytest.fixture
def one_owner(tmp_path: Path) -> Scenario:
    """One rank of eight owns the only table, and may use all of its host."""
    (tmp_path / "base.yaml").write_text(SCENARIO, encoding="utf-8")
    return load(tmp_path / "base.yaml")


def asked(folder: Path, more: str) -> Answered:
    (folder / "ask.plan.yaml").write_text(QUESTION % more, encoding="utf-8")
    with ThreadPoolExecutor(1) as executor:
        return answer(read_question(folder / "ask.plan.yaml"), executor)


def test_the_bound_of_unlike_ranks_is_not_that_of_even_parts_of_the_host(one_owner: Scenario) -> None:
    run, estimate = run_scenario(one_owner), run_scenario(one_owner, "vector")
    assert run.report.step_ms["mean"] < 0.25 * estimate.report.step_ms["mean"]
    assert explain(one_owner).lower_bound_ms == run.report.lower_bound_ms <= run.report.step_ms["mean"]
    assert 0.95 * run.breakdown.step_ns < least_step_ns(one_owner) <= run.breakdown.step_ns
    assert estimate.report.lower_bound_ms <= run.report.step_ms["mean"]


def test_the_vector_engine_calls_its_step_an_estimate(one_owner: Scenario) -> None:
    fidelity = run_scenario(one_owner, "vector").report.fidelity
    assert "an estimate" in fidelity and "bound" not in fidelity


def test_explain_advises_what_a_run_with_the_parameter_changed_gives(one_owner: Scenario) -> None:
    found = explain(one_owner)
    effects = {one.parameter: one for one in found.sensitivities}
    memory = effects["cluster.host.dram_bandwidth"]
    link = effects["cluster.accelerator.host_link_bandwidth"]
    wider = run_scenario(one_owner.with_overrides(["cluster.host.dram_bandwidth=200 GB/s"]))
    assert memory.doubled_ms == wider.report.step_ms["mean"] == pytest.approx(found.step_ms, rel=1e-6)
    assert link.doubled_ms is not None and link.doubled_ms < 0.7 * found.step_ms
    assert found.binds == "host link"
    assert {one.engine for one in found.sensitivities} == {"events"}


def test_where_even_parts_of_the_host_bind_explain_says_host_memory(one_owner: Scenario) -> None:
    spread = one_owner.with_overrides(["sharding={kind: row_wise, tier: dram, owners: drawn}"])
    found = explain(spread)
    assert found.binds == "host memory"
    effects = {one.parameter: one.elasticity for one in found.sensitivities}
    assert effects["cluster.host.dram_bandwidth"] < -0.5


def test_of_more_parameters_than_can_be_run_each_says_what_its_effect_is_from(one_owner: Scenario) -> None:
    host = "{name: h, cores: 64, dram_bytes: 2 TB, dram_bandwidth: %d GB/s, dram_efficiency: 0.5}"
    groups = ", ".join(f"{{accelerator: a100_80, hosts: 1, host: {host % (100 + n)}}}" for n in range(8))
    found = explain(one_owner.with_overrides([f"cluster={{per_host: 8, groups: [{groups}]}}"]))
    engines = [one.engine for one in found.sensitivities]
    assert len(engines) > MOST_PARAMETERS and engines.count("events") == RUN_OF_MORE
    assert set(engines) == {"events", "estimate"}


@pytest.mark.parametrize("target", ["", ", within: 3 h"])
def test_the_plan_that_only_sharing_the_host_makes_best_is_found(
    tmp_path: Path, one_owner: Scenario, target: str
) -> None:
    found = asked(tmp_path, target)
    assert [plan.candidate.hardware for plan in found.plans] == ["whole_tables"]
    assert found.plans[0].hours == pytest.approx(2.126, abs=0.001)
    assert found.plans[0].usd == pytest.approx(34.02, abs=0.01)
    assert found.undecided == 0
    assert found.gains[0].parameter == "cluster.accelerator.host_link_bandwidth"


def test_compare_says_which_of_its_rows_are_estimates(one_owner: Scenario) -> None:
    for engine, estimated in (("vector", True), ("events", False)):
        (row,) = compare([one_owner], Request(("serialized",), engine=engine))
        assert any("estimate of the vector engine" in note for note in row.notes) == estimated
