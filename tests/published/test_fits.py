"""The fits behind the shipped scenarios, made again."""

from pathlib import Path

import pytest

from analysis.fits import Fit, gpu_system, npu_keys, npu_system, raw_ms, speedup
from simulator.scenario import load, run_scenario
from simulator.units import parse_quantity


@pytest.mark.parametrize("make", [npu_keys, npu_system, gpu_system], ids=lambda make: make.__name__)
def test_the_shipped_values_are_those_of_the_fit(make: type[Fit], checkout: Path) -> None:
    one = make()
    found = one.run(checkout / "scenarios")
    assert found.at_bound == ()
    assert max(abs(error) for error in found.residuals.values()) < 1e-6
    data = load(checkout / "scenarios" / one.file).document.data
    for parameter in one.parameters:
        shipped = data
        for name in parameter.path.split("."):
            shipped = shipped[name]
        if parameter.unit:
            shipped = parse_quantity(shipped, "time") / parse_quantity(f"1 {parameter.unit}", "time")
        assert shipped == pytest.approx(found.values[parameter.path], rel=0.005), parameter.path


def test_the_unexplained_time_of_one_system_does_not_carry_over_to_the_other(checkout: Path) -> None:
    npu, gpu = (load(checkout / f"scenarios/nestpipe/{name}.yaml") for name in ("npu", "gpu"))
    held = npu.document.data["cluster"]["unexplained_host_time"]
    carried = speedup(gpu.with_overrides([f"cluster.unexplained_host_time={held}"]))
    assert carried == pytest.approx(1.16, abs=0.01)
    assert speedup(gpu) == pytest.approx(1.36, abs=0.005)


@pytest.mark.parametrize("kind", ["all_to_all", "lookup", "input"])
def test_what_the_fits_call_raw_is_what_the_report_calls_raw(kind: str, checkout: Path) -> None:
    scenario = load(checkout / "scenarios/nestpipe/npu.yaml")
    reported = run_scenario(scenario, "vector").report.raw_ms[kind]
    assert raw_ms(kind)(scenario) == pytest.approx(reported, rel=1e-6)
