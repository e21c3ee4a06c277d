"""How fast work is done on a cluster: seconds from amounts, one function per kind of work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, singledispatchmethod
from typing import Protocol

import numpy as np

from simulator.costs.collectives import Network, Phase
from simulator.costs.curves import Curve
from simulator.costs.groups import Members
from simulator.costs.rows import FROM_MEMORY, RowSpeed, row_seconds
from simulator.errors import InputError
from simulator.hardware import Accelerator, Cluster
from simulator.quantities import (
    AllReduceWork,
    AllToAllWork,
    Amount,
    CopyWork,
    CpuWork,
    DenseWork,
    HoldWork,
    InTurn,
    ReduceScatterWork,
    RowWork,
    Together,
    Work,
)


class DenseSpeed(Protocol):
    """How fast an accelerator does dense work."""

    def seconds(self, work: DenseWork, accelerator: Accelerator) -> Amount:
        """Return the time of `work` on `accelerator`, seconds."""


@dataclass(frozen=True)
class Roofline:
    """Matrix products at their measured share of the peak, then element-wise passes, then launches.

    They are added: a product does not overlap the element-wise kernel that needs its result.
    """

    def seconds(self, work: DenseWork, accelerator: Accelerator) -> Amount:
        """Return flops / achieved rate + bytes / achieved bandwidth + launches."""
        products = _over(work.flops, accelerator.peak(work.precision) * accelerator.matrix_efficiency)
        return products + _passes(work, accelerator) + work.kernels * accelerator.launch_time


@dataclass(frozen=True)
class Utilization:
    """A measured share of the peak for the whole model: it contains passes, launches and idle gaps.

    `share` is executed flops (recomputation included) over peak flops. Work without flops, such as
    an optimizer's passes, is timed by its memory traffic.
    """

    share: float

    def seconds(self, work: DenseWork, accelerator: Accelerator) -> Amount:
        """Return flops / (peak * share), or the time of the passes when there are no flops."""
        if not np.any(work.flops):
            return _passes(work, accelerator) + work.kernels * accelerator.launch_time
        return _over(work.flops, accelerator.peak(work.precision) * self.share)


def _passes(work: DenseWork, accelerator: Accelerator) -> Amount:
    return _over(work.memory_bytes, accelerator.hbm_bandwidth * accelerator.memory_efficiency)


def _over(amount: Amount, rate: float) -> Amount:
    return amount / rate


@dataclass(frozen=True)
class CostModel:
    """Seconds of any work on one rank of `cluster`; `dense` and `rows` say how fast each of them goes.

    `curves` holds measured times of collectives over all ranks, by operation (`all_to_all`,
    `all_reduce`); without one, a collective takes what its bytes take on the fabric's links.
    """

    cluster: Cluster
    dense: DenseSpeed = Roofline()
    rows: RowSpeed = FROM_MEMORY
    curves: Mapping[str, Curve] = field(default_factory=dict, hash=False)

    @cached_property
    def network(self) -> Network:
        """What collectives over all ranks cost."""
        return Network(self.cluster)

    @singledispatchmethod
    def seconds(self, work: Work) -> Amount:
        """Return the time of `work` on each rank when nothing is shared: a float, or one per rank."""
        raise InputError(f"no cost is known for {type(work).__name__}")

    @seconds.register
    def _dense(self, work: DenseWork) -> Amount:
        seconds = self.dense.seconds(work, self.cluster.accelerator)
        return seconds / self.cluster.speed("compute")

    @seconds.register
    def _cpu(self, work: CpuWork) -> Amount:
        """Cores and DRAM are this rank's even share of its host."""
        traffic = _over(work.memory_bytes, self.cluster.dram_bandwidth_per_rank)
        cores = work.core_seconds / self.cluster.cores_per_rank
        return np.maximum(cores, traffic) / self.cluster.speed("host")

    @seconds.register
    def _rows(self, work: RowWork) -> Amount:
        return row_seconds(work, self.cluster, self.rows)

    @seconds.register
    def _copy(self, work: CopyWork) -> Amount:
        """A copy within device memory reads and writes every byte."""
        accelerator = self.cluster.accelerator
        if work.path == "device":
            rate = accelerator.hbm_bandwidth * accelerator.memory_efficiency
            return _over(2 * work.bytes, rate) / self.cluster.speed("memory")
        return _over(work.bytes, accelerator.host_link_bandwidth) / self.cluster.speed("copy")

    @seconds.register
    def _all_to_all(self, work: AllToAllWork) -> Amount:
        return self.network.alone(self.phases(work))

    @seconds.register
    def _all_reduce(self, work: AllReduceWork) -> Amount:
        return self.network.alone(self.phases(work))

    @seconds.register
    def _reduce_scatter(self, work: ReduceScatterWork) -> Amount:
        return self.network.alone(self.phases(work))

    @singledispatchmethod
    def phases(self, work: Work) -> tuple[Phase, ...]:
        """Return what a collective does, phase by phase; other work is one phase without flows."""
        return (Phase(float(np.max(self.seconds(work)))),)

    @phases.register
    def _all_to_all_phases(self, work: AllToAllWork) -> tuple[Phase, ...]:
        received = work.bytes if work.received_bytes is None else work.received_bytes
        planned = Members(self.network, work.group).all_to_all(work.bytes, received)
        busiest = float(np.max(np.maximum(work.bytes, received)))
        return planned if work.group else self._as_measured("all_to_all", busiest, planned)

    @phases.register
    def _all_reduce_phases(self, work: AllReduceWork) -> tuple[Phase, ...]:
        planned = Members(self.network, work.group).all_reduce(work.bytes)
        return planned if work.group else self._as_measured("all_reduce", float(np.max(work.bytes)), planned)

    def _as_measured(self, operation: str, size: float, planned: tuple[Phase, ...]) -> tuple[Phase, ...]:
        """Return `planned` stretched to the measured time; its links stay what it shares with others."""
        alone = self.network.alone(planned)
        if operation not in self.curves or not alone or not size:
            return planned
        factor = self.measured_seconds(operation, size) / alone
        return tuple(phase.stretched(factor) for phase in planned)

    def measured_seconds(self, operation: str, size: float) -> float:
        """Return what a measured collective of `size` bytes takes. Raises InputError beyond its reach."""
        cluster = self.cluster
        return float(self.curves[operation].seconds(size, cluster.ranks, cluster.hosts))

    @phases.register
    def _reduce_scatter_phases(self, work: ReduceScatterWork) -> tuple[Phase, ...]:
        return Members(self.network, work.group).reduce_scatter(work.bytes)

    @phases.register
    def _in_turn_phases(self, work: InTurn) -> tuple[Phase, ...]:
        return tuple(phase for part in work.parts for phase in self.phases(part))

    @seconds.register
    def _hold(self, work: HoldWork) -> Amount:
        return work.seconds

    @seconds.register
    def _in_turn(self, work: InTurn) -> Amount:
        """A collective with local work before it ends for nobody before the slowest rank is done."""
        total = sum((self.seconds(part) for part in work.parts), start=0.0)
        return float(np.max(total)) if work.rendezvous else total

    @seconds.register
    def _together(self, work: Together) -> Amount:
        longest: Amount = 0.0
        for part in work.parts:
            longest = np.maximum(longest, self.seconds(part))
        return longest
