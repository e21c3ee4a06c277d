"""Steps of policies on parameter servers against closed forms, and what coalescing is worth."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.coalescing import BASELINES, COALESCED, PUBLISHED, region, regions, shaped, step_ms, table
from simulator.costs.occupancy import occupancy
from simulator.costs.rows import connection
from simulator.errors import InfeasibleError, InputError
from simulator.quantities import RowWork, RpcWork, leaves
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder
from simulator.sharding.moves import over_wire

Times = Mapping[str, float]


@cache
def shipped(file: str) -> Scenario:
    return load(shipped_folder() / file)


def times(scenario: Scenario) -> dict[str, float]:
    """What stages take, ms; all backward buckets together, and how long all-reduces go on after them."""
    stages = scenario.graph.pipeline.stages
    found = {one.name: 1e3 * float(np.max(scenario.costs.seconds(one.work))) for one in stages}
    buckets = [name for name in found if name.startswith("backward")]
    ends, reduced = np.cumsum([found[name] for name in buckets]), 0.0
    for end, name in zip(ends, buckets, strict=True):
        reduced = max(reduced, float(end)) + found[f"reduce.{name.split('.')[1]}"]
    passes = found["forward"] + float(ends[-1])
    return {**found, "passes": passes, "dense": passes + reduced - float(ends[-1]) + found["optimizer"]}


def exact(scenario: Scenario, policy: Mapping[str, Any]) -> tuple[float, Times]:
    """The simulated step (ms) where nothing is shared, and the times of its stages."""
    alone = scenario.with_policy(dict(policy)).with_overrides(["run.contention=false"])
    return run_scenario(alone).report.step_ms["mean"], times(alone)


FORMS: Mapping[str, tuple[Mapping[str, Any], Callable[[Times], float]]] = {
    "rpc_per_table": (
        {"kind": "rpc_per_table"},
        lambda t: max(t["fetch"] + t["passes"] + t["push"], t["dense"]),
    ),
    "rpc_coalesced": (COALESCED, lambda t: max(t["fetch"] + t["passes"] + t["push"], t["dense"])),
    "no_cache": (
        {"kind": "no_cache"},
        lambda t: t["fetch"] + t["dense"] + t["sync"] + t["apply"] + t["write_back"],
    ),
    "fae": (
        {"kind": "fae"},
        lambda t: max(t["fetch"] + t["passes"] + t["push"], t["dense"] + t["sync_hot"] + t["apply"]),
    ),
    "het": (
        {"kind": "het", "staleness": 4},
        lambda t: t["dense"] + t["update"] + (t["push"] + t["refresh"] + t["fetch"]) / 5,
    ),
}


@pytest.mark.parametrize("file", ["bagpipe/criteo_kaggle.yaml", "servers/caught_up.yaml"])
@pytest.mark.parametrize("name", FORMS)
def test_the_step_is_that_of_the_closed_form(name: str, file: str) -> None:
    policy, form = FORMS[name]
    step, spent = exact(shipped(file), policy)
    assert step == pytest.approx(form(spent), rel=1e-5)


def test_copying_messages_apart_costs_a_pass_through_host_memory_each_way() -> None:
    scenario = shipped("servers/caught_up.yaml")
    counted, copied = (exact(scenario, {**COALESCED, "reference_counted": word})[0] for word in (True, False))
    size = sum(rows * width for width, rows in scenario.step.served.batch_rows.items())
    extra = 2 * 2 * size / scenario.cluster.dram_bandwidth_per_rank
    assert copied - counted == pytest.approx(1e3 * extra, rel=1e-3)


@pytest.mark.parametrize(
    ("policy", "steps"),
    [
        ({"kind": "rpc_per_table"}, 0),
        (COALESCED, 0),
        ({"kind": "no_cache"}, 0),
        ({"kind": "fae"}, 0),
        ({"kind": "bagpipe", "lookahead": 16}, 0),
        ({"kind": "het", "staleness": 1}, 1),
        ({"kind": "het", "staleness": 6}, 6),
    ],
    ids=str,
)
def test_observed_staleness_is_what_is_declared(policy: Mapping[str, Any], steps: int) -> None:
    settings = ["run.warm_up=42", "run.batches=120"]
    scenario = shipped("bagpipe/criteo_kaggle.yaml").with_overrides(settings).with_policy(dict(policy))
    report = run_scenario(scenario).report
    assert report.staleness_steps["declared"] == report.staleness_steps["observed_max"] == steps
    assert report.consistency == ("stale" if steps else "synchronous")


# ---------------------------------------------------------------- coalescing


def test_the_page_shows_the_regions_of_today(checkout: Path) -> None:
    page = (checkout / "docs/concepts/server_policies.md").read_text(encoding="utf-8")
    assert table(checkout / "scenarios") in page


def test_the_shipped_slice_gains_what_is_published_over_calls_at_once() -> None:
    scenario = shipped("servers/caught_up.yaml")
    gain = run_step(scenario, BASELINES["at once"]) / run_step(scenario, COALESCED) - 1
    assert PUBLISHED[0] < gain < PUBLISHED[1]


def run_step(scenario: Scenario, policy: Mapping[str, Any]) -> float:
    return run_scenario(scenario.with_policy(dict(policy))).report.step_ms["mean"]


@pytest.mark.parametrize(("tables", "keys"), [(10, 5_000), (20, 500)])
@pytest.mark.parametrize("how", BASELINES)
def test_at_either_end_of_a_region_a_simulated_step_gains_six_or_ten_per_cent(
    tables: int, keys: int, how: str
) -> None:
    """Passes are made so long by a share of the peak that forward and backward reach."""
    one = shaped(shipped("servers/caught_up.yaml"), tables, keys)
    found = region(one, how)
    assert found.passes_ms is not None
    for passes, gain in zip(found.passes_ms, reversed(PUBLISHED), strict=True):
        slow = with_passes(one, passes)
        assert step_ms(slow, BASELINES[how]) / step_ms(slow, COALESCED) - 1 == pytest.approx(gain, rel=0.03)
        assert run_step(slow, COALESCED) == pytest.approx(step_ms(slow, COALESCED), rel=0.02)


def with_passes(scenario: Scenario, passes_ms: float) -> Scenario:
    dense = scenario.workload.model.quantities()
    flops = scenario.workload.batch * (dense.forward_flops + dense.backward_flops)
    share = flops / scenario.cluster.accelerator.peak(scenario.workload.precision) / (passes_ms / 1e3)
    return scenario.with_overrides([f"cluster.compute={{kind: utilization, share: {share!r}, source: test}}"])


def test_coalescing_saves_more_with_more_tables_and_at_once_no_more_with_more_keys() -> None:
    found = list(regions())
    saved = {(one.tables, one.keys, one.how): one.saved_ms for both in found for one in both}
    for (tables, keys, how), ms in saved.items():
        assert all(more > ms for (t, k, h), more in saved.items() if t > tables and (k, h) == (keys, how))
        if how == "at once":
            assert saved[tables, 500, how] == pytest.approx(ms, rel=0.01)


# ---------------------------------------------------------------- servers of a scenario


def calls_of(scenario: Scenario) -> list[RpcWork]:
    stages = scenario.graph.pipeline.stages
    found = [one for stage in stages for one in leaves(stage.work) if isinstance(one, RpcWork)]
    return [call for call in found if call.calls]


def test_a_hot_server_sets_the_step_and_stands_in_the_report() -> None:
    even = shipped("servers/caught_up.yaml").with_overrides(["sharding.tier.servers=4"])
    hot = even.with_overrides(["sharding.shares=[3, 1, 1, 1]", "sharding.owners=expected"])
    assert [call.hottest for call in calls_of(hot)] == pytest.approx([2.0, 2.0])
    slow = ["cluster.servers.bandwidth=10 Gb/s"]
    assert run_step(hot.with_overrides(slow), COALESCED) > 1.1 * run_step(
        even.with_overrides(slow), COALESCED
    )
    notes = run_scenario(hot).report.notes
    assert any("busiest of 4 parameter servers has 2 times the mean load" in note for note in notes)


@pytest.mark.parametrize("policy", ["rpc_per_table", "rpc_coalesced", "no_cache", "bagpipe", "fae", "het"])
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("kind: table_wise", "is not row_wise"),
        ("kind: column_wise, shards: 2", "is not row_wise"),
        ("kind: grid, shards: 2", "is not row_wise"),
        ("kind: row_wise, stacks: {count: 2}", "stacks would change nothing"),
        ("kind: row_wise, exchange: pooled", "servers send distinct rows, not sums of rows"),
    ],
)
def test_kinds_of_sharding_that_servers_ignore_are_refused(policy: str, kind: str, why: str) -> None:
    settings = [f"sharding={{{kind}, tier: {{kind: remote, servers: 2}}}}", f"policy={{kind: {policy}}}"]
    with pytest.raises(InputError, match=why):
        _ = shipped("servers/caught_up.yaml").with_overrides(settings).graph


def test_keys_go_along_with_gradients_and_against_the_rows_of_a_fetch() -> None:
    """Rows of 192 bytes and keys of 8, per direction, on the worker's card and on that of the only server."""
    scenario = shipped("bagpipe/criteo_kaggle.yaml")
    served, costs, ranks = scenario.step.served, scenario.costs, scenario.cluster.ranks
    servers = scenario.cluster.servers
    assert servers is not None and served.servers == 1
    (width,) = served.batch_rows
    rows, wide = served.batch_rows[width], servers.bandwidth / connection(scenario.cluster)
    assert width == 192
    for work, on_wire in ((served.fetch(served.batch_rows), 192), (served.push(served.batch_rows), 200)):
        calls = sum(occupancy(one, costs)["server"] for one in leaves(work) if isinstance(one, RpcWork))
        spent = occupancy(work, costs)
        assert spent["remote"] == pytest.approx(rows * on_wire / connection(scenario.cluster))
        card = ranks * rows * on_wire / servers.bandwidth
        assert spent["server"] == pytest.approx(max(calls, card))  # cores and card of a server work together
        assert card / spent["remote"] == pytest.approx(ranks / wide)


def test_rows_narrower_than_their_keys_are_fetched_at_the_pace_of_the_keys() -> None:
    narrow = over_wire({4.0: 100.0, 8.0: 10.0, 16.0: 1.0}, "remote", back=True)
    assert [(one.rows, one.on_wire) for one in leaves(narrow) if isinstance(one, RowWork)] == [
        (100.0, 8.0),
        (10.0, 8.0),
        (1.0, 16.0),
    ]


def test_rows_and_the_all_reduce_share_the_network_card_of_a_worker() -> None:
    """Alone, both fit beside each other; together they take at least what their bytes take on the card."""
    slower = ["cluster.fabric.between=9.692 Gb/s"]  # so that the card binds, and the server's hardly does
    scenario = shipped("bagpipe/criteo_kaggle.yaml").with_overrides(slower).with_policy(dict(COALESCED))
    alone, spent = exact(scenario, COALESCED)
    rows = sum(count * (width + width + 8) for width, count in scenario.step.served.batch_rows.items())
    card_ms = spent["reduce.0"] + 1e3 * rows / connection(scenario.cluster)
    shared = run_step(scenario, COALESCED)
    assert alone < card_ms <= shared
    assert shared == pytest.approx(card_ms + spent["passes"], rel=0.03)


def test_drawn_loads_of_servers_are_the_same_for_the_same_seed_and_spread_as_a_hash_does() -> None:
    scenario = shipped("bagpipe/criteo_kaggle.yaml")
    drawn = scenario.with_overrides(["sharding.owners=drawn", "sharding.tier.servers=16"])
    again = scenario.with_overrides(["sharding.owners=drawn", "sharding.tier.servers=16"])
    other = drawn.with_overrides(["run.seed=8"])
    assert drawn.step.served.hottest == again.step.served.hottest > 1.0
    assert drawn.step.served.hottest != other.step.served.hottest
    assert scenario.step.served.hottest == 1.0


def test_tables_that_do_not_fit_on_the_servers_are_refused_with_the_number_that_would_do() -> None:
    small = shipped("servers/caught_up.yaml").with_overrides(["cluster.servers.host.dram_bytes=64 GB"])
    with pytest.raises(InfeasibleError, match=r"do not fit on the parameter servers.*fits with 3 servers"):
        _ = small.graph


def test_policies_on_servers_are_refused_where_tables_have_owners_among_the_workers() -> None:
    scenario = shipped("servers/caught_up.yaml").with_overrides(["sharding={kind: row_wise, tier: hbm}"])
    with pytest.raises(InfeasibleError, match="not applicable here: the policy needs tables on parameter"):
        _ = scenario.graph
    mixed = shipped("servers/caught_up.yaml").with_overrides(
        ["sharding={kind: row_wise, tier: {kind: hbm_cache, share: 1 %, below: {kind: remote, servers: 2}}}"]
    )
    with pytest.raises(InputError, match=r'table "feature.*is not on parameter servers'):
        _ = mixed.graph
