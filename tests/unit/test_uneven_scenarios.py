"""Shipped scenarios whose exchanges are uneven: what the load of single links does to their steps."""

from pathlib import Path

import numpy as np
import pytest

from simulator.errors import InfeasibleError
from simulator.quantities import AllToAllWork, leaves
from simulator.scenario import Scenario, load, run_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def exchange_ms(scenario: Scenario) -> float:
    """Return the time of the exchange that takes rows to their sources."""
    stage = next(node.stage for node in scenario.graph.nodes if node.name.startswith("exchange"))
    return float(np.max(scenario.costs.seconds(stage.work))) * 1e3


@pytest.mark.parametrize(("chips", "by_hand"), [(64, 11.6), (128, 22.0), (512, 102.7)])
def test_whole_tables_on_a_torus_take_what_the_hot_chips_links_carry(chips: int, by_hand: float) -> None:
    scenario = load(SCENARIOS / "google" / "ads.yaml").with_workers(chips)
    assert exchange_ms(scenario) == pytest.approx(by_hand, rel=0.05)


def test_whole_tables_below_an_oversubscribed_tree_load_the_leaves_that_own_them_alone() -> None:
    scenario = load(SCENARIOS / "fabrics" / "fat_tree.yaml", ["sharding.kind=table_wise"])
    stage = next(node.stage for node in scenario.graph.nodes if node.name.startswith("exchange"))
    work = next(one for one in leaves(stage.work) if isinstance(one, AllToAllWork))
    busiest = float(np.max(np.maximum(work.bytes, work.received_bytes or 0.0)))
    as_if_all = float(np.max(scenario.costs.seconds(AllToAllWork(busiest))))
    assert float(np.max(scenario.costs.seconds(work))) < 0.7 * as_if_all


def test_tables_by_row_let_more_chips_train_faster_and_fit_where_whole_ones_do_not() -> None:
    path, rates = SCENARIOS / "google" / "ads.yaml", []
    for chips in (64, 512):
        scenario = load(path, ["sharding.kind=row_wise"]).with_workers(chips)
        rates.append(run_scenario(scenario, engine="vector").report.throughput_samples_per_s)
    assert 4 * rates[0] < rates[1]
    with pytest.raises(InfeasibleError, match="smaller batch") as refused:
        run_scenario(load(path).with_workers(1536))
    assert "more workers" not in str(refused.value)


@pytest.mark.parametrize("chips", [4, 8, 16, 32])
def test_coalescing_calls_is_never_slower_on_the_same_bytes(chips: int) -> None:
    scenario = load(SCENARIOS / "servers" / "caught_up.yaml", ["run.batches=30", "run.warm_up=10"])
    steps = [
        run_scenario(scenario.with_workers(chips).with_policy(policy)).report.step_ms["mean"]
        for policy in ({"kind": "rpc_coalesced"}, {"kind": "rpc_per_table", "asynchronous": True})
    ]
    assert steps[0] <= steps[1] * 1.001
