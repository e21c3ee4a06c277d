"""Prices: written out or from the catalog they cost the same, and what they do not buy is said."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.cli.running import run
from analysis.plan import answer, read_question
from analysis.plan.basis import NO_SERVERS, basis, without_prices
from simulator.hardware import catalog
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.machine_spec import AcceleratorSpec
from simulator.scenario.priced import unlike_priced
from simulator.scenario.servers_spec import HostSpec
from simulator.scenario.shipped_files import shipped_folder

QUICKSTART = shipped_folder() / "quickstart.yaml"
PRICED = [
    name
    for name in catalog.names("accelerator")
    if "price_usd_per_hour" in catalog.entry("accelerator", name)
]


def written(kind: str, name: str, fields: Any) -> dict[str, Any]:
    """Return a catalog entry in the form of a scenario."""
    entry = catalog.entry(kind, name)
    found = {"name": name} | ({"kind": entry["kind"]} if kind == "accelerator" else {})
    for field in fields:
        if field == "peak_flops":
            found[field] = {precision: rate["value"] for precision, rate in entry[field].items()}
        elif "value" in entry.get(field, ()):
            found[field] = entry[field]["value"]
    return found


def quickstart(accelerator: Any, *settings: str, **cluster: Any) -> Scenario:
    chosen = {"accelerator": accelerator, "host": "dgx_a100", "fabric": "dgx_a100", **cluster}
    lines = [
        f"cluster.{name}={yaml.safe_dump(part, default_flow_style=True)}" for name, part in chosen.items()
    ]
    return load(QUICKSTART, [*lines, *settings])


@pytest.mark.parametrize("name", ["a100_80", "h100", "v100"])
def test_a_catalog_entry_written_out_costs_the_same(name: str) -> None:
    precision = "workload.model.precision=fp16"
    named = quickstart(name, precision)
    out = quickstart(written("accelerator", name, AcceleratorSpec.model_fields), precision)
    assert out.cluster.price_usd_per_hour == named.cluster.price_usd_per_hour
    costs = [run_scenario(one, "vector").report.cost for one in (named, out)]
    assert costs[0] == costs[1] and costs[0] is not None and costs[0]["usd_per_million_samples"] > 0


def test_the_price_of_a_host_written_out_is_per_hour_as_well() -> None:
    host = written("host", "dgx_a100", HostSpec.model_fields)
    dear = quickstart("a100_80", host={**host, "price_usd_per_hour": "7.2 USD/h"}).cluster
    assert dear.host.price_usd_per_hour == 7.2
    same = quickstart("a100_80", host={**host, "price_usd_per_hour": "0.002 USD/s"}).cluster
    assert same == dear
    assert dear.price_usd_per_hour == pytest.approx(8 * 3.43 + 7.2)


# what a price buys


@pytest.mark.parametrize("name", PRICED)
def test_every_price_names_the_machine_that_is_sold_for_it(name: str) -> None:
    """The machine is in the catalog and holds this accelerator, or one like it with another memory."""
    sold = catalog.machine(catalog.entry("accelerator", name)["price_usd_per_hour"]["of"])
    mine = catalog.accelerator(name)
    assert sold.accelerator.peak_flops == mine.peak_flops
    assert sold.accelerator.price_usd_per_hour == mine.price_usd_per_hour


def test_a_machine_that_is_there_for_its_price_lends_no_parts() -> None:
    assert catalog.entry("machine", "aws_p4de_24xlarge")["only_priced"]
    alone = load(QUICKSTART, ["cluster.accelerator=a100_80"]).cluster
    assert alone.host.name == "dgx_a100" and alone.fabric == catalog.fabric("dgx_a100")


@pytest.mark.parametrize("name", PRICED)
def test_the_machine_of_a_price_is_like_itself(name: str) -> None:
    machine = catalog.entry("accelerator", name)["price_usd_per_hour"]["of"]
    entry, sold = catalog.entry("machine", machine), catalog.machine(machine)
    torus = catalog.entry("fabric", entry["fabric"])["kind"] == "torus"
    part = {"host": entry["host"], "per_host": sold.per_host, "hosts": 8}
    chosen = quickstart(
        entry["accelerator"], **part, **({"fabric": None} if torus else {"fabric": entry["fabric"]})
    )
    assert unlike_priced(chosen.spec.cluster, chosen.cluster) == []


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        (
            {"hosts": 2},
            "price of a100_80 is that of aws_p4de_24xlarge (per accelerator 6.25 GB/s out of the fast",
        ),
        ({"hosts": 2}, "and this cluster has 25 GB/s, 16"),
        ({"hosts": 1}, "(per accelerator 6 host cores), and this cluster has 16"),
        ({"host": "aws_p4d_24xlarge", "per_host": 16, "hosts": 1}, "8 accelerators per host"),
        (
            {"accelerator": "v100", "host": "aws_p3_16xlarge", "fabric": "dgx_1"},
            "16 GB of device memory), and this cluster has 32 GB",
        ),
        ({"host": "dgx_h100", "hosts": 1}, "154.6 GB of host memory), and this cluster has 14, 250 GB"),
    ],
)
def test_what_a_cluster_has_beyond_the_priced_machine_is_said(cluster: dict[str, Any], said: str) -> None:
    scenario = quickstart(cluster.pop("accelerator", "a100_80"), "workload.model.precision=fp32", **cluster)
    (line,) = unlike_priced(scenario.spec.cluster, scenario.cluster)
    assert said in line
    assert line in run_scenario(scenario, "vector").report.notes


def test_wired_cards_are_compared_as_well() -> None:
    wires = {"kind": "flat", "start_up": "9 us", "nics": {"per_host": 8, "bandwidth": "200 Gb/s"}}
    wires["inside"] = {"kind": "switch", "bandwidth": "300 GB/s", "latency": "1 us"}
    scenario = quickstart("a100_80", fabric=wires, host="aws_p4d_24xlarge", hosts=4)
    (line,) = unlike_priced(scenario.spec.cluster, scenario.cluster)
    assert "(per accelerator 6.25 GB/s out of the fast domain), and this cluster has 25 GB/s" in line


def test_accelerators_written_out_or_without_a_price_are_not_judged() -> None:
    out = quickstart(written("accelerator", "a100_80", AcceleratorSpec.model_fields), hosts=2)
    unpriced = load(QUICKSTART, ["cluster.accelerator=ascend_910b", "workload.model.precision=fp16"])
    for scenario in (out, unpriced):
        assert unlike_priced(scenario.spec.cluster, scenario.cluster) == []


QUESTION = """scenario: quickstart.yaml
target: {samples: 1e9}
hardware: [{name: a100, workers: [8, 16]%s}]
policies: [{kind: serialized}]
"""


def question(folder: Path, money: str = "", more: str = "") -> Any:
    (folder / "quickstart.yaml").write_text(QUICKSTART.read_text())
    (folder / "q.plan.yaml").write_text(QUESTION % money + more)
    return read_question(folder / "q.plan.yaml")


def test_a_plan_says_of_which_machine_its_price_is_at_its_largest_size(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        found = answer(question(tmp_path), executor)
    (line,) = found.basis.rates[0].unlike
    assert "6.25 GB/s out of the fast domain" in line and line in found.basis.assumptions
    assert found.to_dict()["basis"]["rates"][0]["unlike"] == (line,)
    assert not any("price of" in note for note in found.notes)


def test_a_price_of_the_question_is_of_no_machine(tmp_path: Path) -> None:
    found = basis(question(tmp_path, ", money: {price: 2 USD/h}"))
    assert found.rates[0].unlike == () and not any("price of" in text for text in found.assumptions)


def test_parameter_servers_are_said_to_be_free_where_some_plan_has_them(tmp_path: Path) -> None:
    remote = "sharding: [{kind: row_wise, tier: {kind: remote, servers: 2}}]\n"
    assert NO_SERVERS in basis(question(tmp_path, more=remote)).assumptions
    assert NO_SERVERS not in basis(question(tmp_path)).assumptions
    assert any("full power all the time" in text for text in basis(question(tmp_path)).assumptions)


def test_other_notes_of_a_run_stay() -> None:
    assert without_prices("a is left out; price of x is that of y (1), and z; b") == "a is left out; b"


def test_a_group_of_each_kind_is_judged_by_its_own_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(shipped_folder() / "fabrics" / "mixed.yaml"), "--engine", "vector"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "price of a100_80 is that of aws_p4de_24xlarge" in out
    assert "price of h100 is that of aws_p5_48xlarge (per accelerator 12 host cores)" in out
