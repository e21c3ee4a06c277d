"""TrainStep: the quantities of one rank's step, under the names that policies ask for."""

from dataclasses import dataclass
from functools import cached_property

from simulator.costs.software import PLAIN_SOFTWARE, Software
from simulator.quantities import (
    NOTHING,
    AllToAllWork,
    CopyWork,
    CpuWork,
    DenseWork,
    HoldWork,
    InTurn,
    Together,
    Work,
)
from simulator.sharding.exchange import read_once, sort_requests
from simulator.sharding.kinds import Kind
from simulator.sharding.lookahead import Lookahead
from simulator.sharding.micro import MicroStep
from simulator.sharding.moves import access, streamed
from simulator.sharding.plan import PlacedPlan, ShardingPlan, as_plan
from simulator.sharding.prefetched import MissedTraffic
from simulator.sharding.served import Served
from simulator.sharding.stacks import started
from simulator.sharding.synchronize import Averaging
from simulator.sharding.traffic import Traffic
from simulator.workload.job import Workload
from simulator.workload.tables import KEY_BYTES

WHY_UNEXPLAINED = "host time that no resource explains ({per_worker:.4g} ms per worker of the job; fitted)"


@dataclass(frozen=True, eq=False)
class TrainStep:
    """The quantities of one rank's step for `workload` sharded by `plan` over `ranks` ranks.

    A kind alone is a plan that holds for all tables. `unexplained_host_time` (seconds per worker of
    the job) is held half in route, half in retrieve. Hosts have `per_host` ranks. `software` is what the
    framework adds. Raises InputError when the plan does not fit tables or ranks.
    """

    workload: Workload
    plan: Kind | ShardingPlan
    ranks: int
    seed: int = 0
    unexplained_host_time: float = 0.0
    per_host: int = 1
    software: Software = PLAIN_SOFTWARE

    @cached_property
    def placed(self) -> PlacedPlan:
        """Who owns what."""
        plan = as_plan(self.plan)
        return PlacedPlan(plan, self.workload.tables, plan.world(self.ranks, self.per_host))

    @cached_property
    def traffic(self) -> Traffic:
        """What the whole batch asks of the owners of rows."""
        return self._traffic(self.workload.batch)

    @cached_property
    def served(self) -> Served:
        """What moves between a rank and parameter servers that it deals with itself."""
        return Served(self)

    def lookahead(self, depth: int, ranks: int | None = None) -> Lookahead:
        """Return what a cache over `depth` batches (0: none) for `ranks` (None: all) brings and keeps."""
        return Lookahead(self.served, depth, ranks or self.ranks)

    @cached_property
    def fitting(self) -> MissedTraffic:
        """The rows to bring that have room in a cache beside the rows of the batch before."""
        return MissedTraffic.of(self.traffic, "early")

    @cached_property
    def late(self) -> MissedTraffic:
        """The rows to bring that have none."""
        return MissedTraffic.of(self.traffic, "late")

    def _traffic(self, samples: float) -> Traffic:
        return Traffic(self.placed, samples, self.seed)

    def micro_batch(self, parts: int) -> MicroStep:
        """Return the quantities of one of `parts` equal micro-batches."""
        return MicroStep(self.workload, self._traffic(self.workload.batch / parts))

    @property
    def read(self) -> Work:
        """Host cores read and prepare the samples."""
        batch, source = self.workload.batch, self.workload.input
        prepared = CpuWork(batch * source.cpu_time, memory_bytes=batch * source.bytes)
        if self.software.loader_rate is None:
            return prepared
        return Together((prepared, self.software.loading(batch * self.per_host)))

    @property
    def copy_inputs(self) -> Work:
        """Keys and dense features go from host to device."""
        return CopyWork(self.input_bytes, "host_to_device")

    @property
    def input_bytes(self) -> float:
        """Bytes of a batch's keys and dense features; with full batches of keys, those of all ranks."""
        own = self.workload.batch * self.workload.input_bytes_per_sample
        if self.software.full_batch:
            return own + (self.ranks - 1) * KEY_BYTES * self.traffic.routed
        return own

    @property
    def route_keys(self) -> Work:
        """Sources prepare their keys (sort them to remove duplicates), then send them to owners."""
        traffic, group = self.traffic, self.placed.world.exchange_group
        if not traffic.flows:
            return InTurn(self._unexplained)
        if self.software.full_batch:
            picked = DenseWork(0.0, memory_bytes=2 * KEY_BYTES * traffic.routed * self.ranks)
            return InTurn((picked, *self._unexplained))
        keys = AllToAllWork(traffic.key_bytes_sent, KEY_BYTES * traffic.requests, group)
        sent = started(keys, traffic)
        return InTurn((self.placed.plan.exchange.prepare(traffic), sent, *self._unexplained))

    @property
    def _unexplained(self) -> tuple[Work, ...]:
        if not self.unexplained_host_time:
            return ()
        why = WHY_UNEXPLAINED.format(per_worker=self.unexplained_host_time * 1e3)
        return (HoldWork(self.unexplained_host_time * self.ranks / 2, why, "cluster.unexplained_host_time"),)

    @property
    def retrieve_rows(self) -> Work:
        """Owners bring each row that any source needs to the device, once, from where it lives."""
        return InTurn((*self.placed.plan.exchange.collect(self.traffic), *self._unexplained))

    @property
    def prefetches(self) -> bool:
        """Whether rows live in a cache that has room for some of the next batch's, beside those in use."""
        return not self.placed.in_place and (self.late.empty or not self.fitting.empty)

    @property
    def prefetch_rows(self) -> Work:
        """A cache finds out what it lacks; what has room beside the rows of the batch before comes to it."""
        return InTurn((sort_requests(self.traffic), *read_once(self.fitting), *self._unexplained))

    @property
    def retrieve_late_rows(self) -> Work:
        """What is left of `retrieve_rows` after that: rows that had no room, and what is done to all."""
        brought = () if self.late.empty else read_once(self.late)
        parts = (*self.placed.plan.exchange.in_line(self.traffic), *brought)
        return InTurn(parts) if parts else NOTHING

    @property
    def refresh_rows(self) -> Work:
        """Rows shared with the previous batch are copied between device buffers, those that lie in some."""
        return CopyWork(self.traffic.bytes_refreshed, "device")

    def sparse_update(self, parts: int = 1) -> Work:
        """Owners add up the gradients that `parts` micro-batches sent and update each distinct row once."""
        rows = self.traffic.by_width(lambda flow: flow.owned)
        update = started(access(rows, "hbm", self.workload.optimizer.row_passes), self.traffic)
        part = self._traffic(self.workload.batch / parts)
        held = self.software.per_keys(self.traffic.requests)
        return InTurn((self.placed.plan.exchange.add_up(part, parts), update, *_some(held)))

    @property
    def lookup_kind(self) -> str:
        """The kind of the stages that retrieve rows and write them back, `lookup` or `parameter_server`.

        With several tiers it is that of the larger part of the bytes.
        """
        return self.traffic.lookup_kind

    @property
    def consistency(self) -> str:
        """What the plan keeps of synchronous training: `synchronous`, or `stale` with several copies."""
        return self.placed.plan.replicas.consistency

    @property
    def staleness_steps(self) -> int:
        """How many updates behind the plan lets a copy of a row be."""
        return self.placed.plan.replicas.staleness_steps

    @property
    def write_back(self) -> Work:
        """Updated rows return to where they live; those that live in HBM are there already."""
        parts = [part for home, moved in self.traffic.by_tier.items() for part in home.write(moved)]
        return streamed(tuple(parts)) if parts else NOTHING

    @property
    def add_back(self) -> Work:
        """The updates of rows go there and are added to the rows, at the price of `write_back`.

        An update is as wide as its row, so the way there is the same. In memory we assume that it is, too: a
        store to a row that no cache holds first reads its lines (write-allocate), so reading the row to add
        to it brings nothing over the bus that the store does not bring; the additions themselves are free.
        """
        return self.write_back

    @property
    def synchronize_every(self) -> int:
        """Steps from one averaging of the replicas to the next; 0 when there is one copy only."""
        replicas = self.placed.plan.replicas
        return replicas.every if replicas.count > 1 else 0

    @property
    def synchronize(self) -> Work:
        """Replicas of each shard are averaged; nothing when there is one copy only."""
        if not self.synchronize_every:
            return NOTHING
        touched = self.placed.plan.replicas.touched
        used = self._rows_of_an_interval if touched else None
        return Averaging(self.traffic, self.workload.optimizer, used).work

    @property
    def _rows_of_an_interval(self) -> Traffic:
        """What a batch as large as all batches of an interval, at all copies, would touch."""
        copies = self.placed.plan.replicas.count
        return self._traffic(self.workload.batch * self.synchronize_every * copies)

    @property
    def dense_gradient_bytes(self) -> float:
        """Bytes of the dense gradients that a rank holds, in fp32."""
        return 4.0 * self.workload.model.quantities().parameters

    @property
    def optimizer(self) -> Work:
        """The dense optimizer passes over its parameters and state, the row optimizer over whole copies.

        What the framework takes beside its kernels is held here, once a step.
        """
        quantities, passes = self.workload.model.quantities(), self.workload.optimizer
        parameters = quantities.parameters
        copied = sum(table.bytes for table in self.placed.replicated)
        moved = 4 * passes.dense_passes * parameters + passes.row_passes * copied
        updated = DenseWork(0.0, memory_bytes=moved, kernels=1)
        held = self.software.per_step(quantities.kernels, len(self.workload.tables))
        return updated if held is NOTHING else InTurn((updated, held))


def _some(work: Work) -> tuple[Work, ...]:
    return () if work is NOTHING else (work,)
