"""The fits behind the shipped scenarios: which numbers, on which published figures, once per system.

`python -m analysis.fits` prints the values that the scenario files should hold.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analysis.published import by_id
from simulator.calibration import FitResult, Parameter, Target, fit, reported
from simulator.scenario import Scenario, load
from simulator.scenario.shipped_files import shipped_folder

SERIALIZED = {"kind": "serialized"}
GROWTH_BASE = "T13d"  # the published all-to-all that T19a has grown from
DOUBT_AT_512 = 18.0  # ms: half of the range of T9b


@dataclass(frozen=True)
class Fit:
    """One fit: `parameters` of the scenario `file` on `targets`, whose names are ids of published rows."""

    file: str
    parameters: tuple[Parameter, ...]
    targets: tuple[Target, ...]

    def run(self, folder: Path | None = None) -> FitResult:
        """Fit the scenario in `folder` (default: the shipped ones)."""
        return fit(load((folder or shipped_folder()) / self.file), self.parameters, self.targets)


def raw_ms(*kinds: str) -> Callable[[Scenario], float]:
    """Return a measure of the time (ms) that stages of these kinds take in all, hidden or not.

    That needs no run: it is what the report calls raw, without jitter.
    """

    def measure(scenario: Scenario) -> float:
        stages = [node.stage for node in scenario.graph.nodes if node.stage.kind in kinds]
        return sum(float(np.max(scenario.costs.seconds(stage.work))) for stage in stages) * 1e3

    return measure


raw_all_to_all = raw_ms("all_to_all")
raw_lookup = raw_ms("input", "lookup")
step = reported(lambda report: report.step_ms["mean"])


def speedup(scenario: Scenario) -> float:
    """Return the serialized step over the scenario's own."""
    return step(scenario.with_policy(SERIALIZED)) / step(scenario)


def growth(scenario: Scenario) -> float:
    """Return the all-to-all in 32 micro-batches over that of the whole batch."""
    split = scenario.with_policy({"kind": "frozen_window", "micro_batches": 32})
    return raw_all_to_all(split) / raw_all_to_all(scenario.with_policy(SERIALIZED))


def _grown() -> Target:
    """The growth in 32 micro-batches. The doubt: the whole took 1,185 ms by one figure, 1,208 by another."""
    known = by_id()
    grown = known["T19a"].value / known[GROWTH_BASE].value
    return Target("T19a", grown, growth, workers=1536, spread=0.019)


def npu_keys() -> Fit:
    """The skew of the keys, if they are independent."""
    return Fit("nestpipe/npu.yaml", (Parameter("workload.keys.exponent", 0.5, 1.2),), (_grown(),))


def clustered_keys() -> Fit:
    """The same growth explained otherwise: by samples that share histories and are not regrouped."""
    target = replace(_grown(), settings=("workload.clustering=none",))
    return Fit("nestpipe/clustering.yaml", (Parameter("workload.histories.group", 1.0, 2.0),), (target,))


def npu_system() -> Fit:
    """Network and host of the NPU system, on four parts of serialized steps.

    Doubts: shares are printed with a decimal place (24.4 and 9.2 %), the 512 point is a range.
    """
    return Fit(
        "nestpipe/npu.yaml",
        (
            Parameter("cluster.fabric.between_efficiency", 0.3, 1.0),
            Parameter("cluster.fabric.decay_workers", 50, 2000),
            Parameter("cluster.host.dram_efficiency", 0.01, 1.0),
            Parameter("cluster.unexplained_host_time", 0.1, 10, "ms"),
        ),
        (*npu_network(), *_npu_lookup()),
    )


def npu_network(at_512: float | None = None) -> tuple[Target, ...]:
    """The all-to-all at 128 and 512 workers; `at_512` (ms) replaces the middle of the latter's range."""
    known = by_id()
    middle = known["T9c"].value
    wide = Target("T9c", middle, raw_all_to_all, 512, SERIALIZED, spread=DOUBT_AT_512 / middle)
    return (
        Target("T4e", known["T4e"].value, raw_all_to_all, 128, SERIALIZED, spread=0.05 / 9.2),
        wide if at_512 is None else replace(wide, value=at_512),
    )


def _npu_lookup() -> tuple[Target, ...]:
    known = by_id()
    return (
        Target("T4d", known["T4d"].value, raw_lookup, 128, SERIALIZED, spread=0.05 / 24.4),
        Target("T2a", known["T2a"].value, raw_lookup, 1536, SERIALIZED),
    )


def gpu_system() -> Fit:
    """The one number of the GPU system, on its one figure, which is printed with two decimals."""
    return Fit(
        "nestpipe/gpu.yaml",
        (Parameter("cluster.unexplained_host_time", 0.1, 20, "ms"),),
        (Target("T23a", by_id()["T23a"].value, speedup, spread=0.005 / 1.36),),
    )


def all_fits() -> tuple[Fit, ...]:
    """Return the fits in the order in which they are made."""
    return (npu_keys(), npu_system(), clustered_keys(), gpu_system())


def band_at_1536(folder: Path | None = None) -> tuple[float, float]:
    """Return the whole-batch all-to-all (ms) at 1,536 workers for either end of the range at 512."""
    middle = by_id()["T9c"].value
    low, high = (_all_to_all_at_1536(middle + doubt, folder) for doubt in (-DOUBT_AT_512, DOUBT_AT_512))
    return low, high


def _all_to_all_at_1536(at_512: float, folder: Path | None) -> float:
    scenario = load((folder or shipped_folder()) / "nestpipe/npu.yaml")
    network = npu_system().parameters[:2]
    found = fit(scenario, network, npu_network(at_512))
    changed = scenario.with_overrides([one.setting(found.values[one.path]) for one in network])
    return raw_all_to_all(changed.with_policy(SERIALIZED).with_workers(1536))


def lines(fits: Sequence[Fit]) -> list[str]:
    """Return one line per parameter: file, path, value and unit."""
    found = [(one, one.run()) for one in fits]
    return [
        f"{one.file}: {parameter.setting(float(f'{result.values[parameter.path]:.4g}'))}"
        for one, result in found
        for parameter in one.parameters
    ]


if __name__ == "__main__":
    print("\n".join(lines(all_fits())))
