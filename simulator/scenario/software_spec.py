"""The `software` part of a scenario: what the framework adds, and in which formats it keeps and sends."""

from dataclasses import replace
from typing import Literal

from simulator.costs.software import Precision, Software
from simulator.hardware import Cluster, TwoLevel
from simulator.quantities import value_bytes
from simulator.quantities.statistics import COVERAGE
from simulator.scenario.base import Spec
from simulator.scenario.fields import (
    Bytes,
    Count,
    Flag,
    Fraction,
    Frequency,
    NonNegativeFloat,
    PositiveFloat,
    Time,
)
from simulator.sharding import DataParallel, Rule, ShardingPlan
from simulator.workload.dense.eager import Eager
from simulator.workload.job import Workload

FASTEST_PCIE = 64e9  # bytes/s: PCIe 5.0 x16
Format = Literal["fp32", "fp16", "bf16", "fp8", "int8"]


class PrecisionSpec(Spec):
    """Number formats of single tensors; left out: what the workload says."""

    weights: Format | None = None
    wire: Format | None = None
    gradients: Literal["fp32", "fp16", "bf16"] | None = None

    def build(self) -> Precision:
        """Return the formats."""
        return Precision(self.weights, self.wire, self.gradients)


class CalibratedSpec(Spec):
    """The machine and release that the profile's overhead was fitted on."""

    accelerator: str
    per_host: Count
    hosts: Count = 1
    release: str = ""

    def unlike_machine(self, cluster: Cluster) -> list[str]:
        """Return in which ways a machine is unlike the one that was fitted, in words."""
        fitted = f"software fitted on {self.accelerator}, {self.per_host} per host, {_hosts(self.hosts)}"
        others = dict.fromkeys(group.accelerator.name for group in cluster.groups)
        found = [f"accelerator {name} ({fitted})" for name in others if name != self.accelerator]
        if cluster.per_host != self.per_host:
            found.append(f"{cluster.per_host} accelerators per host ({fitted})")
        if cluster.hosts != self.hosts:
            found.append(f"{_hosts(cluster.hosts)} ({fitted})")
        if cluster.per_host > 1 and _inside(cluster) <= FASTEST_PCIE:
            found.append(f"accelerators reach each other over PCIe ({fitted})")
        return found

    def kind(self, cluster: Cluster) -> str:
        """Return which spread holds: that of one host, of several, or of machines of another kind.

        Of another kind are hosts on PCIe, and those with less than half as many accelerators.
        """
        if cluster.per_host > 1 and _inside(cluster) <= FASTEST_PCIE:
            return "pcie"
        if 2 * cluster.per_host < self.per_host:
            return "smaller_host"
        return "several_hosts" if cluster.hosts > 1 else "one_host"

    def unlike_release(self, release: str) -> list[str]:
        """Return whether the release is another one, in words."""
        if not release or not self.release or release == self.release:
            return []
        return [f"software release {release} (fitted on {self.release})"]


class SpreadSpec(Spec):
    """How far measured steps lie from predicted ones: 80 % of them within this share, either way.

    Apart for machines like the fitted one, for several hosts of them, for hosts with less than half as many
    accelerators, and for accelerators that reach each other over PCIe.
    """

    one_host: NonNegativeFloat
    several_hosts: NonNegativeFloat
    smaller_host: NonNegativeFloat
    pcie: NonNegativeFloat


class SoftwareSpec(Spec):
    """A framework: overheads, fusion, how keys are spread, and formats. See the guide for each key."""

    family: str = ""
    release: str = ""
    graph_capture: Flag = True
    fixed_cost_per_step: Time = 0.0
    host_time_per_op: Time = 0.0
    slowdown: PositiveFloat = 1.0
    time_per_key: Time = 0.0
    passes: Literal["fused", "eager"] = "fused"
    key_distribution: Literal["exchange", "full_batch"] = "exchange"
    data_parallel_small_tables: Bytes = 0.0
    loader_rate: Frequency | None = None
    gather_efficiency: Fraction | None = None
    precision: PrecisionSpec = PrecisionSpec()
    calibrated_on: CalibratedSpec | None = None
    spread: SpreadSpec | None = None

    def build(self) -> Software:
        """Return the software. Raises InputError for a gather efficiency of nothing."""
        return Software(
            family=self.family,
            release=self.release,
            graph_capture=self.graph_capture,
            fixed_cost_per_step=self.fixed_cost_per_step,
            host_time_per_op=self.host_time_per_op,
            slowdown=self.slowdown,
            time_per_key=self.time_per_key,
            passes=self.passes,
            key_distribution=self.key_distribution,
            small_tables=self.data_parallel_small_tables,
            loader_rate=self.loader_rate,
            gather_efficiency=self.gather_efficiency,
            precision=self.precision.build(),
        )

    def unlike(self, cluster: Cluster) -> list[str]:
        """Return in which ways `cluster` and release are unlike what the profile was fitted on."""
        fitted = self.calibrated_on
        return [*fitted.unlike_machine(cluster), *fitted.unlike_release(self.release)] if fitted else []

    def band(self, cluster: Cluster, step: float) -> dict[str, float] | None:
        """Return the band around a predicted `step` that holds 80 % of measured ones; None where unknown."""
        if self.spread is None or self.calibrated_on is None:
            return None
        factor = 1 + float(getattr(self.spread, self.calibrated_on.kind(cluster)))
        return {"low": step / factor, "high": step * factor, "coverage": COVERAGE}


def _hosts(count: int) -> str:
    return f"{count} host" if count == 1 else f"{count} hosts"


def _inside(cluster: Cluster) -> float:
    """Return the bytes/s of one accelerator inside its host, as far as the fabric says it."""
    fabric = cluster.fabric
    return fabric.within if isinstance(fabric, TwoLevel) else float("inf")


def as_written(software: Software, workload: Workload) -> Workload:
    """Return the workload with this software's fusion and number formats."""
    formats = software.precision
    if formats.weights:
        tables = tuple(replace(table, dtype=formats.weights) for table in workload.tables)
        workload = replace(workload, tables=tables)
    if formats.gradients:
        workload = replace(workload, gradient_bytes=float(value_bytes(formats.gradients)))
    return replace(workload, model=Eager(workload.model)) if software.passes == "eager" else workload


def as_placed(software: Software, plan: ShardingPlan, workload: Workload) -> ShardingPlan:
    """Return the plan with this software's small tables on all ranks and its width of rows on the way."""
    small = tuple(table.name for table in workload.tables if table.bytes <= software.small_tables)
    if small:
        plan = replace(plan, rules=(*plan.rules, Rule(small, DataParallel())))
    if software.precision.wire:
        width = float(value_bytes(software.precision.wire))
        plan = replace(plan, exchange=replace(plan.exchange, value_bytes=width))
    return plan
