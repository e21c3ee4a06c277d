"""How fast work is done on a cluster: seconds from amounts, one function per kind of work."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, singledispatchmethod

import numpy as np

from simulator.costs.algorithms import AS_TUNED, PLAIN, Choice, Overheads, Plan
from simulator.costs.collectives import Network
from simulator.costs.curves import Curve
from simulator.costs.dense import ROOFLINE, DenseSpeed
from simulator.costs.phases import Phase, in_rounds
from simulator.costs.planning import plan
from simulator.costs.rows import FROM_MEMORY, RowSpeed, row_seconds
from simulator.costs.rpc import rpc_seconds, server_seconds
from simulator.errors import InputError
from simulator.hardware import Cluster
from simulator.quantities import (
    AllGatherWork,
    AllReduceWork,
    AllToAllWork,
    Amount,
    BroadcastWork,
    Collective,
    CopyWork,
    CpuWork,
    DenseWork,
    HoldWork,
    InTurn,
    PartsWork,
    PointToPointWork,
    ReduceScatterWork,
    RowWork,
    RpcWork,
    ServerWork,
    Together,
    Work,
    busiest,
)

Seconds = Callable[[Work], Amount]
"""What gives the time of any work: a float, or one per rank."""
_Grouped = AllToAllWork | AllReduceWork | PartsWork


@dataclass(frozen=True)
class CostModel:
    """Seconds of any work on one rank of `cluster`; `dense` and `rows` say how fast each of them goes.

    `curves` holds measured times of collectives over all ranks, by operation (`all_to_all`, `all_reduce`,
    `all_gather`, `reduce_scatter`); without one, and in groups, a collective takes what its bytes take on
    the fabric's links, under the algorithm of `algorithms` and with the `overheads` of its messages. Slow
    connections make a measured collective as much longer as they make its bytes on the links.
    """

    cluster: Cluster
    dense: DenseSpeed = ROOFLINE
    rows: RowSpeed = FROM_MEMORY
    curves: Mapping[str, Curve] = field(default_factory=dict, hash=False)
    algorithms: Choice = AS_TUNED
    overheads: Overheads = PLAIN

    @cached_property
    def network(self) -> Network:
        """What collectives cost."""
        return Network(self.cluster, self.algorithms, self.overheads)

    @cached_property
    def by_kind(self) -> "tuple[CostModel, ...]":
        """What work costs on each kind of rank, as if the whole cluster were of that kind."""
        if not self.cluster.others:
            return (self,)
        return tuple(replace(self, cluster=cluster) for cluster in self.cluster.by_group)

    def seconds(self, work: Work) -> Amount:
        """Return the time of `work` on each rank when nothing is shared: a float, or one per rank."""
        kind_of = self.cluster.kind_of
        if kind_of is None or work.rendezvous or isinstance(work, InTurn | Together):
            return self._seconds(work)
        each = [np.broadcast_to(costs.seconds(work), kind_of.shape) for costs in self.by_kind]
        mixed: Amount = np.stack(each)[kind_of, np.arange(len(kind_of))]
        return mixed

    @singledispatchmethod
    def _seconds(self, work: Work) -> Amount:
        """Return the time of `work` where all ranks are of one kind."""
        raise InputError(f"no cost is known for {type(work).__name__}")

    @_seconds.register
    def _dense(self, work: DenseWork) -> Amount:
        seconds = self.dense.seconds(work, self.cluster.accelerator)
        return seconds / self.cluster.speed("compute")

    @_seconds.register
    def _cpu(self, work: CpuWork) -> Amount:
        """Cores and DRAM are this rank's even share of its host."""
        traffic = work.memory_bytes / self.cluster.dram_bandwidth_per_rank
        cores = work.core_seconds / self.cluster.cores_per_rank
        return np.maximum(cores, traffic) / self.cluster.speed("host")

    @_seconds.register
    def _rows(self, work: RowWork) -> Amount:
        return row_seconds(work, self.cluster, self.rows)

    @_seconds.register
    def _rpc(self, work: RpcWork) -> Amount:
        return rpc_seconds(work, self.cluster)

    @_seconds.register
    def _for_all_ranks(self, work: ServerWork) -> Amount:
        return server_seconds(work, self.cluster)

    @_seconds.register
    def _copy(self, work: CopyWork) -> Amount:
        """A copy within device memory reads and writes every byte."""
        if work.path == "device":
            rate = self.cluster.accelerator.streaming_bandwidth
            return 2 * work.bytes / rate / self.cluster.speed("memory")
        return work.bytes / self.cluster.copy_bandwidth / self.cluster.speed("copy")

    @_seconds.register(AllToAllWork)
    @_seconds.register(AllReduceWork)
    @_seconds.register(PartsWork)
    @_seconds.register(BroadcastWork)
    @_seconds.register(PointToPointWork)
    def _collective(self, work: Collective) -> Amount:
        return self.network.ends(self.phases(work))

    @singledispatchmethod
    def phases(self, work: Work) -> tuple[Phase, ...]:
        """Return what a collective does, phase by phase; other work is one phase without flows."""
        return (Phase(busiest(self.seconds(work))),)

    @phases.register
    def _all_to_all_phases(self, work: AllToAllWork) -> tuple[Phase, ...]:
        received = work.bytes if work.received_bytes is None else work.received_bytes
        once = self._as_measured("all_to_all", busiest(np.maximum(work.bytes, received)), work)
        return in_rounds(once, work.rounds)

    @phases.register
    def _all_reduce_phases(self, work: AllReduceWork) -> tuple[Phase, ...]:
        return self._as_measured("all_reduce", busiest(work.bytes), work)

    @phases.register
    def _reduce_scatter_phases(self, work: ReduceScatterWork) -> tuple[Phase, ...]:
        return in_rounds(self._as_measured("reduce_scatter", busiest(work.bytes), work), work.rounds)

    @phases.register
    def _all_gather_phases(self, work: AllGatherWork) -> tuple[Phase, ...]:
        return in_rounds(self._as_measured("all_gather", busiest(work.bytes), work), work.rounds)

    @phases.register(BroadcastWork)
    @phases.register(PointToPointWork)
    def _planned_phases(self, work: Work) -> tuple[Phase, ...]:
        return self.plan(work).phases

    def plan(self, work: Work) -> Plan:
        """Return how a collective is done: the algorithm and its phases. InputError for other work."""
        return plan(work, self.network)

    def _as_measured(self, operation: str, size: float, work: _Grouped) -> tuple[Phase, ...]:
        """Return the planned phases stretched to the measured time; links stay what it shares with others.

        What was measured had equal loads and no slow connections: the stretch is that of a plan for them.
        """
        planned = self.plan(work).phases
        if operation not in self.curves or work.group or not size:
            return planned
        even: Work = AllToAllWork(size) if isinstance(work, AllToAllWork) else type(work)(size)
        alone = self.network.alone(plan(even, self._nominal_network).phases)
        factor = self.measured_seconds(operation, size) / alone if alone else 1.0
        return tuple(phase.stretched(factor) for phase in planned)

    @cached_property
    def _nominal_network(self) -> Network:
        """What collectives cost when no connection is slow."""
        if not self.cluster.slow:
            return self.network
        return Network(replace(self.cluster, slow=()), self.algorithms, self.overheads)

    def measured_seconds(self, operation: str, size: float) -> float:
        """Return what a measured collective of `size` bytes takes. Raises InputError beyond its reach."""
        cluster = self.cluster
        return float(self.curves[operation].seconds(size, cluster.ranks, cluster.hosts))

    @phases.register
    def _in_turn_phases(self, work: InTurn) -> tuple[Phase, ...]:
        return tuple(phase for part in work.parts for phase in self.phases(part))

    @_seconds.register
    def _hold(self, work: HoldWork) -> Amount:
        return work.seconds

    @_seconds.register
    def _in_turn(self, work: InTurn) -> Amount:
        """A collective begins for nobody before the slowest rank is done with what comes before it.

        All are done with the whole together, unless a collective lets some ranks go before others.
        """
        total: Amount = 0.0
        apart = not work.rendezvous
        for part in work.parts:
            seconds = self.seconds(part)
            apart |= part.rendezvous and np.ndim(seconds) > 0
            total = (busiest(total) if part.rendezvous else total) + seconds
        return total if apart else busiest(total)

    @_seconds.register
    def _together(self, work: Together) -> Amount:
        longest: Amount = 0.0
        for part in work.parts:
            longest = np.maximum(longest, self.seconds(part))
        return longest
