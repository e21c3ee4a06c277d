"""Fitting: what was put in is found again, doubt is passed on, and what cannot be told apart is refused."""

from math import log
from pathlib import Path

import pytest

from simulator.calibration import Parameter, Target, fit, reported
from simulator.errors import InputError
from simulator.scenario import Scenario, load

SHARE = Parameter("cluster.compute.share", 0.05, 0.9)
HELD = Parameter("cluster.unexplained_host_time", 0.1, 10, "ms")
SERIALIZED = {"kind": "serialized"}
compute = reported(lambda report: report.raw_ms["compute"])
lookup = reported(lambda report: report.raw_ms["lookup"])


@pytest.fixture(scope="module")
def scenario(checkout: Path) -> Scenario:
    return load(checkout / "scenarios/nestpipe/npu.yaml", ["run={batches: 12, warm_up: 6}"])


def test_a_fit_finds_the_values_that_made_its_targets(scenario: Scenario) -> None:
    made = scenario.with_overrides(["cluster.compute.share=0.4", "cluster.unexplained_host_time=3 ms"])
    sources = [
        Target("compute", 1.0, compute, 64, SERIALIZED),
        Target("lookup", 1.0, lookup, 256, SERIALIZED),
    ]
    targets = [Target(one.name, one.predicted(made), one.measure, one.workers, one.policy) for one in sources]
    found = fit(scenario, [SHARE, HELD], targets)
    assert found.values[SHARE.path] == pytest.approx(0.4, rel=1e-4)
    assert found.values[HELD.path] == pytest.approx(3.0, rel=1e-4)
    assert found.residuals == pytest.approx({"compute": 0.0, "lookup": 0.0}, abs=1e-6)
    assert found.at_bound == ()
    assert found.intervals is None


def test_with_more_targets_than_parameters_the_fit_lies_between_them(scenario: Scenario) -> None:
    middle = Target("", 1.0, compute, 64, SERIALIZED).predicted(scenario)
    ends = [Target(name, middle * by, compute, 64, SERIALIZED) for name, by in (("a", 0.8), ("b", 1.25))]
    found = fit(scenario, [SHARE], ends)
    assert found.values[SHARE.path] == pytest.approx(0.2474, rel=1e-3)
    assert found.residuals["a"] > 0 > found.residuals["b"]


def test_doubt_about_a_target_becomes_an_interval_of_the_value(scenario: Scenario) -> None:
    value = Target("", 1.0, compute, 64, SERIALIZED).predicted(scenario)
    found = fit(scenario, [SHARE], [Target("compute", value, compute, 64, SERIALIZED, spread=0.1)])
    assert found.intervals is not None
    low, high = found.intervals[SHARE.path]
    # nearly all of compute goes as one over the share, so 10 % of one is 10 % of the other
    assert log(high / low) == pytest.approx(2 * 0.1, rel=0.02)
    assert low < found.values[SHARE.path] < high


def test_settings_of_a_target_are_applied_to_it_alone(scenario: Scenario) -> None:
    plain = Target("", 1.0, compute, 64, SERIALIZED)
    halved = Target("", 1.0, compute, 64, SERIALIZED, settings=("workload.batch=256",))
    assert halved.predicted(scenario) < 0.55 * plain.predicted(scenario)


def test_a_value_that_the_search_range_stopped_is_named(scenario: Scenario) -> None:
    value = Target("", 1.0, compute, 64, SERIALIZED).predicted(scenario)
    found = fit(scenario, [SHARE], [Target("ten times", 10 * value, compute, 64, SERIALIZED)])
    assert found.at_bound == (SHARE.path,)
    assert found.residuals["ten times"] < -0.1


def test_a_parameter_that_no_target_feels_is_refused_by_name(scenario: Scenario) -> None:
    target = Target("compute", 1700.0, compute, 64, SERIALIZED)
    with pytest.raises(InputError, match=r"do not determine cluster\.unexplained_host_time"):
        fit(scenario, [HELD], [target])


def test_parameters_that_act_only_together_are_refused(scenario: Scenario) -> None:
    exchange = reported(lambda report: report.raw_ms["all_to_all"])
    targets = [Target(f"{n}", 300.0, exchange, n, SERIALIZED) for n in (64, 128)]
    rate = Parameter("cluster.fabric.between", 5, 50, "GB/s")
    with pytest.raises(InputError, match=r"cluster\.fabric\.between, cluster\.fabric\.between_efficiency"):
        fit(scenario, [rate, Parameter("cluster.fabric.between_efficiency", 0.1, 1)], targets)


def test_fewer_targets_than_parameters_are_refused(scenario: Scenario) -> None:
    with pytest.raises(InputError, match="2 parameters cannot be fitted on 1 targets"):
        fit(scenario, [SHARE, HELD], [Target("compute", 1.0, compute)])


def test_a_parameter_given_twice_is_refused(scenario: Scenario) -> None:
    targets = [Target("a", 1.0, compute), Target("b", 1.0, lookup)]
    with pytest.raises(InputError, match="given twice"):
        fit(scenario, [SHARE, SHARE], targets)


def test_an_unknown_path_is_refused_as_in_a_scenario_file(scenario: Scenario) -> None:
    wrong = Parameter("cluster.compute.shares", 0.1, 0.9)
    with pytest.raises(InputError, match="share"):
        fit(scenario, [wrong], [Target("compute", 1.0, compute)])


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (1.0, 1.0), (2.0, 1.0), (1.0, float("inf"))]
)
def test_a_range_without_logarithm_or_width_is_refused(low: float, high: float) -> None:
    with pytest.raises(InputError, match="0 < low < high"):
        Parameter("run.seed", low, high)


@pytest.mark.parametrize(("value", "spread"), [(0.0, 0.0), (-1.0, 0.0), (float("nan"), 0.0), (1.0, -0.1)])
def test_a_target_without_a_logarithm_is_refused(value: float, spread: float) -> None:
    with pytest.raises(InputError, match="must be positive"):
        Target("x", value, compute, spread=spread)
