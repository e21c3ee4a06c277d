"""No resource is busy for longer than a step lasts, where stages that overlap share it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
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


def most_used(scenario: Scenario, engine: str = "events") -> float:
    """The share of the counted steps in which the busiest resource works, before it is rounded to 1."""
    return max(run_scenario(scenario, engine).used.even.values())


@pytest.mark.parametrize("path", some(SHIPPED, gate=6), ids=lambda path: path.stem)
def test_no_resource_of_a_shipped_scenario_is_busy_for_longer_than_a_step_under_any_policy(
    path: Path,
) -> None:
    scenario, found = load(path, ["run.interval=null"]), {}
    for name in catalog.names():
        try:
            found[name] = most_used(scenario.with_policy(policy_part(scenario, name, 4)))
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
    assert 0.7 < report.busy_share["host"] < 0.8


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


def test_where_nothing_is_shared_no_share_exceeds_one_and_a_note_says_what_stages_ask_for_in_vain() -> None:
    scenario = load(CACHED, ["sharding.tier=dram", "policy={kind: dual_buffer}"])
    assert most_used(scenario.with_policy({"kind": "serialized"}), "vector") <= 1 + ROUNDING
    alone = scenario.with_overrides(["run.contention=false"])
    for run in (run_scenario(scenario, "vector"), run_scenario(alone)):
        assert run.used.even["dram"] > 1 + ROUNDING
        assert max(run.report.busy_share.values()) == 1.0
        assert "nothing is shared" in run.report.fidelity
        assert any("host 1.0" in note and "the step is too short" in note for note in run.report.notes)
    assert not any("too short" in note for note in run_scenario(scenario).report.notes)


ON_ONE_HOST = """
cluster:
  {accelerator: a100_80, per_host: 8, hosts: 1,
   host: {name: h, cores: 64, dram_bytes: 2 TB, dram_bandwidth: 100 GB/s, dram_efficiency: 0.5}}
workload:
  model: {kind: profile, flops: 1000, memory_bytes: 0 B, parameters: 1000, activation_bytes: 4 kB}
  tables: [{name: t, rows: 2e7, dimension: 128, pooling: 20}]
  keys: {kind: uniform}
  batch: 4096
sharding: {kind: table_wise, tier: dram}
policy: {kind: serialized}
run: {batches: 40, warm_up: 16}
"""


def test_of_a_host_that_one_rank_has_to_itself_it_uses_at_most_all(tmp_path: Path) -> None:
    """One rank owns the only table and reads it with all of the host's memory; seven wait."""
    path = tmp_path / "hot.yaml"
    path.write_text(ON_ONE_HOST)
    run = run_scenario(load(path))
    owner = next(node.stage.work for node in run.timeline.graph.nodes if node.name == "retrieve")
    even_part_ms = float(np.max(run.scenario.costs.seconds(owner))) * 1e3
    assert even_part_ms > run.report.step_ms["mean"]  # it could not do that with an eighth of the host
    assert 0.4 < run.report.busy_share["host"] <= 1


def test_a_run_that_uses_more_than_there_is_ends_with_that_and_hides_nothing_by_cutting_it_off() -> None:
    """Stages that overlap as if alone ask for more host memory than there is; the run is said to share it."""
    alike = ["policy={kind: stale_prefetch}", "sharding.tier=dram"]
    alone = run_scenario(load(CACHED, [*alike, "run.contention=false"]))
    assert alone.used.repeats and max(alone.used.certain.values()) > 1 + ROUNDING
    claimed = replace(alone, scenario=load(CACHED, alike))
    assert claimed.shares
    with pytest.raises(AssertionError, match="more is used than there is"):
        claimed.report  # noqa: B018


def test_what_is_under_way_at_both_ends_of_a_window_counts_for_sure_only_where_it_is_as_far() -> None:
    steady = run_scenario(load(CACHED, ["policy={kind: stale_prefetch}"])).used
    varied = run_scenario(load(CACHED, ["policy={kind: stale_prefetch}", "run.jitter.lookup=30%"])).used
    assert steady.repeats and steady.certain is steady.even
    assert not varied.repeats and varied.certain is varied.least
    assert all(share <= varied.even[name] for name, share in varied.least.items())


@pytest.mark.parametrize("policy", ["dual_buffer", "{kind: nestpipe, micro_batches: 4}", "stale_prefetch"])
def test_a_card_that_leads_to_servers_and_to_other_hosts_carries_no_more_than_it_can(policy: str) -> None:
    kind = policy if policy.startswith("{") else f"{{kind: {policy}}}"
    remote = "sharding.tier={kind: remote, servers: 8}"
    assert most_used(load(CACHED, [remote, f"policy={kind}"])) <= 1 + ROUNDING


def test_what_gathers_rows_for_an_exchange_shares_device_memory_with_the_passes_beside_it() -> None:
    """Wires cost next to nothing: memory sets the step, and would be busy for 1.1 steps if ends were free."""
    settings = [
        "policy={kind: stale_prefetch}",
        "cluster.fabric={kind: two_level, within: 4000 GB/s, between: 50 GB/s, latency: 0 us}",
        "workload.tables=[{name: a, rows: 40e6, dimension: 64, pooling: 100, copies: 4}]",
        "workload.model={kind: profile, flops: 1000, memory_bytes: 200 kB, parameters: 1000, "
        "activation_bytes: 4 kB}",
        "workload.batch=4096",
        "workload.input=null",
    ]
    run = run_scenario(load(shipped_folder() / "quickstart.yaml", settings))
    assert 0.98 < run.used.even["hbm"] <= 1 + ROUNDING
    assert {"exchange", "route"} & run.report.interference_by_stage_ms.keys()
