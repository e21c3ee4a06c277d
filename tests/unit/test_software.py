"""The `software` part of a scenario: what each key changes, and what is refused."""

import re
from importlib.resources import files
from typing import Any

import pytest
import yaml

from simulator.errors import InputError
from simulator.hardware.catalog import CONFIDENCE
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder
from simulator.scenario.software_catalog import gather_efficiency, names, profile, two_stream_factor
from simulator.units import parse_quantity

MIXTURE = shipped_folder() / "sharding" / "mixture.yaml"


def scenario(*settings: str) -> Scenario:
    base = ["policy.kind=serialized", "cluster.hosts=1", "workload.batch=2048"]
    return load(MIXTURE, [*base, *settings])


def step_ms(*settings: str) -> float:
    return float(run_scenario(scenario(*settings), "vector").breakdown.step_ns) / 1e6


@pytest.fixture(scope="module")
def plain() -> float:
    return step_ms()


def test_a_fixed_cost_is_added_to_each_step(plain: float) -> None:
    assert step_ms("software={fixed_cost_per_step: 3 ms}") == pytest.approx(plain + 3, abs=1e-3)


def test_the_host_takes_its_time_for_each_launch_unless_graphs_are_captured(plain: float) -> None:
    held = "software={host_time_per_op: 10 us, graph_capture: %s}"
    kernels = scenario().workload.model.quantities().kernels
    launches = 3 * kernels + 8 * len(scenario().workload.tables)
    assert step_ms(held % "false") == pytest.approx(plain + launches * 10e-3, abs=1e-3)
    assert step_ms(held % "true") == plain


@pytest.mark.parametrize(
    "part",
    [
        "slowdown: 2",
        "time_per_key: 5 ns",
        "passes: eager",
        "gather_efficiency: 0.2",
        "loader_rate: 100 k/s",
        "key_distribution: full_batch",
    ],
)
def test_more_to_do_takes_longer(plain: float, part: str) -> None:
    assert step_ms(f"software={{{part}}}") > 1.001 * plain


def test_half_as_wide_rows_travel_in_half_the_time() -> None:
    def sent(wire: str) -> float:
        step = scenario(f"software={{precision: {{wire: {wire}}}}}").step
        return float(step.traffic.row_bytes_received)

    assert sent("fp16") == sent("fp32") / 2


def test_formats_of_weights_and_gradients_replace_the_workload_s() -> None:
    changed = scenario("software={precision: {weights: fp16, gradients: bf16}}").workload
    assert {table.dtype for table in changed.tables} == {"fp16"}
    assert changed.gradient_bytes == 2.0


def test_small_tables_are_held_by_all_ranks() -> None:
    base = scenario()
    size = min(table.bytes for table in base.step.placed.exchanged)
    changed = scenario(f"software={{data_parallel_small_tables: {size:.0f} B}}").step.placed
    assert len(changed.replicated) > len(base.step.placed.replicated)


def test_a_band_follows_the_kind_of_machine() -> None:
    software = profile("hugectr")
    one, several = (scenario(f"cluster.hosts={hosts}").cluster for hosts in (1, 2))
    assert software.spread is not None
    band = software.band(one, 100.0)
    assert band == {
        "low": 100 / (1 + software.spread.one_host),
        "high": 100 * (1 + software.spread.one_host),
        "coverage": 0.8,
    }
    assert software.band(several, 100.0) != band


def test_a_machine_unlike_the_fitted_one_is_named() -> None:
    four = scenario("cluster.per_host=4", "software=hugectr")
    found = profile("hugectr").unlike(four.cluster)
    assert [one for one in found if one.startswith("4 accelerators per host")]
    report = run_scenario(four, "vector").report
    assert [one for one in report.extrapolated if "4 accelerators per host" in one]


def test_pcie_and_another_release_are_named() -> None:
    fabric = "{kind: two_level, within: 31.5 GB/s, between: 10 GB/s, latency: 5 us, within_efficiency: 0.5}"
    cluster = scenario(f"cluster.fabric={fabric}").cluster
    software = profile("hugectr").model_copy(update={"release": "20.01"})
    found = " ".join(software.unlike(cluster))
    assert "PCIe" in found
    assert "release 20.01" in found


def test_profiles_are_found_by_name_and_others_refused_with_the_nearest() -> None:
    assert {"hugectr", "pytorch", "torchrec"} <= set(names())
    with pytest.raises(InputError, match='did you mean "hugectr"'):
        profile("hugectrr")
    for find in (gather_efficiency, two_stream_factor):
        with pytest.raises(InputError):
            find("nothing")


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("{passes: lazy}", "lazy"),
        ("{gather_efficiency: 0}", "gather_efficiency"),
        ("{fixed_cost_per_step: 3}", "unit"),
        ("{slowdown: 0}", "slowdown"),
        ("nothing_like_it", "nothing_like_it"),
    ],
)
def test_a_mistake_is_told_in_one_line(part: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        _ = scenario(f"software={part}").step
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def numbers(data: Any) -> list[dict[str, Any]]:
    if isinstance(data, dict):
        if "value" in data:
            return [data]
        return [one for value in data.values() for one in numbers(value)]
    return []


@pytest.mark.parametrize("file", ["software.yaml", "gemm.yaml"])
def test_every_number_of_the_file_has_a_source_and_a_confidence(file: str) -> None:
    text = files("simulator.hardware.catalog").joinpath(file).read_text(encoding="utf-8")
    found = numbers({name: part for name, part in yaml.safe_load(text).items() if name != "sources"})
    assert len(found) > 10
    for one in found:
        assert len(one["source"].split()) > 3
        assert one["confidence"] in CONFIDENCE


def test_a_gather_efficiency_holds_on_all_groups_in_whatever_order_they_stand() -> None:
    mixed = shipped_folder() / "fabrics" / "mixed.yaml"
    groups = ["{accelerator: a100_80, hosts: 6}", "{accelerator: h100, hosts: 6}"]
    job = ["policy={kind: serialized}", "software={gather_efficiency: 0.1}"]
    orders = [load(mixed, [f"cluster.groups=[{', '.join(order)}]", *job]) for order in (groups, groups[::-1])]
    for one in orders:
        assert {group.accelerator.gather_efficiency for group in one.cluster.groups} == {0.1}
    steps = [float(run_scenario(one, "vector").breakdown.step_ns) for one in orders]
    assert steps[0] == steps[1]
    plain = orders[0].with_overrides(["software={}"])
    assert steps[0] > 1.01 * float(run_scenario(plain, "vector").breakdown.step_ns)


def bare_numbers(data: Any, place: str = "") -> list[str]:
    """Return where numbers, and values with units, stand without a source; settings are words and flags."""
    if isinstance(data, dict):
        if "value" in data:
            return []
        return [one for key, part in data.items() for one in bare_numbers(part, f"{place}.{key}")]
    if isinstance(data, list):
        return [one for at, part in enumerate(data) for one in bare_numbers(part, f"{place}[{at}]")]
    number = isinstance(data, int | float) and not isinstance(data, bool)
    return [place] if number or (isinstance(data, str) and re.match(r"[\d.]+ ?[a-zA-Z/]*$", data)) else []


@pytest.fixture(scope="module")
def software_file() -> dict[str, Any]:
    text = files("simulator.hardware.catalog").joinpath("software.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_no_number_of_the_software_file_stands_alone(software_file: dict[str, Any]) -> None:
    """But the machine and release that a fit was made on, which say where, not how much."""
    alone = [place for place in bare_numbers(software_file) if ".calibrated_on." not in place]
    assert alone == []
    assert bare_numbers({"a": {"b": 0.5, "c": "3 ms", "d": [1], "e": "fused"}}) == [".a.b", ".a.c", ".a.d[0]"]


def test_every_fitted_number_has_an_interval_around_it_its_range_and_its_date(
    software_file: dict[str, Any],
) -> None:
    found = numbers(software_file)
    assert len(found) >= 8 + 6 + 4 * len(software_file["entries"])
    for one in found:
        low, value, high = (
            plain_number(part) for part in (one["interval"][0], one["value"], one["interval"][1])
        )
        assert low <= value <= high
        assert one["date"] == "not stated" or re.fullmatch(r"20\d\d-\d\d", one["date"])
        assert one["seen"].keys() in ({"accelerators", "hosts", "samples"}, {"configurations"})
        assert all(count > 0 for count in one["seen"].values())


def plain_number(value: Any) -> float:
    if not isinstance(value, str):
        return float(value)
    return parse_quantity(value, "time" if value.endswith("s") and "/s" not in value else "frequency")


def test_a_profile_fitted_on_one_host_is_unlike_several() -> None:
    fitted = profile("hugectr").calibrated_on
    assert fitted is not None
    one, four = (scenario(f"cluster.hosts={hosts}").cluster for hosts in (1, 4))
    told = f"4 hosts (software fitted on {fitted.accelerator}, {fitted.per_host} per host, 1 host)"
    assert told in fitted.unlike_machine(four)
    assert not [words for words in fitted.unlike_machine(one) if "host)" in words.split(" (")[0]]
    assert not [words for words in fitted.unlike_machine(one) if words.startswith("1 host")]
