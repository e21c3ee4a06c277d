"""The interval of a step: what is drawn, how wide it comes out, and how often it holds the truth."""

import re
from pathlib import Path

import numpy as np
import pytest

from analysis.cli.running import run
from simulator.errors import InputError
from simulator.hardware import catalog
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.field_limits import limits_at
from simulator.scenario.interval_cluster import drawn_cluster
from simulator.scenario.interval_curves import curve_doubts, slowed
from simulator.scenario.interval_doubts import Doubt, Sample, catalog_doubts, path_doubts
from simulator.units import DIMENSIONS

pytestmark = pytest.mark.slow

PLAIN = "run.interval={samples: 60, catalog: false"


@pytest.fixture
def quick(checkout: Path) -> Scenario:
    return load(checkout / "scenarios" / "quickstart.yaml", ["run.batches=30", "run.warm_up=10"])


def interval(scenario: Scenario, setting: str, engine: str = "events") -> tuple[float, float, float]:
    """Return low, mean and high of the step, ms."""
    report = run_scenario(scenario.with_overrides([setting]), engine).report
    assert report.interval_ms is not None and report.interval_ms["coverage"] == 0.8
    return report.interval_ms["low"], report.step_ms["mean"], report.interval_ms["high"]


def test_no_interval_is_given_unless_it_is_asked_for(quick: Scenario) -> None:
    assert run_scenario(quick).report.interval_ms is None


def test_without_any_doubt_the_interval_is_the_step(quick: Scenario) -> None:
    low, mean, high = interval(quick, f"{PLAIN}}}")
    assert low == pytest.approx(mean, rel=1e-9) and high == pytest.approx(mean, rel=1e-9)


def test_the_interval_is_the_same_for_the_same_seed_and_another_for_another(quick: Scenario) -> None:
    setting = "run.interval={samples: 30, between_runs: 5 %}"
    assert interval(quick, setting) == interval(quick, setting)
    assert interval(quick, setting) != interval(quick.with_overrides(["run.seed=8"]), setting)


def test_launches_that_differ_by_a_spread_widen_the_step_by_it(quick: Scenario) -> None:
    low, mean, high = interval(quick, "run.interval={samples: 200, catalog: false, between_runs: 5 %}")
    assert (high / mean, low / mean) == pytest.approx(
        (np.exp(1.2816 * 0.05), np.exp(-1.2816 * 0.05)), abs=0.005
    )


def test_a_doubtful_parameter_moves_the_ends_to_where_its_own_ends_lead(quick: Scenario) -> None:
    bound = ["workload.input.cpu_time=100 us"]  # so slow that the step is the input
    scenario = quick.with_overrides(bound)
    doubt = "{path: workload.input.cpu_time, low: 80 us, high: 150 us}"
    low, _, high = interval(scenario, f"run.interval={{samples: 40, catalog: false, parameters: [{doubt}]}}")
    ends = [
        run_scenario(scenario.with_overrides([f"workload.input.cpu_time={end}"])).report.step_ms["mean"]
        for end in ("80 us", "150 us")
    ]
    assert (low, high) == pytest.approx(ends, rel=0.05)


def test_catalog_entries_with_ranges_are_drawn_unless_that_is_switched_off(quick: Scenario) -> None:
    names = {doubt.doubt.name for doubt in catalog_doubts(quick)}
    assert {"accelerator.matrix_efficiency.", "accelerator.gather_efficiency."} <= names
    assert not {name for name in names if "price" in name or "hbm_bytes" in name}
    low, mean, high = interval(quick, "run.interval={samples: 60}")
    assert low < mean < high


def test_the_interval_stands_beside_the_step_in_the_table(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(checkout / "scenarios" / "quickstart.yaml")
    assert run(["run", file, "--set", "run.interval={samples: 20, catalog: false, between_runs: 5 %}"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("interval"))
    low, high = re.findall(r"[0-9.]+(?= to| ms)", line)
    assert float(low) < 3.13 < float(high) and "80%" in line


def test_hardware_that_is_written_out_has_no_doubts_of_the_catalog(quick: Scenario) -> None:
    torus = "{kind: torus, dims: [2, 2, 2], link_bandwidth: 50 GB/s, hop_latency: 1 us}"
    named = quick.with_overrides(["cluster.accelerator=v100"])
    assert {doubt.part for doubt in catalog_doubts(named)} == {"accelerator", "fabric"}
    written = named.with_overrides([f"cluster.fabric={torus}"])
    assert {doubt.part for doubt in catalog_doubts(written)} == {"accelerator"}


def test_measured_collectives_are_drawn_as_widely_as_their_fit_missed(quick: Scenario) -> None:
    curve = next(
        name
        for name in catalog.names("collective")
        if catalog.entry("collective", name)["operation"] == "all_to_all"
        and "sizes" in catalog.entry("collective", name)["held_out"]
    )
    measured = quick.with_overrides([f"cluster.collectives.all_to_all={curve}"])
    (doubt,) = curve_doubts(measured).values()
    assert doubt.low < 1 < doubt.high and doubt.low * doubt.high == pytest.approx(1)
    known = measured.costs.curves["all_to_all"]
    at = known.measured[0].scale
    whole, slow = (one.seconds(1e6, at.ranks, at.nodes) for one in (known, slowed(known, 2.0)))
    assert slow == pytest.approx(2 * whole)


def test_curves_of_a_file_beside_the_scenario_are_in_doubt_as_the_file_says(
    checkout: Path, tmp_path: Path
) -> None:
    number = "{value: %s, interval: [], source: lab, confidence: inferred}"
    line = f"{{latency: {number % '20 us'}, bandwidth: {number % '20 GB/s'}}}"
    (tmp_path / "curves.yaml").write_text(
        "entries: {lab: {operation: all_to_all, held_out: {sizes: {median: 10 %}}, "
        f"scales: [{{ranks: 8, nodes: 1, range: [1 kB, 1 GB], lines: [{line}]}}]}}}}\n"
    )
    file = tmp_path / "scenario.yaml"
    file.write_text((checkout / "scenarios" / "quickstart.yaml").read_text())
    scenario = load(file, ["cluster.collectives={file: curves.yaml, all_to_all: lab}"])
    (doubt,) = curve_doubts(scenario).values()
    assert doubt.high == pytest.approx(1.19)
    low, mean, high = interval(scenario, "run.interval={samples: 20}")
    assert low < mean < high


def test_jitter_is_drawn_anew_in_each_sample(quick: Scenario) -> None:
    noisy = quick.with_overrides(["run.jitter.compute=20 %"])
    low, mean, high = interval(noisy, f"{PLAIN}}}")
    assert low < high and 0.9 * mean < low and high < 1.1 * mean


@pytest.mark.parametrize(
    ("doubt", "problem"),
    [
        ("{path: workload.input.cpu_time, low: 2 us, high: 3 us}", "must enclose its value"),
        ("{path: workload.input.cpu_tim, low: 2 us, high: 3 us}", "has no such value"),
        ("{path: cluster.accelerator.launch_time, low: 1 us, high: 3 us}", "no such value"),
        ("{path: cluster.accelerator, low: a, high: b}", "not a number"),
        ("{path: workload.input.cpu_time, low: 2, high: 3 us}", "needs a unit"),
        ("{path: '[', low: 2, high: 3}", "path"),
        ("{path: run.batches, low: 20, high: 40}", "that is a choice"),
        ("{path: run.warm_up, low: 5, high: 12}", "that is a choice"),
        ("{path: policy.micro_batches, low: 1, high: 3}", "that is a choice"),
        ("{path: workload.batch, low: 1, high: 1e6}, {path: ' workload.batch', low: 1, high: 1e6}", "twice"),
    ],
)
def test_doubts_that_make_no_sense_are_refused_with_their_place(
    quick: Scenario, doubt: str, problem: str
) -> None:
    scenario = quick.with_overrides([f"run.interval={{parameters: [{doubt}]}}"])
    with pytest.raises(InputError, match=problem) as refused:
        _ = run_scenario(scenario).report
    assert "run.interval" in str(refused.value)


@pytest.mark.parametrize("end", ["low: true, high: 3", "low: 1, high: false"])
def test_an_end_is_no_flag(quick: Scenario, end: str) -> None:
    with pytest.raises(InputError, match=r"must be a number or a quantity, not (true|false)"):
        quick.with_overrides([f"run.interval={{parameters: [{{path: workload.batch, {end}}}]}}"])


def test_a_draw_that_cannot_be_is_said_to_be_one(checkout: Path) -> None:
    copied = load(checkout / "scenarios" / "sharding" / "two_d_sparse.yaml", ["sharding.replicas.count=2"])
    doubt = "{path: sharding.replicas.count, low: 1, high: 5}"
    scenario = copied.with_overrides([f"run.interval={{samples: 60, parameters: [{doubt}]}}"])
    with pytest.raises(InputError, match=r"a draw \(sharding.replicas.count=\d+\) is refused: ") as refused:
        _ = run_scenario(scenario, "vector").report
    assert "run.interval" in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "doubt", "most"),
    [
        (
            "cluster.compute={kind: utilization, share: 0.9, source: measured}",
            "{path: cluster.compute.share, low: 0.8, high: 0.95}",
            1.0,
        ),
        (
            "sharding.tier={kind: hbm_cache, share: 0.95}",
            "{path: sharding.tier.share, low: 0.9, high: 1.0}",
            1.0,
        ),
        ("cluster.host_limit=1.2", "{path: cluster.host_limit, low: 1.05, high: 1.4}", 1e30),
    ],
)
def test_what_is_drawn_beyond_the_range_of_its_field_is_the_end_of_the_range(
    quick: Scenario, setting: str, doubt: str, most: float
) -> None:
    text = f"run.interval={{samples: 200, catalog: false, parameters: [{doubt}]}}"
    scenario = quick.with_overrides([setting, text])
    (one,) = path_doubts(scenario, scenario.spec.run.interval.parameters)  # type: ignore[union-attr]
    drawn = [float(one.setting(Sample(0, index, 200)).partition("=")[2]) for index in range(200)]
    assert min(drawn) >= one.least and max(drawn) <= one.most == most
    assert one.least in drawn or one.most in drawn  # it was drawn beyond at least one end
    low, mean, high = interval(scenario, text, "vector")
    assert low <= mean <= high


def test_limits_are_those_of_the_field_wherever_it_stands(quick: Scenario) -> None:
    spec = quick.spec
    assert limits_at(spec, ("workload", "batch")) == (1, 1e15)
    assert limits_at(spec, ("workload", "tables", 0, "rows"))[0] == 1
    assert limits_at(spec, ("workload", "input", "cpu_time")) == (1e-15, 1e9)
    chip = "{name: c, kind: gpu, peak_flops: {tf32: 1 TFLOP/s}, hbm_bytes: 80 GB, hbm_bandwidth: 2 TB/s, "
    chip += "cache_bytes: 40 MB, launch_time: 2 us, matrix_efficiency: 0.7, memory_efficiency: 0.9, "
    chip += "gather_efficiency: 0.8, host_link_bandwidth: 31.5 GB/s}"
    written = quick.with_overrides([f"cluster.accelerator={chip}", "cluster.host=dgx_a100"])
    peak = ("cluster", "accelerator", "peak_flops", "tf32")
    assert limits_at(written.spec, peak) == (DIMENSIONS["rate"].least, DIMENSIONS["rate"].most)


MIXED = ["policy={kind: serialized}", "run.batches=20", "run.warm_up=5"]
GROUPS = "cluster.groups=[{accelerator: %s, hosts: 8}, {accelerator: %s, hosts: 4}]"


def test_catalog_entries_of_all_groups_are_drawn_whatever_their_order(checkout: Path) -> None:
    file = checkout / "scenarios" / "fabrics" / "mixed.yaml"
    found = {}
    for names in (("a100_80", "h100"), ("h100", "a100_80")):
        scenario = load(file, [*MIXED, GROUPS % names])
        doubts = catalog_doubts(scenario)
        found[names] = {doubt.doubt for doubt in doubts}
        for place, name in enumerate(names):
            mine = {doubt.doubt.name for doubt in doubts if place in doubt.places}
            assert f"accelerator {name}.gather_efficiency." in mine
        cluster = drawn_cluster(scenario.spec.cluster, scenario.cluster, doubts, Sample(3, 7, 40))
        for before, after in zip(scenario.cluster.groups, cluster.groups, strict=True):
            assert before.accelerator.gather_efficiency != after.accelerator.gather_efficiency
            assert before.hosts == after.hosts
        drawn = [
            drawn_cluster(scenario.spec.cluster, scenario.cluster, doubts, Sample(3, index, 40))
            for index in range(40)
        ]
        assert any(one.fabric != scenario.cluster.fabric for one in drawn)
    assert found["a100_80", "h100"] == found["h100", "a100_80"]


def test_two_equal_groups_have_the_interval_of_one_cluster(checkout: Path) -> None:
    file = checkout / "scenarios" / "fabrics" / "mixed.yaml"
    one, two = (
        load(file, [*MIXED, groups])
        for groups in ("cluster.groups=[{accelerator: a100_80, hosts: 12}]", GROUPS % ("a100_80", "a100_80"))
    )
    setting = "run.interval={samples: 20}"
    assert interval(one, setting, "vector") == pytest.approx(interval(two, setting, "vector"), rel=1e-12)


def test_draws_have_the_stated_tails_and_median() -> None:
    doubt = Doubt("x", 2.0, 3.0, 9.0)
    drawn = np.array([doubt.drawn(Sample(1, index, 200)) for index in range(200)])
    assert [np.mean(drawn < at) for at in (2.0, 3.0, 9.0)] == pytest.approx([0.1, 0.5, 0.9], abs=0.011)


def test_the_interval_holds_what_the_simulator_makes_about_as_often_as_it_says(checkout: Path) -> None:
    """Steps of jobs whose true parameters are drawn from the stated doubts, launched once each."""
    doubts = (("workload.input.cpu_time", "15 us", "20 us", "28 us"), ("cluster.hosts", "2", "3", "4"))
    base = load(
        checkout / "scenarios" / "quickstart.yaml", ["run.batches=25", "run.warm_up=5", "cluster.hosts=3"]
    )
    base = base.with_overrides(["workload.input.cpu_time=20 us"])
    listed = ", ".join(f"{{path: {path}, low: {low}, high: {high}}}" for path, low, _, high in doubts)
    low, _, high = interval(
        base,
        f"run.interval={{samples: 100, catalog: false, between_runs: 4 %, parameters: [{listed}]}}",
        "vector",
    )
    random = np.random.default_rng(5)
    inside = []
    for _ in range(60):
        at, launch = (random.standard_normal(2) / 1.2816).tolist(), np.exp(random.normal(-0.0008, 0.04))
        cpu = 20e-6 * ((28 / 20) if at[0] > 0 else (15 / 20)) ** abs(at[0])
        hosts = max(1, round(3 * ((4 / 3) if at[1] > 0 else (2 / 3)) ** abs(at[1])))
        made = base.with_overrides([f"workload.input.cpu_time={cpu!r} s", f"cluster.hosts={hosts}"])
        inside.append(low <= run_scenario(made, "vector").report.step_ms["mean"] * launch <= high)
    assert 0.65 <= np.mean(inside) <= 0.93
