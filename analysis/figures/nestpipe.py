"""What the NestPipe figures have in common: the scenario, its policies and sizes, and how each is drawn."""

from collections.abc import Callable
from functools import cache
from typing import Any

from analysis.figures.frame import Settings, report_of, shipped
from analysis.figures.marks import Look
from analysis.plots import style
from simulator.results.report import StepReport

FILE, GROUPED = "nestpipe/npu.yaml", "sharding/two_d_sparse.yaml"
SIZES = (128, 256, 512, 1024, 1536)
MOST = SIZES[-1]
POLICIES: dict[str, dict[str, Any]] = {
    "serialized": {"kind": "serialized"},
    "stale_prefetch": {"kind": "stale_prefetch"},
    "dual_buffer": {"kind": "dual_buffer"},
    "frozen_window": {"kind": "frozen_window", "micro_batches": 8},
    "nestpipe": {"kind": "nestpipe", "micro_batches": 8},
}
LOOKS = {
    "serialized": Look(style.INK, dashes=(0, (5, 1, 1, 1, 1, 1))),
    "stale_prefetch": Look(style.ORANGE, dashes="-", width=1.8),
    "dual_buffer": Look(style.BLUE, dashes=(0, (1.5, 2))),
    "frozen_window": Look(style.SKY, dashes="-."),
    "nestpipe": Look(style.VERMILION),
    "two_d_sparse": Look(style.PURPLE, dashes="--"),
}
LOOKUP = Look(style.GREEN, style.KIND_MARKS["lookup"], "--")
ALL_TO_ALL = Look(style.VERMILION, style.KIND_MARKS["all_to_all"])
Runs = Callable[[str, int, Settings], StepReport]


@cache
def run(policy: str, workers: int, settings: Settings = ()) -> StepReport:
    """Return the report of one policy at one size of the NPU cluster."""
    return report_of(shipped(FILE, settings).with_policy(POLICIES[policy]).with_workers(workers))


@cache
def grouped(policy: str, workers: int, settings: Settings = ()) -> StepReport:
    """Return the same with tables replicated over groups (2D sparse parallelism)."""
    return report_of(shipped(GROUPED, settings).with_policy(POLICIES[policy]).with_workers(workers))


def named(policy: str, workers: int, settings: Settings = ()) -> StepReport:
    """Return the report of a policy; `two_d_sparse` is the serialized one over groups, as in the paper."""
    if policy == "two_d_sparse":
        return grouped("serialized", workers, settings)
    return run(policy, workers, settings)


def lookup_ms(report: StepReport) -> float:
    """Return what papers call lookup: exposed input and lookup, ms."""
    return report.exposed_ms["input"] + report.exposed_ms["lookup"]


def efficiency(policy: str, workers: int, settings: Settings = ()) -> float:
    """Return scaling efficiency against the fewest workers, per cent (weak scaling: steps compare)."""
    fewest, here = (named(policy, size, settings).step_ms["mean"] for size in (SIZES[0], workers))
    return float(100 * fewest / here)
