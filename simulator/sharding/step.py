"""TrainStep: the quantities of one rank's step, under the names that policies ask for."""

import math
from dataclasses import dataclass
from functools import cached_property

from simulator.quantities import (
    NOTHING,
    AllReduceWork,
    AllToAllWork,
    CopyWork,
    CpuWork,
    DenseQuantities,
    DenseWork,
    HoldWork,
    InTurn,
    RowWork,
    Together,
    Work,
)
from simulator.sharding.plan import RowWise
from simulator.sharding.traffic import Traffic
from simulator.workload.job import Workload
from simulator.workload.tables import KEY_BYTES

# A radix sort of 64-bit keys makes eight passes over byte-wide digits and reads and writes each
# key in each; removing duplicates costs one such sort (our count).
SORT_BYTES_PER_KEY = 8 * 2 * KEY_BYTES
WHY_UNEXPLAINED = "host time per worker of the job that no resource explains; fitted, see the scenario"


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
        """Owners gather what was asked for and send it; sources receive their distinct rows."""
        sent = self.traffic.row_bytes_sent
        return InTurn((self._owner_pass, AllToAllWork(sent, received_bytes=self.traffic.row_bytes_received)))

    @property
    def send_gradients(self) -> Work:
        """Sources send one gradient per distinct row; owners receive all of them."""
        received = self.traffic.row_bytes_sent
        return AllToAllWork(self.traffic.row_bytes_received, received_bytes=received)

    @property
    def _owner_pass(self) -> Work:
        """Reading requested rows from the buffer and writing them out in order of their source."""
        return RowWork(self.traffic.requests, self.traffic.mean_row_bytes, tier="hbm", passes=2)

    @property
    def _expansion(self) -> Work:
        """Distinct rows to one row per lookup (or its transpose): each is read once and written once."""
        bytes_moved = self.traffic.row_bytes_received + self.traffic.expanded_bytes
        return RowWork(1.0, bytes_moved, tier="hbm")

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

    @property
    def buckets(self) -> int:
        """How many buckets the dense gradients are sent in, at most 16."""
        total = self._dense.parameters * self.workload.gradient_bytes
        return max(1, min(16, math.ceil(total / self.workload.bucket_bytes)))

    @property
    def backward_buckets(self) -> tuple[Work, ...]:
        """The backward pass in equal buckets; row gradients come out with the last one."""
        parts = [self._backward_part(self.buckets) for _ in range(self.buckets)]
        return (*parts[:-1], InTurn((parts[-1], self._expansion)))

    @property
    def all_reduce_bucket(self) -> Work:
        """The all-reduce of one bucket of dense gradients."""
        return AllReduceWork(self._dense.parameters * self.workload.gradient_bytes / self.buckets)


@dataclass(frozen=True, eq=False)
class TrainStep:
    """The quantities of one rank's step for `workload` sharded by `plan` over `ranks` ranks.

    `unexplained_host_time` (seconds per worker of the job) is held half in route, half in retrieve.
    """

    workload: Workload
    plan: RowWise
    ranks: int
    seed: int = 0
    unexplained_host_time: float = 0.0

    @cached_property
    def traffic(self) -> Traffic:
        """What the whole batch asks of the owners of rows."""
        return self._traffic(self.workload.batch)

    def _traffic(self, samples: float) -> Traffic:
        return Traffic(self.workload.tables, self.plan, self.ranks, samples, self.seed)

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
        """Sources sort their keys to remove duplicates, then send each distinct key to its owner."""
        sort = DenseWork(0.0, memory_bytes=self.traffic.lookups * SORT_BYTES_PER_KEY)
        sent = AllToAllWork(self.traffic.key_bytes_sent, received_bytes=KEY_BYTES * self.traffic.requests)
        return InTurn((sort, sent, *self._unexplained))

    @property
    def _unexplained(self) -> tuple[Work, ...]:
        if not self.unexplained_host_time:
            return ()
        return (HoldWork(self.unexplained_host_time * self.ranks / 2, WHY_UNEXPLAINED),)

    @property
    def retrieve_rows(self) -> Work:
        """Owners remove duplicates again and read each row once, from host memory or from HBM."""
        sort = DenseWork(0.0, memory_bytes=self.traffic.requests * SORT_BYTES_PER_KEY)
        return InTurn((sort, self._row_move("host_to_device"), *self._unexplained))

    def _row_move(self, path: str) -> Work:
        """Rows between their tier and the device buffer, streamed when they cross the host link."""
        rows = RowWork(self.traffic.rows_owned, self._owned_row_bytes, self.plan.tier)
        if self.plan.tier == "hbm":
            return rows
        return Together((rows, CopyWork(self.traffic.bytes_owned, path)))

    @property
    def _owned_row_bytes(self) -> float:
        return self.traffic.bytes_owned / self.traffic.rows_owned if self.traffic.rows_owned else 0.0

    @property
    def refresh_rows(self) -> Work:
        """Rows shared with the previous batch are copied between device buffers."""
        return CopyWork(self.traffic.bytes_shared, "device")

    @property
    def sparse_update(self) -> Work:
        """Owners add up the gradients they received and update each distinct row once."""
        traffic, passes = self.traffic, self.workload.optimizer.row_passes
        gradients = RowWork(traffic.requests, traffic.mean_row_bytes, tier="hbm")
        return InTurn(
            (gradients, RowWork(traffic.rows_owned, self._owned_row_bytes, tier="hbm", passes=passes))
        )

    @property
    def write_back(self) -> Work:
        """Updated rows return to host memory; rows that live in HBM are there already."""
        return NOTHING if self.plan.tier == "hbm" else self._row_move("device_to_host")

    @property
    def optimizer(self) -> Work:
        """The dense optimizer passes over its parameters and state."""
        parameters = self.workload.model.quantities().parameters
        return DenseWork(0.0, memory_bytes=4 * self.workload.optimizer.dense_passes * parameters, kernels=1)
