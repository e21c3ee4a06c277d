"""The interval of a step knows what is doubtful about software: fitted numbers, and the spread."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from simulator.quantities import HoldWork, InTurn, Together, leaves
from simulator.scenario import Scenario, load, run_scenario, software_catalog
from simulator.scenario.interval import _Draws
from simulator.scenario.interval_doubts import Sample, catalog_doubts
from simulator.scenario.interval_software import DrawnSoftware, software_doubts, spread_doubt
from simulator.scenario.shipped_files import shipped_folder

MIXTURE = shipped_folder() / "sharding" / "mixture.yaml"
BASE = ["policy.kind=serialized", "cluster.hosts=1", "run.batches=30", "run.warm_up=10"]
SAMPLES = 40


def scenario(*settings: str) -> Scenario:
    return load(MIXTURE, [*BASE, *settings])


def interval(of: Scenario, setting: str = "") -> tuple[float, float, float]:
    """Return low, mean and high of the step, ms."""
    asked = of.with_overrides([f"run.interval={{samples: {SAMPLES}{setting}}}"])
    report = run_scenario(asked, "vector").report
    assert report.interval_ms is not None
    return report.interval_ms["low"], report.step_ms["mean"], report.interval_ms["high"]


@pytest.fixture
def stated(monkeypatch: pytest.MonkeyPatch) -> dict[str, Mapping[str, Any]]:
    """Return what the catalog says of profiles here; tests put numbers into it."""
    numbers: dict[str, Mapping[str, Any]] = {}
    monkeypatch.setattr(software_catalog, "numbers", lambda name: numbers)
    monkeypatch.setattr(software_catalog, "gather_numbers", lambda: {})
    return numbers


def hold(value: str, **ends: Any) -> dict[str, Mapping[str, Any]]:
    return {"fixed_cost_per_step": {"value": value, "source": "a test", **ends}}


def written(value: str) -> str:
    """Return software of a known family that only holds the step."""
    return f"software={{family: hugectr, fixed_cost_per_step: {value}}}"


@pytest.mark.parametrize("key", ["interval", "range"])
def test_a_fitted_number_with_ends_moves_the_step_as_its_ends_do(
    stated: dict[str, Mapping[str, Any]], key: str
) -> None:
    stated.update(hold("50 ms", **{key: ["40 ms", "70 ms"]}))
    held, ends = scenario(written("50 ms")), [scenario(written(end)) for end in ("40 ms", "70 ms")]
    steps = [run_scenario(end, "vector").report.step_ms["mean"] for end in ends]
    names = [(one.field, one.doubt.low, one.doubt.high) for one in software_doubts(held)]
    assert names == [("fixed_cost_per_step", pytest.approx(0.04), pytest.approx(0.07))]
    low, mean, high = interval(held)
    assert low < mean - 5 and high > mean + 15
    assert low == pytest.approx(steps[0], rel=0.1) and high == pytest.approx(steps[1], rel=0.1)


def test_numbers_without_ends_are_not_in_doubt(stated: dict[str, Mapping[str, Any]]) -> None:
    stated.update(hold("50 ms"))
    assert software_doubts(scenario(written("50 ms"))) == ()


def test_a_number_of_the_scenario_s_own_has_none_of_the_catalog_s_doubts(
    stated: dict[str, Mapping[str, Any]],
) -> None:
    stated.update(hold("50 ms", interval=["40 ms", "70 ms"]))
    assert software_doubts(scenario(written("51 ms"))) == ()
    assert software_doubts(scenario(written("50 ms"))) != ()


def test_a_doubt_that_the_scenario_states_itself_takes_the_place_of_the_catalog_s(
    stated: dict[str, Mapping[str, Any]],
) -> None:
    stated.update(hold("50 ms", interval=["40 ms", "70 ms"]))
    assert software_doubts(scenario(written("50 ms")), ["software.fixed_cost_per_step"]) == ()


def test_nothing_of_the_catalog_is_drawn_where_that_is_switched_off(
    stated: dict[str, Mapping[str, Any]],
) -> None:
    stated.update(hold("50 ms", interval=["40 ms", "70 ms"]))
    low, mean, high = interval(scenario(written("50 ms")), ", catalog: false")
    assert low == pytest.approx(mean) and high == pytest.approx(mean)


def test_an_efficiency_stays_a_fraction_and_replaces_the_doubt_about_the_accelerator_s(
    stated: dict[str, Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = {"value": 0.8, "interval": [0.4, 1.0], "source": "a test"}
    monkeypatch.setattr(software_catalog, "gather_numbers", lambda: {"ampere": number})
    of = scenario("software={family: hugectr, gather_efficiency: 0.8}")
    (doubt,) = software_doubts(of)
    drawn = [DrawnSoftware.of([doubt], Sample(0, index, SAMPLES)) for index in range(SAMPLES)]
    reached = [one.costs(of.costs).cluster.accelerator.gather_efficiency for one in drawn]
    assert max(reached) == 1.0 and min(reached) < 0.4
    assert "gather_efficiency" not in {one.field for one in catalog_doubts(of)}
    assert "gather_efficiency" in {one.field for one in catalog_doubts(scenario())}


def test_the_spread_of_a_profile_stretches_the_whole_step() -> None:
    profile = "software={family: none, calibrated_on: {accelerator: a100_40, per_host: 8}, spread: %s}"
    spread = "{one_host: 0.2, several_hosts: 0.01, smaller_host: 0.01, pcie: 0.01}"
    of = scenario(profile % spread, "cluster.per_host=8")
    doubt = spread_doubt(of)
    assert doubt is not None and (doubt.low, doubt.high) == pytest.approx((1 / 1.2, 1.2))
    still = scenario(
        profile % "{one_host: 0, several_hosts: 0, smaller_host: 0, pcie: 0}", "cluster.per_host=8"
    )
    (low, mean, high), (narrow, _, wide) = interval(of), interval(still)
    assert low < 0.95 * narrow < mean < 1.05 * wide < high


def test_software_without_a_known_spread_adds_none() -> None:
    assert spread_doubt(scenario()) is None


def test_a_named_profile_is_in_doubt_as_the_same_written_out(checkout: Path) -> None:
    named = scenario("software=hugectr")
    data = software_catalog.profile_data("hugectr")
    whole = Scenario.of(type(named.document)({**named.document.data, "software": data}, {}, "x"))
    assert [one.field for one in software_doubts(named)] == [one.field for one in software_doubts(whole)]
    assert spread_doubt(named) == spread_doubt(whole)
    assert (checkout / "pyproject.toml").exists()


def test_what_is_held_goes_with_the_number_that_it_is_in_proportion_to() -> None:
    drawn = DrawnSoftware({"fixed_cost_per_step": 1.5, "loader_rate": 2.0})
    kept = InTurn((HoldWork(7.0, "of the cluster", "cluster.unexplained_host_time"),))
    holds = (HoldWork(4.0, "", "software.fixed_cost_per_step"), HoldWork(4.0, "", "software.loader_rate"))
    found = drawn.held(InTurn((Together(holds), kept)))
    assert isinstance(found, InTurn)
    assert [part.seconds for part in leaves(found) if isinstance(part, HoldWork)] == [6.0, 2.0, 7.0]
    untouched = InTurn(())
    assert drawn.held(untouched) is untouched


@pytest.mark.parametrize(
    "field", ["fixed_cost_per_step: 3 ms", "host_time_per_op: 9 us", "time_per_key: 20 ns", "slowdown: 2.5"]
)
def test_a_drawn_number_gives_the_step_of_a_scenario_that_has_it(
    stated: dict[str, Mapping[str, Any]], field: str
) -> None:
    name, whole = field.split(": ")
    number, _, unit = whole.partition(" ")
    value, half = [f"{one} {unit}" if unit else one for one in (float(number), float(number) / 2)]
    stated[name] = {"value": value, "interval": [half, value], "source": "a test"}
    software = f"software={{family: hugectr, graph_capture: false, {field}}}"
    of = scenario(software, "run.interval={samples: 20}")
    drawn = DrawnSoftware({name: 0.5})
    run = run_scenario(of, "vector")
    spec = of.spec.run.interval
    assert spec is not None and [one.field for one in software_doubts(of)] == [name]
    found = _Draws(run, spec)._mean_ns(of, drawn.costs(of.costs), 0, drawn)
    halved = of.with_overrides([f"software.{name}={half}"])
    assert found == pytest.approx(run_scenario(halved, "vector").report.step_ms["mean"] * 1e6, rel=1e-6)
