"""StepReport: what a run says, in the form that scripts rely on."""

from dataclasses import asdict, dataclass, field
from typing import Any

from simulator.quantities import FloatArray

EXPOSED_KINDS = ("input", "lookup", "all_to_all", "all_reduce", "parameter_server", "other")
RAW_KINDS = ("compute", "input", "lookup", "all_to_all", "all_reduce", "parameter_server")
BUSY = ("compute", "sparse", "memory", "network", "host", "copy")


@dataclass(frozen=True)
class StepReport:
    """The prediction for one scenario. Times in ms, per step, on the slowest rank, after warm-up.

    `exposed_ms` is time in which the compute stream waits, by cause; with `compute_ms` it adds up
    to `step_ms["mean"]`. `raw_ms` is how long each kind of stage takes in all, hidden
    or not, and `interference_ms` what sharing cost all stages together. `lower_bound_ms` follows from the
    shortest durations that ranks can get; `bottleneck` is the critical cycle over those that they had.
    Bandwidths of `collectives` are GB/s (10^9 bytes), as nccl-tests prints them. `updates` are the shares of
    all updates of rows that are lost for good or applied twice. They, observed staleness, `interval_ms` and
    `cost` are None where nothing is known. `notes` must be shown wherever the numbers are.
    """

    scenario: str
    engine: str
    seed: int
    ranks: int
    batches: int
    fidelity: str
    consistency: str
    step_ms: dict[str, float]
    latency_ms: float
    throughput_samples_per_s: float
    raw_ms: dict[str, float]
    compute_ms: float
    exposed_ms: dict[str, float]
    interference_ms: float
    busy_share: dict[str, float]
    staleness_steps: dict[str, float | None]
    updates: dict[str, float | None]
    peak_memory_bytes: dict[str, float]
    collectives: list[dict[str, Any]]
    lower_bound_ms: float
    bottleneck: list[str]
    extrapolated: list[str]
    interval_ms: dict[str, float] | None
    cost: dict[str, float] | None
    events: int
    notes: list[str] = field(default_factory=list)
    interference_by_stage_ms: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, in the order of its fields."""
        return asdict(self)


def percentiles(step_ns: FloatArray) -> dict[str, float]:
    """Return mean, median, 95th and 99th percentile of step times given in ns, as ms."""
    import numpy as np

    p50, p95, p99 = np.percentile(step_ns, [50, 95, 99]) / 1e6
    return {"mean": float(np.mean(step_ns)) / 1e6, "p50": float(p50), "p95": float(p95), "p99": float(p99)}
