"""No resource is busy for longer than a step lasts, where stages that overlap share it."""

from pathlib import Path

import pytest
from tiers import some

from analysis.compare import policy_part
from simulator.costs.occupancy import occupancy, on_links
from simulator.errors import InfeasibleError, InputError
from simulator.policies import catalog
from simulator.quantities import busiest
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

SHIPPED = [
    path
    for path in sorted(shipped_folder().rglob("*.yaml"))
    if path.suffixes not in ([".grid", ".yaml"], [".plan", ".yaml"])
]
ROUNDING = 1e-9
CACHED = shipped_folder() / "sharding" / "cached.yaml"


def busiest_share(scenario: Scenario, engine: str = "events") -> float:
    return max(run_scenario(scenario, engine).report.busy_share.values())


@pytest.mark.parametrize("path", some(SHIPPED, gate=6), ids=lambda path: path.stem)
def test_no_resource_of_a_shipped_scenario_is_busy_for_longer_than_a_step_under_any_policy(
    path: Path,
) -> None:
    scenario, found = load(path, ["run.interval=null"]), {}
    for name in catalog.names():
        try:
            found[name] = busiest_share(scenario.with_policy(policy_part(scenario, name, 4)))
        except (InfeasibleError, InputError):  # not every policy suits every scenario
            continue
    assert found
    assert {name: share for name, share in found.items() if share > 1 + ROUNDING} == {}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_nor_does_a_stage_occupy_anything_for_longer_than_it_takes(path: Path) -> None:
    scenario = load(path)
    for node in scenario.graph.nodes:
        work, costs = node.stage.work, scenario.costs.by_kind[0]
        longest = busiest(costs.seconds(work)) * (1 + ROUNDING)
        spent = occupancy(work, costs).values()
        assert max((*spent, *on_links(work, costs).values()), default=0.0) <= longest, node.name


@pytest.mark.parametrize("tier", ["dram", "{kind: hbm_cache, share: 0}"])
def test_a_row_that_streams_from_host_memory_to_the_device_passes_host_memory_once(tier: str) -> None:
    scenario = load(CACHED, [f"sharding.tier={tier}"])
    report = run_scenario(scenario).report
    retrieve, write_back = (
        next(node.stage.work for node in scenario.graph.nodes if node.name == name)
        for name in ("retrieve", "write_back")
    )
    spent = sum(occupancy(work, scenario.costs)["dram"] for work in (retrieve, write_back))
    apart = (busiest(scenario.costs.seconds(work)) for work in (retrieve, write_back))
    assert 0.99 * sum(apart) < spent
    assert 0.75 < report.busy_share["host"] < 0.85


def test_start_ups_leave_the_network_idle() -> None:
    scenario = load(
        shipped_folder() / "fabrics" / "mixed.yaml", ["policy={kind: nestpipe, micro_batches: 4}"]
    )
    report, costs = run_scenario(scenario).report, scenario.costs
    held = sum(occupancy(node.stage.work, costs).get("network", 0.0) for node in scenario.graph.nodes)
    assert held * 1e3 > report.step_ms["mean"]  # start-ups included, more than there is
    assert report.busy_share["network"] < 0.95


def test_calls_to_servers_and_collectives_share_the_card_that_both_leave_by() -> None:
    scenario = load(shipped_folder() / "bagpipe" / "criteo_kaggle.yaml", ["cluster.servers=null"])
    assert 0.9 < run_scenario(scenario).report.busy_share["network"] <= 1 + ROUNDING


def test_the_vector_engine_shares_nothing_and_says_so() -> None:
    scenario = load(CACHED, ["sharding.tier=dram", "policy={kind: dual_buffer}"])
    assert busiest_share(scenario.with_policy({"kind": "serialized"}), "vector") <= 1 + ROUNDING
    report = run_scenario(scenario, "vector").report
    assert report.busy_share["host"] > 1 + ROUNDING
    assert "nothing is shared" in report.fidelity
