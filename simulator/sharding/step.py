"""TrainStep: the quantities of one rank's step, under the names that policies ask for."""

import math
from dataclasses import dataclass
from functools import cached_property

from simulator.quantities import (
    NOTHING,
    AllReduceWork,
    AllToAllWork,
    Amount,
    CopyWork,
    CpuWork,
    DenseQuantities,
    DenseWork,
    HoldWork,
    InTurn,
    Work,
)
from simulator.sharding.kinds import Kind
from simulator.sharding.moves import access, streamed
from simulator.sharding.plan import PlacedPlan, ShardingPlan, as_plan
from simulator.sharding.synchronize import average_copies
from simulator.sharding.traffic import Traffic
from simulator.workload.job import STATE_BYTES, Workload
from simulator.workload.tables import KEY_BYTES

WHY_UNEXPLAINED = "host time that no resource explains ({per_worker:.4g} ms per worker of the job; fitted)"


@dataclass(frozen=True, eq=False)
class MicroStep:
    """The quantities of one of `parts` equal parts of a batch: exchanges and dense computation."""

    workload: Workload
    traffic: Traffic

    @cached_property
    def _dense(self) -> DenseQuantities:
        return self.workload.model.quantities()

    @property
    def exchange_rows(self) -> Work:
        """Owners gather what was asked for and send it; sources receive their rows, or sums of them."""
        exchange = self.traffic.placed.plan.exchange
        return InTurn((exchange.gather(self.traffic), *exchange.deliver(self.traffic)))

    @property
    def send_gradients(self) -> Work:
        """Sources send one gradient per row (or sum) that they received; owners receive all of them."""
        ways = self.traffic.placed.plan.exchange.give_back(self.traffic)
        return ways[0] if len(ways) == 1 else InTurn(ways)

    @cached_property
    def _expansion(self) -> Work:
        """From what was received to what the dense model reads, or back; the same for local tables."""
        exchange, local = self.traffic.placed.plan.exchange, self._local
        received = exchange.unpack(self.traffic)
        return InTurn((received, local)) if self.traffic.placed.replicated else received

    @property
    def _local(self) -> Work:
        exchange, samples = self.traffic.placed.plan.exchange, self.traffic.samples
        rows: dict[float, Amount] = {}
        for table in self.traffic.placed.replicated:
            rows[table.row_bytes] = rows.get(table.row_bytes, 0.0) + exchange.local_rows(table, samples)
        return access(rows, "hbm")

    def _compute(self, flops: float, memory_bytes: float, kernels: float) -> DenseWork:
        samples = self.traffic.samples
        return DenseWork(flops * samples, memory_bytes * samples, kernels, self.workload.precision)

    @property
    def forward(self) -> Work:
        """Rows to lookups, then the dense forward pass."""
        dense = self._dense
        return InTurn(
            (self._expansion, self._compute(dense.forward_flops, dense.forward_memory_bytes, dense.kernels))
        )

    @property
    def backward(self) -> Work:
        """The whole dense backward pass, then lookups to gradients per distinct row."""
        return InTurn((self._backward_part(1), self._expansion))

    def _backward_part(self, parts: int) -> DenseWork:
        dense = self._dense
        kernels = 2 * dense.kernels / parts
        return self._compute(dense.backward_flops / parts, dense.backward_memory_bytes / parts, kernels)

    def adding(self, passes: Work, parts: int = 1) -> Work:
        """Return `passes` that add one of `parts` parts of dense gradients to those of micro-batches before.

        Sums are read and written once, within the kernels that make the gradients (our count).
        """
        moved = 2 * STATE_BYTES * self._dense.parameters / parts
        return InTurn((passes, DenseWork(0.0, memory_bytes=moved)))

    @property
    def gradient_bytes(self) -> float:
        """Bytes of the gradients that all ranks add up: dense parameters and tables held by all."""
        copied = sum(table.rows * table.dimension for table in self.traffic.placed.replicated)
        return (self._dense.parameters + copied) * self.workload.gradient_bytes

    @property
    def buckets(self) -> int:
        """How many buckets these gradients are sent in, at most 16."""
        return max(1, min(16, math.ceil(self.gradient_bytes / self.workload.bucket_bytes)))

    @property
    def backward_buckets(self) -> tuple[Work, ...]:
        """The backward pass in equal buckets; row gradients come out with the last one."""
        parts = [self._backward_part(self.buckets) for _ in range(self.buckets)]
        return (*parts[:-1], InTurn((parts[-1], self._expansion)))

    @property
    def all_reduce_bucket(self) -> Work:
        """The all-reduce of one bucket of gradients."""
        return AllReduceWork(self.gradient_bytes / self.buckets)


@dataclass(frozen=True, eq=False)
class TrainStep:
    """The quantities of one rank's step for `workload` sharded by `plan` over `ranks` ranks.

    A kind alone is a plan that holds for all tables. `unexplained_host_time` (seconds per worker of
    the job) is held half in route, half in retrieve. Hosts have `per_host` ranks. Raises InputError
    when the plan does not fit tables or ranks.
    """

    workload: Workload
    plan: Kind | ShardingPlan
    ranks: int
    seed: int = 0
    unexplained_host_time: float = 0.0
    per_host: int = 1

    @cached_property
    def placed(self) -> PlacedPlan:
        """Who owns what."""
        plan = as_plan(self.plan)
        return PlacedPlan(plan, self.workload.tables, plan.world(self.ranks, self.per_host))

    @cached_property
    def traffic(self) -> Traffic:
        """What the whole batch asks of the owners of rows."""
        return self._traffic(self.workload.batch)

    def _traffic(self, samples: float) -> Traffic:
        return Traffic(self.placed, samples, self.seed)

    def micro_batch(self, parts: int) -> MicroStep:
        """Return the quantities of one of `parts` equal micro-batches."""
        return MicroStep(self.workload, self._traffic(self.workload.batch / parts))

    @property
    def read(self) -> Work:
        """Host cores read and prepare the samples."""
        batch, source = self.workload.batch, self.workload.input
        return CpuWork(batch * source.cpu_time, memory_bytes=batch * source.bytes)

    @property
    def copy_inputs(self) -> Work:
        """Keys and dense features go from host to device."""
        return CopyWork(self.workload.batch * self.workload.input_bytes_per_sample, "host_to_device")

    @property
    def route_keys(self) -> Work:
        """Sources prepare their keys (sort them to remove duplicates), then send them to owners."""
        traffic, group = self.traffic, self.placed.world.exchange_group
        if not traffic.flows:
            return InTurn(self._unexplained)
        sent = AllToAllWork(traffic.key_bytes_sent, KEY_BYTES * traffic.requests, group)
        return InTurn((self.placed.plan.exchange.prepare(traffic), sent, *self._unexplained))

    @property
    def _unexplained(self) -> tuple[Work, ...]:
        if not self.unexplained_host_time:
            return ()
        why = WHY_UNEXPLAINED.format(per_worker=self.unexplained_host_time * 1e3)
        return (HoldWork(self.unexplained_host_time * self.ranks / 2, why),)

    @property
    def retrieve_rows(self) -> Work:
        """Owners bring each row that any source needs to the device, once, from where it lives."""
        return InTurn((*self.placed.plan.exchange.collect(self.traffic), *self._unexplained))

    @property
    def refresh_rows(self) -> Work:
        """Rows shared with the previous batch are copied between device buffers, those that lie in some."""
        return CopyWork(self.traffic.bytes_refreshed, "device")

    def sparse_update(self, parts: int = 1) -> Work:
        """Owners add up the gradients that `parts` micro-batches sent and update each distinct row once."""
        rows = self.traffic.by_width(lambda flow: flow.owned)
        update = access(rows, "hbm", self.workload.optimizer.row_passes)
        part = self._traffic(self.workload.batch / parts)
        return InTurn((self.placed.plan.exchange.add_up(part, parts), update))

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
        rows = self._rows_of_an_interval if touched else None
        return average_copies(self.placed, self.workload.optimizer, rows)

    @property
    def _rows_of_an_interval(self) -> Traffic:
        """What a batch as large as all batches of an interval would touch."""
        return self._traffic(self.workload.batch * self.synchronize_every)

    @property
    def optimizer(self) -> Work:
        """The dense optimizer passes over its parameters and state, the row optimizer over whole copies."""
        parameters, passes = self.workload.model.quantities().parameters, self.workload.optimizer
        copied = sum(table.bytes for table in self.placed.replicated)
        moved = 4 * passes.dense_passes * parameters + passes.row_passes * copied
        return DenseWork(0.0, memory_bytes=moved, kernels=1)
