"""The same wires described as two levels, a flat network, rails or a fat tree give the same step."""

import json
from typing import Any

import pytest
from equal import gb, told, us, wired
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.costs.occupancy import passing
from simulator.errors import InputError
from simulator.hardware import catalog
from simulator.hardware.fabric import WayOut
from simulator.quantities import AllToAllWork
from simulator.scenario.document import Document
from simulator.scenario.scenario import Scenario
from simulator.scenario.simulate import run_scenario

POLICIES: tuple[dict[str, Any], ...] = (
    {"kind": "serialized"},
    {"kind": "dual_buffer"},
    {"kind": "nestpipe", "micro_batches": 2},
    {"kind": "torchrec_sparse_dist"},
    {"kind": "hugectr"},
)
SHARDINGS: tuple[dict[str, Any], ...] = (
    {"kind": "row_wise", "tier": "dram"},
    {"kind": "row_wise", "tier": "hbm"},
    {"kind": "row_wise", "tier": {"kind": "remote", "servers": 2}},
    {"kind": "row_wise", "tier": "dram", "replicas": {"count": 2}},
    {"kind": "table_wise", "tier": "hbm"},
)


def scenario(fabric: dict[str, Any], hosts: int, **more: Any) -> Scenario:
    data = {
        "cluster": {
            "accelerator": "a100_80",
            "host": "dgx_a100",
            "per_host": 4,
            "hosts": hosts,
            "fabric": fabric,
        },
        "workload": {
            "model": {
                "kind": "dlrm",
                "dense_features": 13,
                "embedding_features": 4,
                "dimension": 64,
                "bottom": [512, 64],
                "top": [1024, 1024, 1],
                "precision": "tf32",
            },
            "tables": [
                {"name": "t", "rows": 1e6, "dimension": 64, "copies": 3},
                {"name": "u", "rows": 4e7, "dimension": 64},
            ],
            "keys": {"kind": "zipf", "exponent": 1.05},
            "batch": 4096,
            "input": {"bytes": "256 B", "cpu_time": "1 us"},
        },
        "run": {"batches": 14, "warm_up": 6, "seed": 1},
        **more,
    }
    return Scenario.of(Document(json.loads(json.dumps(data)), {}, "test"))


@st.composite
def _questions(draw: st.DrawFn) -> dict[str, Any]:
    within = draw(st.floats(20.0, 600.0))
    fabric = {"within": within, "between": draw(st.floats(1.0, 50.0)), "latency": draw(st.floats(0.5, 50.0))}
    return {
        "levels": fabric,
        "hosts": draw(st.sampled_from((2, 4))),
        "policy": draw(st.sampled_from(POLICIES)),
        "sharding": draw(st.sampled_from(SHARDINGS)),
        "engine": draw(st.sampled_from(("events", "vector"))),
        "cards": draw(st.booleans()),
    }


def compared(question: dict[str, Any]) -> None:
    levels, hosts = question["levels"], question["hosts"]
    plain = {
        "kind": "two_level",
        "within": gb(levels["within"]),
        "between": gb(levels["between"]),
        "latency": us(levels["latency"]),
    }
    parts = {"policy": question["policy"], "sharding": question["sharding"]}
    set_cards = [f"cluster.cards_on_host_link={str(question['cards']).lower()}"]
    wanted = told(scenario(plain, hosts, **parts).with_overrides(set_cards), question["engine"])
    for kind in ("flat", "rails", "fat_tree"):
        other = scenario(wired(kind, levels, 4, hosts), hosts, **parts).with_overrides(set_cards)
        assert told(other, question["engine"]) == pytest.approx(wanted, rel=1e-9, abs=1e-12), kind


@settings(max_examples=25, deadline=None)
@given(_questions())
def test_equal_wires_give_equal_steps_shares_and_bounds(question: dict[str, Any]) -> None:
    compared(question)


def test_parameter_servers_are_refused_by_name_where_no_card_leads_out() -> None:
    torus = {"kind": "torus", "dims": [4, 2], "link_bandwidth": "50 GB/s", "hop_latency": "1 us"}
    one = scenario(torus, 2, policy=POLICIES[0], sharding=SHARDINGS[2])
    with pytest.raises(InputError, match=r"leads out of a torus fabric.*take two_level"):
        run_scenario(one)
    alone = {**wired("flat", {"within": 100.0, "between": 10.0, "latency": 5.0}, 4, 1), "nics": None}
    with pytest.raises(InputError, match=r"no network card leads out of a wired fabric"):
        run_scenario(scenario(alone, 1, policy=POLICIES[0], sharding=SHARDINGS[2]))


def test_over_pcie_collectives_within_a_host_pass_the_links_that_copies_use() -> None:
    lane = {"bandwidth": "25 GB/s"}
    pcie = {"kind": "pcie", "lane": lane, "per_switch": 4, "trunk": {"bandwidth": "100 GB/s"}}
    fabric = wired("flat", {"within": 25.0, "between": 10.0, "latency": 5.0}, 4, 1)
    rows = {"policy": POLICIES[1], "sharding": SHARDINGS[1]}
    works = {}
    for name, inside in (("switch", fabric["inside"]), ("pcie", pcie)):
        costs = scenario({**fabric, "inside": inside}, 1, **rows).costs
        works[name] = passing(AllToAllWork(4e6), costs)
    assert "device_to_host" not in works["switch"]
    crossed = 3 / 4 * 4e6 / catalog.accelerator("a100_80").host_link_bandwidth
    assert works["pcie"]["device_to_host"] == works["pcie"]["host_to_device"] == pytest.approx(crossed)


def test_a_rank_reaches_servers_at_its_part_of_the_slowest_link_on_the_way_out() -> None:
    levels = {"within": 100.0, "between": 10.0, "latency": 5.0}
    rows = {"policy": POLICIES[0], "sharding": SHARDINGS[0]}
    fabric = scenario(wired("flat", levels, 4, 2), 2, **rows).cluster.fabric
    assert fabric.way_out(4) == WayOut(10e9, ("nic out", "nic in"))
    trunk = {"bandwidth": "12 GB/s"}
    slow = {"kind": "pcie", "lane": {"bandwidth": "25 GB/s"}, "per_switch": 2, "trunk": trunk}
    below = {**wired("flat", levels, 4, 2), "inside": slow}
    found = scenario(below, 2, policy=POLICIES[0], sharding=SHARDINGS[0]).cluster.fabric.way_out(4)
    assert found.rate == pytest.approx(6e9)  # two accelerators share a trunk of 12
