"""Sharding as people write it: every kind through a scenario, and every mistake in one line."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from simulator.errors import RecscaleError
from simulator.scenario import load, run_scenario
from simulator.scenario.simulate import Run
from simulator.sharding import RankLoad

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
FILES = sorted(path.name for path in (SCENARIOS / "sharding").glob("*.yaml"))
RULES = (
    "[{tables: ['tiny*'], sharding: {kind: data_parallel}}, "
    "{tables: [cat_0], sharding: {kind: column_wise, shards: 2, tier: hbm}}]"
)
KINDS = [
    "{kind: row_wise, tier: hbm, shares: [2, 1]}",
    "{kind: row_wise, tier: hbm, exchange: pooled}",
    "{kind: table_wise, tier: hbm}",
    "{kind: table_wise, tier: dram, exchange: pooled}",
    "{kind: column_wise, shards: 4, tier: hbm}",
    "{kind: table_row_wise, tier: hbm, owners: drawn}",
    "{kind: table_row_wise, tier: hbm, exchange: pooled}",
    "{kind: grid, shards: 2, tier: hbm, exchange: pooled}",
    "{kind: row_wise, tier: hbm, replicas: 2}",
    "{kind: row_wise, tier: dram, replicas: {count: 4, every: 3, rows: touched, adjacent: true}}",
    "{kind: row_wise, tier: {kind: hbm_cache, share: 10 %}}",
    "{kind: row_wise, tier: {kind: hbm_cache, share: 0.1, hit_rate: 0.9, below: {kind: remote, servers: 2}}}",
    "{kind: row_wise, tier: {kind: remote, servers: 4}}",
    f"{{kind: mixture, default: {{kind: row_wise, tier: hbm}}, rules: {RULES}}}",
    "{kind: mixture, default: {kind: row_wise}, rules: [{tables: [tiny_0], sharding: {kind: placed, "
    "parts: [{rank: 3, columns: 0.5}, {rank: 1, columns: 0.5}]}}]}",
]


@cache
def run_of(*settings: str) -> Run:
    return run_scenario(load(SCENARIOS / "quickstart.yaml", ["cluster.hosts=2", *settings]), "vector")


@pytest.mark.parametrize("policy", ["serialized", "dual_buffer"])
@pytest.mark.parametrize("sharding", KINDS)
def test_every_kind_runs_and_its_report_adds_up(sharding: str, policy: str) -> None:
    run = run_of(f"sharding={sharding}", f"policy={{kind: {policy}}}")
    report = run.report
    assert report.compute_ms + sum(report.exposed_ms.values()) == pytest.approx(report.step_ms["mean"])
    # the pace is that of what ran; the bound is lower where unlike ranks of a host could use all of it
    assert float(run.pace.period_ns) / 1e6 == pytest.approx(report.step_ms["mean"], rel=0.02)
    assert report.lower_bound_ms <= report.step_ms["mean"]
    assert all(np.isfinite(row["busbw_gbps"]) and row["bytes"] > 0 for row in report.collectives)


@pytest.mark.parametrize("name", FILES)
def test_every_shipped_file_runs_on_both_engines_alike_where_nothing_is_shared(name: str) -> None:
    scenario = load(SCENARIOS / "sharding" / name, ["run.contention=false"])
    events, vector = run_scenario(scenario), run_scenario(scenario, "vector")
    assert np.array_equal(events.timeline.update_ns, vector.timeline.update_ns)
    assert events.report.step_ms["mean"] > 0


def test_averaging_the_copies_costs_less_the_seldomer_it_is_done() -> None:
    def step_ms(every: int) -> float:
        replicas = f"{{count: 2, every: {every}}}"
        return run_of(f"sharding={{kind: row_wise, tier: hbm, replicas: {replicas}}}").report.step_ms["mean"]

    one, four = step_ms(1), step_ms(4)
    assert step_ms(4) < one
    # the step is a constant and the averaging over the interval
    eight = step_ms(8)
    assert (one - four) / (one - eight) == pytest.approx((1 - 1 / 4) / (1 - 1 / 8), rel=1e-3)


def test_an_averaging_stage_runs_in_every_kth_batch() -> None:
    run = run_of("sharding={kind: row_wise, tier: hbm, replicas: {count: 2, every: 4}}")
    nodes = [node for node in run.timeline.graph.nodes if node.stage.name == "synchronize"]
    assert [(node.stage.every, node.residue) for node in nodes] == [(4, 3)]
    told = run.report.staleness_steps
    assert told["observed_max"] == told["declared"] == 3  # updates of the other copy since the last averaging


def test_four_groups_bring_the_grouped_exchange_nearest_to_the_published_one() -> None:
    """NestPipe's 2D baseline at 1,536 workers: 438.36 ms of all-to-all; its number of groups is unknown."""
    raw = {
        count: run_scenario(
            load(SCENARIOS / "sharding" / "two_d_sparse.yaml", [f"sharding.replicas.count={count}"]), "vector"
        ).report.raw_ms["all_to_all"]
        for count in (2, 3, 4, 6)
    }
    assert min(raw, key=lambda count: abs(raw[count] - 438.36)) == 4
    assert raw[4] == pytest.approx(438.36, rel=0.08)


def test_the_cache_takes_load_off_the_host() -> None:
    cached = load(SCENARIOS / "sharding" / "cached.yaml")
    plain = cached.with_overrides(["sharding.tier=dram"])
    raw = [run_scenario(one, "vector").report.raw_ms["lookup"] for one in (cached, plain)]
    assert raw[0] < 0.5 * raw[1]


def test_rows_from_parameter_servers_are_reported_apart_from_the_lookup() -> None:
    host, served = (
        run_of(f"sharding={{kind: row_wise, tier: {tier}}}").report
        for tier in ("dram", "{kind: remote, servers: 1}")
    )
    assert host.raw_ms["parameter_server"] == host.exposed_ms["parameter_server"] == 0
    assert served.raw_ms["parameter_server"] > served.raw_ms["lookup"] > 0  # routing keys stays a lookup
    assert served.exposed_ms["parameter_server"] > 0


def test_the_load_of_ranks_can_be_asked_for() -> None:
    scenario = load(SCENARIOS / "sharding" / "mixture.yaml")
    load_of_ranks = RankLoad.of(scenario.step.traffic)
    assert load_of_ranks.imbalance["bytes"] > 1.5
    assert load_of_ranks.lookups.shape == (16,)


REFUSED = {
    "{kind: row_wize}": 'unknown kind "row_wize" (did you mean "row_wise"?)',
    "{kind: row_wise, tier: dran}": 'must be dram, hbm or ssd or a mapping, not "dran"',
    "{kind: row_wise, tier: {kind: hbm_cash}}": 'unknown kind "hbm_cash" (did you mean "hbm_cache"?)',
    "{kind: row_wise, tier: {kind: hbm_cache, shar: 0.2}}": 'unknown key "shar" (did you mean "share"?)',
    "{kind: row_wise, tier: {kind: hbm_cache, share: 1.5}}": "1.5",
    "{kind: row_wise, replicas: 3}": "16 ranks do not make 3 equal groups; take 2 or 4",
    "{kind: row_wise, replicas: {count: 2, every: 300}}": "256",
    "{kind: column_wise}": 'missing key "shards"',
    "{kind: column_wise, shards: 200}": 'table "cat_0" has 128 columns and cannot be cut into 200 parts',
    "{kind: table_wise, rank: 16}": "ranks are numbered from 0 to 15",
    "{kind: row_wise, shares: [1, 2, 3]}": "3 shares of rows do not repeat evenly over 16 ranks",
    "{kind: row_wise, tier: ssd}": "has no ssd_bandwidth",
    "{kind: mixture, default: {kind: row_wise}}": 'missing key "rules"',
    "{kind: mixture, default: {kind: row_wise}, rules: [{tables: [tony], sharding: {kind: row_wise}}]}": (
        'no table is called "tony"'
    ),
    "{kind: row_wise, exchange: pool}": "must be rows or pooled",
}


@pytest.mark.parametrize("sharding", REFUSED)
def test_every_mistake_costs_one_line_that_says_what_is_allowed(sharding: str) -> None:
    with pytest.raises(RecscaleError) as refusal:
        run_of(f"sharding={sharding}")
    assert REFUSED[sharding] in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert "sharding" in str(refusal.value) or "cluster" in str(refusal.value)


def test_a_sequence_model_refuses_pooled_rows() -> None:
    with pytest.raises(RecscaleError, match=r"sharding.*: a sequence model reads the row of each position"):
        run_scenario(load(SCENARIOS / "nestpipe" / "npu.yaml", ["sharding.exchange=pooled"]), "vector")


def test_a_host_with_disks_holds_tables_there() -> None:
    host = (
        "cluster.host={name: h, cores: 64, dram_bytes: 1 TB, dram_bandwidth: 400 GB/s, dram_efficiency: 0.5, "
        "ssd_bytes: 30 TB, ssd_bandwidth: 20 GB/s}"
    )
    ssd = run_of(host, "sharding.tier=ssd")
    assert sum(ssd.memory.ssd.values()) > 1e9
    assert ssd.report.raw_ms["lookup"] > run_of(host, "sharding.tier=dram").report.raw_ms["lookup"]
    small = host.replace("30 TB", "1 GB")
    with pytest.raises(RecscaleError, match="does not fit in disk per rank"):
        run_of(small, "sharding.tier=ssd")


def test_caches_on_the_chip_are_off_unless_asked_for() -> None:
    plain, cached = run_of(), run_of("cluster.rows={kind: on_chip}")
    assert plain.scenario.spec.cluster.rows.kind == "from_memory"
    assert cached.report.step_ms["mean"] < plain.report.step_ms["mean"]
