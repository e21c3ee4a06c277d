"""The fits behind the shipped scenarios, made again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis import bagpipe
from analysis.assumptions import Assumptions
from analysis.fits import Fit, clustered_keys, gpu_system, npu_keys, npu_system, raw_ms, speedup
from analysis.published import by_id
from simulator.scenario import Scenario, load, run_scenario
from simulator.units import parse_quantity


@pytest.mark.parametrize(
    "make", [npu_keys, npu_system, clustered_keys, gpu_system], ids=lambda make: make.__name__
)
def test_the_shipped_values_are_those_of_the_fit(make: Callable[[], Fit], checkout: Path) -> None:
    one = make()
    found = one.run(checkout / "scenarios")
    assert found.at_bound == ()
    assert max(abs(error) for error in found.residuals.values()) < 1e-6
    data = load(checkout / "scenarios" / one.file).document.data
    for parameter in one.parameters:
        shipped: Any = data
        for name in parameter.path.split("."):
            shipped = shipped[name]
        if parameter.unit:
            dimension = "bandwidth" if parameter.unit.endswith("/s") else "time"
            shipped = parse_quantity(shipped, dimension) / parse_quantity(f"1 {parameter.unit}", dimension)
        assert shipped == pytest.approx(found.values[parameter.path], rel=0.005), parameter.path


def test_no_rate_of_the_workers_cards_gives_passes_their_published_share_without_a_cache(
    checkout: Path,
) -> None:
    """Nor could one be fitted: the card of the only server is what a step without a cache waits for."""
    scenario, published = load(checkout / "scenarios" / bagpipe.FILE), by_id()["B-2"].value
    rates = ("5 Gb/s", "10 Gb/s", "25 Gb/s", "1000 Gb/s")
    shares = [
        bagpipe.passes_share(scenario.with_overrides([f"cluster.fabric.between={rate}"])) for rate in rates
    ]
    assert shares == sorted(shares)
    assert max(shares) < 0.9 * published


def test_the_unexplained_time_of_one_system_does_not_carry_over_to_the_other(checkout: Path) -> None:
    npu, gpu = (load(checkout / f"scenarios/nestpipe/{name}.yaml") for name in ("npu", "gpu"))
    held = npu.document.data["cluster"]["unexplained_host_time"]
    carried = speedup(gpu.with_overrides([f"cluster.unexplained_host_time={held}"]))
    assert carried == pytest.approx(1.16, abs=0.01)
    assert speedup(gpu) == pytest.approx(1.36, abs=0.005)


@pytest.mark.parametrize("kind", ["all_to_all", "lookup", "input"])
def test_what_the_fits_call_raw_is_what_the_report_calls_raw(kind: str, checkout: Path) -> None:
    scenario = load(checkout / "scenarios/nestpipe/npu.yaml")
    reported = run_scenario(scenario).report.raw_ms[kind]
    assert raw_ms(kind)(scenario) == pytest.approx(reported, rel=1e-6)


def without_sources(part: Any) -> Any:
    """Return a document without its free text."""
    if not isinstance(part, dict):
        return part
    return {name: without_sources(one) for name, one in part.items() if name != "source"}


def test_the_scenario_with_groups_holds_every_number_of_the_one_that_was_fitted(checkout: Path) -> None:
    npu, grouped = (
        without_sources(load(checkout / f"scenarios/{file}.yaml").document.data)
        for file in ("nestpipe/npu", "sharding/two_d_sparse")
    )
    differ = {name for name in npu.keys() | grouped.keys() if npu.get(name) != grouped.get(name)}
    assert differ == {"name", "sharding", "policy"}
    assert {**npu["sharding"], "replicas": grouped["sharding"]["replicas"]} == grouped["sharding"]


def test_the_gpu_scenario_takes_over_the_fitted_keys_and_the_shape(checkout: Path) -> None:
    npu, gpu = (load(checkout / f"scenarios/nestpipe/{name}.yaml").document.data for name in ("npu", "gpu"))
    assert gpu["workload"]["keys"] == npu["workload"]["keys"]
    for name in ("layers", "dimension", "sequence"):
        assert gpu["workload"]["model"][name] == npu["workload"]["model"][name]


@pytest.fixture(scope="module")
def assumptions(checkout: Path) -> Assumptions:
    return Assumptions.of(checkout / "scenarios")


def exposed(scenario: Scenario) -> float:
    return run_scenario(scenario).report.exposed_ms["all_to_all"]


def test_no_other_number_of_groups_brings_the_all_to_all_nearer(assumptions: Assumptions) -> None:
    published = by_id()["T6b"].value
    misses = {
        count: abs(
            exposed(assumptions.grouped.with_overrides([f"sharding.replicas.count={count}"])) - published
        )
        for count in (1, 2, 3, 4, 6, 8, 12)
    }
    assert min(misses, key=lambda count: misses[count]) == by_id()["I10"].value


def test_the_lookup_growing_with_the_group_would_contradict_what_the_published_step_leaves_for_it(
    assumptions: Assumptions,
) -> None:
    known = by_id()
    left = known["T6a"].value - known["T2c"].value - known["T6b"].value
    report = run_scenario(assumptions.grouped).report
    by_job = report.exposed_ms["input"] + report.exposed_ms["lookup"]
    by_group = by_job - (report.step_ms["mean"] - assumptions.step_by_group_ms)
    assert 0 < by_job / left - 1 < 0.1
    assert by_group / left - 1 < -0.6


def test_no_other_assumption_about_copies_of_tables_meets_both_published_steps(
    assumptions: Assumptions,
) -> None:
    known = {1536: by_id()["T6a"].value, 128: by_id()["T7"].value}

    def errors(step_ms: Callable[[int], float]) -> list[float]:
        return [step_ms(workers) / value - 1 for workers, value in known.items()]

    shipped = errors(lambda workers: assumptions.step_partly_by_group_ms(0.0, workers))
    half = errors(lambda workers: assumptions.step_partly_by_group_ms(0.5, workers))
    seldom = errors(assumptions.step_seldom_averaged_ms)
    print(f"as shipped {shipped}, half of the growth by the group {half}, seldom averaged {seldom}")
    assert shipped == pytest.approx([0.21, 0.68], abs=0.01)
    assert abs(half[0]) < 0.02 and half[1] > 0.6
    assert all(0.03 < fewer < error for fewer, error in zip(seldom, shipped, strict=True))
    assert seldom[1] > 0.2


def test_the_assumed_convention_of_the_share_of_the_peak_is_worth_eight_per_cent(
    assumptions: Assumptions,
) -> None:
    assert assumptions.usual_compute_ms / assumptions.compute_ms == pytest.approx(1.08, abs=0.01)
