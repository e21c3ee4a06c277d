"""What a report marks as measured elsewhere, or not at all."""

import pytest

from simulator.scenario import load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

QUICKSTART = shipped_folder() / "quickstart.yaml"


def beyond(*settings: str) -> list[str]:
    return run_scenario(load(QUICKSTART, list(settings)), "vector").report.extrapolated


def test_software_that_was_fitted_on_another_accelerator_is_named() -> None:
    assert beyond() == []
    assert beyond("cluster.accelerator=h100", "software=hugectr") == [
        "accelerator h100 (software fitted on b200, 8 per host, 1 host)"
    ]
    assert beyond("software=torchrec", "cluster.accelerator=a100_40") == []


def test_every_kind_of_host_is_compared_with_what_software_was_fitted_on() -> None:
    groups = "[{accelerator: a100_80, hosts: 1}, {accelerator: h100, hosts: 1}]"
    told = beyond("cluster.hosts=2", f"cluster.groups={groups}", "software=hugectr_v1")
    assert [one for one in told if one.startswith("accelerator")] == [
        "accelerator h100 (software fitted on a100_80, 8 per host, 1 host)"
    ]


@pytest.mark.parametrize(
    ("accelerator", "what"),
    [
        ("a100_80", ["matrix products on a100_80 (no measured law for tf32: analytic form only)"]),
        ("h100", []),
        ("h200", ["matrix products on h200 (the law of h100, scaled by rates)"]),
    ],
)
def test_products_without_a_law_measured_on_their_accelerator_are_named(
    accelerator: str, what: list[str]
) -> None:
    kernels = "cluster.compute={kind: kernels}"
    assert beyond(f"cluster.accelerator={accelerator}", kernels) == what
    assert beyond(f"cluster.accelerator={accelerator}") == []


def test_slower_software_does_not_hide_what_its_kernels_stand_on() -> None:
    told = beyond("cluster.compute={kind: kernels}", "software={slowdown: 1.5}")
    assert told == ["matrix products on a100_80 (no measured law for tf32: analytic form only)"]
