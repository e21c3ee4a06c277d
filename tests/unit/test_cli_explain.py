"""`recscale explain`: the cycle in words, and what each parameter is worth."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from analysis.cli.running import run
from analysis.explain import Explanation, explain, reason
from analysis.parameters import parameters
from analysis.sensitivity import gains
from simulator.results.bottleneck import Link
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

QUICKSTART = str(shipped_folder() / "quickstart.yaml")
NPU = str(shipped_folder() / "nestpipe" / "npu.yaml")
FEW = ("run.batches=14", "run.warm_up=6")  # it has settled by then
BRIEFLY = [word for setting in FEW for word in ("--set", setting)]

Explained = Callable[..., dict[str, Any]]


@pytest.fixture
def explained(capsys: pytest.CaptureFixture[str]) -> Explained:
    """Run the command in this process and return its answer."""

    def asked(*words: str) -> dict[str, Any]:
        code = run(["explain", *words, "--format", "json"])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        answer: dict[str, Any] = json.loads(printed.out)
        return answer

    return asked


def step_ms(scenario: Scenario) -> float:
    return run_scenario(scenario).report.step_ms["mean"]


@cache
def of_npu() -> Explanation:
    return explain(load(NPU, [*FEW]))


def test_the_cycle_adds_up_to_the_step_of_the_run(explained: Explained) -> None:
    answer, report = explained(QUICKSTART), run_scenario(load(QUICKSTART)).report
    assert answer["step_ms"] == report.step_ms["mean"]
    assert answer["lower_bound_ms"] == report.lower_bound_ms <= answer["step_ms"]
    assert sum(step["duration_ms"] for step in answer["cycle"]) == pytest.approx(answer["cycle_ms"])
    assert sum(step["share"] for step in answer["cycle"]) == pytest.approx(1.0)
    assert answer["cycle_ms"] / answer["batches"] == pytest.approx(answer["step_ms"])
    assert sum(answer["resources"].values()) == pytest.approx(1.0)


def test_the_resource_with_the_largest_share_binds(explained: Explained) -> None:
    assert explained(QUICKSTART)["binds"] == "compute"
    slow_links = "cluster.fabric={kind: two_level, within: 1 GB/s, between: 1 GB/s, latency: 1 us}"
    assert explained(QUICKSTART, "--set", slow_links)["binds"] == "network"
    assert explained(QUICKSTART, "--set", "workload.input.cpu_time=1 ms")["binds"] == "host cores"
    assert (
        explained(NPU, *BRIEFLY, "--set", "cluster.unexplained_host_time=9 ms")["binds"]
        == "unexplained host time"
    )


@pytest.mark.parametrize(
    ("path", "halved", "doubled"),
    [
        ("cluster.fabric.between", "12.5 GB/s", "50 GB/s"),
        ("cluster.fabric.latency", None, None),
        ("cluster.unexplained_host_time", None, None),
        ("workload.input.cpu_time", "100 us", "400 us"),
    ],
)
def test_what_a_parameter_is_worth_is_what_the_changed_file_gives(
    path: str, halved: str | None, doubled: str | None
) -> None:
    scenario = load(NPU, [*FEW])
    (one,) = [found for found in of_npu().sensitivities if found.parameter == path]
    amount, unit = one.value.split()
    for factor, bound, text in ((0.5, one.halved_ms, halved), (2.0, one.doubled_ms, doubled)):
        changed = scenario.with_overrides([f"{path}={text or f'{float(amount) * factor:g} {unit}'}"])
        assert bound == pytest.approx(step_ms(changed), rel=1e-6)


def test_what_is_named_from_the_catalog_is_tried_as_well() -> None:
    found = {one.parameter: one for one in explain(load(QUICKSTART)).sensitivities}
    peak = found["cluster.accelerator.peak_flops.tf32"]
    assert peak.halved_ms is not None and peak.doubled_ms is not None
    assert peak.halved_ms > peak.doubled_ms and -1 < peak.elasticity < 0
    assert "cluster.host.cores" in found and "cluster.fabric.within" in found


def test_a_share_is_raised_to_all_of_it_and_no_further() -> None:
    for parameter in parameters(load(QUICKSTART)):
        if parameter.path == "cluster.accelerator.matrix_efficiency":
            assert parameter.largest_factor == pytest.approx(1 / 0.72)


def test_what_does_not_bind_is_said_to_change_nothing_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", NPU, *BRIEFLY]) == 0
    out = " ".join(capsys.readouterr().out.split())
    nothing = out.partition("changes next to nothing because compute binds:")[2].partition("changes nothing")[
        0
    ]
    assert "cluster.fabric.within," in nothing and "workload.input.cpu_time" in nothing
    assert "because no stage's time depends on it: cluster.accelerator.matrix_efficiency" in out


def test_parameters_that_matter_most_come_first(explained: Explained) -> None:
    slopes = [abs(one["elasticity"]) for one in explained(QUICKSTART)["sensitivities"]]
    assert slopes == sorted(slopes, reverse=True) and slopes[0] > 0.1 and slopes[-1] == 0.0


@pytest.mark.parametrize(
    ("cause", "lag", "says"),
    [
        ("needs", 0, "send needs its result"),
        ("carry", 1, "send of the next batch must see its update"),
        ('stream "key network"', 0, "send queues behind it (key network)"),
        ('buffer "rows"', 2, "send 2 batches later needs its place in the buffer rows"),
        ("pace", -1, "send of the batch before is issued no earlier"),
        ("something new", 0, "send waits for it"),
    ],
)
def test_every_reason_to_wait_has_words(cause: str, lag: int, says: str) -> None:
    assert reason(Link("backward", cause, 10, lag), "send") == says


def test_the_text_fits_80_columns_and_shortens_a_long_cycle(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["explain", NPU, *BRIEFLY, "--set", "policy.micro_batches=32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) < 70
    assert any(line.startswith("forward, backward x 32 ") for line in lines)


def test_the_table_begins_with_what_gains_most_by_doubling(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", NPU, *BRIEFLY]) == 0
    lines = capsys.readouterr().out.partition("what would change it")[2].splitlines()
    doubled = [
        float(line.split()[-1].rstrip("%")) for line in lines if line.startswith("cluster.") and "%" in line
    ]
    assert len(doubled) > 5 and doubled == sorted(doubled) and doubled[0] < -10


def test_micro_batches_are_folded_unless_all_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", NPU, *BRIEFLY]) == 0
    out = capsys.readouterr().out
    assert "\nforward, backward x 8 " in out and "forward.3" not in out
    assert run(["explain", NPU, *BRIEFLY, "--verbose"]) == 0
    assert "\nforward.3 " in capsys.readouterr().out


def test_what_the_effects_leave_out_is_said(explained: Explained, capsys: pytest.CaptureFixture[str]) -> None:
    words = [QUICKSTART, "--set", "run.jitter.compute=5%"]
    answer = explained(*words)
    assert answer["left_out"] == ["jitter"] and explained(QUICKSTART)["left_out"] == []
    assert answer["without_jitter_ms"] == explained(QUICKSTART)["step_ms"] < answer["step_ms"]
    assert run(["explain", *words]) == 0
    assert "run on the event engine, jitter left out" in " ".join(capsys.readouterr().out.split())


def test_what_cannot_run_is_not_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", QUICKSTART, "--set", "workload.batch=9_000_000"]) == 1
    assert "does not fit" in capsys.readouterr().err


def test_csv_lists_the_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", QUICKSTART, "--format", "csv"]) == 0
    header, *records = capsys.readouterr().out.splitlines()
    assert header == "parameter,value,halved_ms,doubled_ms,elasticity,used,engine" and len(records) > 10


SLOW_LOADER = ("--set", "software={loader_rate: 1000 /s}")
FRAMEWORK = (
    "software={graph_capture: false, host_time_per_op: 1 ms, fixed_cost_per_step: 90 ms, slowdown: 1.5}"
)


def test_a_loader_that_binds_is_called_a_loader_and_a_faster_one_helps(explained: Explained) -> None:
    answer = explained(QUICKSTART, *SLOW_LOADER)
    (one,) = [found for found in answer["sensitivities"] if found["parameter"] == "software.loader_rate"]
    assert answer["binds"] == "loader" and "unexplained host time" not in answer["resources"]
    slower = explained(QUICKSTART, "--set", "software={loader_rate: 500 /s}")
    assert one["halved_ms"] == pytest.approx(slower["step_ms"], rel=1e-6)
    assert one["doubled_ms"] < 0.51 * answer["step_ms"]


def test_of_a_loader_that_binds_more_speed_is_a_gain() -> None:
    scenario = load(QUICKSTART, [SLOW_LOADER[1]])
    found = gains(scenario)
    assert found[0].parameter == "software.loader_rate"
    assert found[0].saved_share == pytest.approx(1 - 1 / 1.1, abs=1e-3)


@pytest.mark.parametrize("name", ["host_time_per_op", "fixed_cost_per_step", "slowdown"])
def test_what_a_framework_adds_is_worth_what_the_changed_file_gives(name: str) -> None:
    scenario = load(QUICKSTART, [FRAMEWORK])
    answer = explain(scenario)
    (one,) = [found for found in answer.sensitivities if found.parameter == f"software.{name}"]
    amount, _, unit = one.value.partition(" ")
    changed = scenario.with_overrides([f"software.{name}={2 * float(amount):g} {unit}"])
    assert one.doubled_ms == pytest.approx(step_ms(changed), rel=1e-6)
    assert answer.binds == "framework"


def test_longer_unexplained_host_time_leaves_the_framework_as_it_is() -> None:
    scenario = load(QUICKSTART, [FRAMEWORK, "cluster.unexplained_host_time=1 ms"])
    found = {one.parameter: one for one in explain(scenario).sensitivities}
    changed = scenario.with_overrides(["cluster.unexplained_host_time=2 ms"])
    assert found["cluster.unexplained_host_time"].doubled_ms == pytest.approx(step_ms(changed), rel=1e-6)


def test_the_heads_say_what_percentages_are_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", QUICKSTART]) == 0
    out = capsys.readouterr().out
    assert "of cycle" in out and "if halved" in out and "if doubled" in out


MIXED = shipped_folder() / "fabrics/mixed.yaml"
WRITTEN = """{name: chip, kind: gpu, peak_flops: {fp32: 19.5 TFLOP/s, tf32: 156 TFLOP/s, bf16: 312 TFLOP/s},
    hbm_bytes: 80 GB, hbm_bandwidth: 2039 GB/s, cache_bytes: 40 MB, launch_time: 2 us, host_link_bandwidth:
    31.5 GB/s, matrix_efficiency: 0.72, memory_efficiency: 0.9, gather_efficiency: 0.8}"""
GROUPS = "cluster.groups=[{accelerator: %s, hosts: 8, host: dgx_a100}, {accelerator: h100, hosts: 4}]"


def test_each_group_of_hosts_has_parameters_of_its_own() -> None:
    found = {one.path for one in parameters(load(MIXED))}
    assert {f"cluster.groups[{place}].accelerator.hbm_bandwidth" for place in (0, 1)} <= found
    assert {f"cluster.groups[{place}].host.cores" for place in (0, 1)} <= found
    assert not {path for path in found if path.startswith(("cluster.accelerator", "cluster.host."))}


@pytest.mark.parametrize("field", ["matrix_efficiency", "hbm_bandwidth"])
def test_a_parameter_of_a_group_is_worth_what_the_changed_file_gives(field: str) -> None:
    """The first group written out, and the second one named: both are scaled where they stand."""
    scenario = load(MIXED, [GROUPS % WRITTEN, "cluster.fabric=dgx_a100", "policy={kind: serialized}"])
    found = {one.parameter: one for one in explain(scenario).sensitivities}
    written = found[f"cluster.groups[0].accelerator.{field}"]
    changed = WRITTEN.replace(
        *{"matrix_efficiency": ("0.72", "0.36"), "hbm_bandwidth": ("2039", "1019.5")}[field]
    )
    slower = load(MIXED, [GROUPS % changed, "cluster.fabric=dgx_a100", "policy={kind: serialized}"])
    assert written.used and written.halved_ms is not None
    assert written.halved_ms == pytest.approx(step_ms(slower), rel=1e-6)
    assert written.halved_ms > 1.01 * step_ms(scenario)
    assert found[f"cluster.groups[1].accelerator.{field}"].used


def test_the_cores_of_one_group_are_those_of_its_hosts_alone() -> None:
    scenario = load(MIXED, ["workload.input.cpu_time=2 ms", "policy={kind: serialized}"])
    (cores,) = [one for one in parameters(scenario) if one.path == "cluster.groups[1].host.cores"]
    read = next(node.stage.work for node in scenario.graph.nodes if node.name.startswith("read"))
    plain, halved = scenario.costs.seconds(read), cores.scaled(0.5)(read)
    assert np.asarray(halved)[:64] == pytest.approx(np.asarray(plain)[:64])
    assert np.asarray(halved)[64:] == pytest.approx(2 * np.asarray(plain)[64:])


def test_ten_per_cent_more_of_few_cores_is_ten_per_cent_more() -> None:
    memory = "dram_bytes: 512 GB, dram_bandwidth: 100 GB/s, dram_efficiency: 0.5"
    host = f"cluster.host={{name: small, cores: 4, {memory}}}"
    scenario = load(QUICKSTART, [host, "workload.input.cpu_time=5 ms"])
    found = {one.parameter: one for one in gains(scenario)}
    assert found["cluster.host.cores"].saved_share == pytest.approx(1 - 1 / 1.1, abs=1e-3)


def test_servers_have_whole_cores_and_what_is_left_of_a_factor_as_speed() -> None:
    servers = """cluster.servers={host: {name: few, cores: %d, dram_bytes: 512 GB, dram_bandwidth: 100 GB/s,
        dram_efficiency: 0.5}, bandwidth: 10 GB/s, rpc: {server_call: %s ms}}"""
    policy = ["sharding={kind: row_wise, tier: {kind: remote, servers: 2}}", "policy={kind: rpc_coalesced}"]
    scenario, doubled, faster = (
        load(QUICKSTART, [servers % said, *policy]) for said in ((4, "900"), (8, "900"), (4, "720"))
    )
    (cores,) = [one for one in parameters(scenario) if one.path == "cluster.servers.host.cores"]
    works = [node.stage.work for node in scenario.graph.nodes]
    for factor, other in ((2.0, doubled), (1.25 * (1 - 1e-12), faster)):
        scaled, costs = cores.scaled(factor), other.costs
        assert [scaled(work) for work in works] == [pytest.approx(costs.seconds(work)) for work in works]
    assert [cores.scaled(2.0)(w) for w in works] != [scenario.costs.seconds(w) for w in works]
