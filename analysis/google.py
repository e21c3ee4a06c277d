"""Five models that stand for Google's: what pipelining, hybrid partitioning and feedback give each of them.

`python -m analysis.google` prints the steps and gains. Why these models, and what they can show:
docs/decisions/0009-five-models-for-google.md.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path

from analysis.placing import placed
from analysis.planning import PlacingRequest
from analysis.sharding_parts import placed_part
from simulator.results.report import StepReport
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

FILE = "google/ads.yaml"
PIPELINED = "sparse_core_pipelined"
WIDTHS: Mapping[int, int] = {5: 75, 17: 252, 56: 803, 190: 2484, 638: 6803}
"""Width of the three layers by MFLOP per sample."""


@dataclass(frozen=True)
class Gains:
    """Steps (ms) of one model under the four configurations, each containing the one before.

    `bound_by_dense`: under the last one the TensorCores are busy for more of the step than anything else.
    """

    mflop: int
    base: float
    pipelined: float
    hybrid: float
    feedback: float
    bound_by_dense: bool

    @property
    def pipelining(self) -> float:
        """What pipelining alone gives."""
        return self.base / self.pipelined

    @property
    def partitioning(self) -> float:
        """What hybrid partitioning and feedback give on top."""
        return self.pipelined / self.feedback

    @property
    def whole(self) -> float:
        """What all of them give together."""
        return self.base / self.feedback


@cache
def five(folder: Path | None = None) -> tuple[Gains, ...]:
    """Return the gains of the five models, the smallest dense side first."""
    scenario = load((folder or shipped_folder()) / FILE)
    return tuple(gains(scenario, mflop) for mflop in WIDTHS)


def gains(scenario: Scenario, mflop: int) -> Gains:
    """Return the steps of the model with so many MFLOP per sample."""
    width = WIDTHS[mflop]
    ours = scenario.with_overrides([f"workload.model.layers=[{width}, {width}, {width}, 1]"])
    guess = guessed(ours)
    whole, cut, true = _placed(ours, guess, whole=True), _placed(ours, guess), _placed(ours, ours)
    layers = ((whole, "sparse_core"), *((one, PIPELINED) for one in (whole, cut, true)))
    reports = [_report(placed, policy) for placed, policy in layers]
    base, pipelined, hybrid, feedback = (one.step_ms["mean"] for one in reports)
    busy = reports[-1].busy_share
    return Gains(
        mflop, base, pipelined, hybrid, feedback, max(busy, key=lambda name: busy[name]) == "compute"
    )


def guessed(scenario: Scenario) -> Scenario:
    """Return the scenario as known before any profile: the mean number of keys, all rows alike."""
    tables = scenario.workload.tables
    mean = scenario.workload.keys_per_sample / len(tables)
    data = copy.deepcopy(scenario.document.data)
    data["workload"]["keys"] = {"kind": "uniform"}
    for table in data["workload"]["tables"]:
        table["pooling"] = mean
    return Scenario.of(replace(scenario.document, data=data))


def geometric_mean(models: tuple[Gains, ...]) -> float:
    """Return that of the whole gains."""
    return float(prod(one.whole for one in models) ** (1 / len(models)))


def _placed(scenario: Scenario, by: Scenario, whole: bool = False) -> Scenario:
    """Return `scenario` with its tables placed by the keys of `by`."""
    part = placed_part(placed(by, PlacingRequest(whole=whole)))
    return Scenario.of(replace(scenario.document, data={**scenario.document.data, "sharding": part}))


def _report(scenario: Scenario, policy: str) -> StepReport:
    return run_scenario(scenario.with_policy({"kind": policy})).report


def lines() -> list[str]:
    """Return a table of steps (ms) and gains."""
    found = five()
    head = f"{'MFLOP':>5} {'base':>8} {'pipelined':>9} {'hybrid':>8} {'feedback':>8}   gains: pipelining, all"
    rows = [
        f"{one.mflop:5} {one.base:8.2f} {one.pipelined:9.2f} {one.hybrid:8.2f} {one.feedback:8.2f}"
        f"   {one.pipelining:8.2f} {one.whole:8.2f}{'  dense-bound' if one.bound_by_dense else ''}"
        for one in found
    ]
    return [head, *rows, f"geometric mean of all: {geometric_mean(found):.2f}"]


if __name__ == "__main__":
    print("\n".join(lines()))
