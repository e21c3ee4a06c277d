"""MicroStep: the quantities of a micro-batch, under the names that policies ask for."""

from dataclasses import dataclass
from functools import cached_property

from simulator.quantities import Amount, DenseWork, InTurn, Work
from simulator.sharding.moves import access
from simulator.sharding.passes import DensePart
from simulator.sharding.stacks import started
from simulator.sharding.traffic import Traffic
from simulator.workload.job import STATE_BYTES, Workload


@dataclass(frozen=True, eq=False)
class MicroStep:
    """The quantities of one of `parts` equal parts of a batch: exchanges and dense computation."""

    workload: Workload
    traffic: Traffic

    @property
    def gather_rows(self) -> Work:
        """Owners bring what was asked for into the order in which it travels."""
        return self._started(self.traffic.placed.plan.exchange.gather(self.traffic))

    @property
    def deliver_rows(self) -> Work:
        """Rows, or sums of them, travel to the ranks that asked."""
        ways = self.traffic.placed.plan.exchange.deliver(self.traffic)
        return self._started(ways[0] if len(ways) == 1 else InTurn(ways))

    @property
    def exchange_rows(self) -> Work:
        """Owners gather what was asked for and send it; sources receive their rows, or sums of them."""
        exchange = self.traffic.placed.plan.exchange
        return self._started(InTurn((exchange.gather(self.traffic), *exchange.deliver(self.traffic))))

    @property
    def send_gradients(self) -> Work:
        """Sources send one gradient per row (or sum) that they received; owners receive all of them."""
        ways = self.traffic.placed.plan.exchange.give_back(self.traffic)
        return self._started(ways[0] if len(ways) == 1 else InTurn(ways))

    def _started(self, work: Work) -> Work:
        """Return `work` started once per stack of tables and minibatch, where tables are stacked."""
        return started(work, self.traffic)

    @cached_property
    def expansion(self) -> Work:
        """From what was received to what the dense model reads, or back; the same for local tables."""
        exchange, local = self.traffic.placed.plan.exchange, self._local
        received = exchange.unpack(self.traffic)
        return InTurn((received, local)) if self.traffic.placed.replicated else received

    @property
    def model_row_bytes(self) -> float:
        """Bytes of the rows (or sums) that the dense model reads, duplicates included."""
        exchange, placed = self.traffic.placed.plan.exchange, self.traffic.placed
        return sum(
            exchange.model_rows(table, self.traffic.samples) * table.row_bytes for table in placed.in_order
        )

    @property
    def _local(self) -> Work:
        exchange, samples = self.traffic.placed.plan.exchange, self.traffic.samples
        rows: dict[float, Amount] = {}
        for table in self.traffic.placed.replicated:
            rows[table.row_bytes] = rows.get(table.row_bytes, 0.0) + exchange.local_rows(table, samples)
        return access(rows, "hbm")

    @cached_property
    def whole(self) -> DensePart:
        """The whole dense model."""
        dense = self.workload.model.quantities()
        return DensePart(self.workload, dense, self.traffic.samples, self.expansion, self._copied)

    @cached_property
    def bottom(self) -> DensePart:
        """The part of the dense model that reads no rows; empty where every part does."""
        return DensePart(self.workload, self.workload.model.quantities().without_rows, self.traffic.samples)

    @cached_property
    def top(self) -> DensePart:
        """The part of the dense model from the first use of rows on."""
        dense = self.workload.model.quantities().with_rows
        return DensePart(self.workload, dense, self.traffic.samples, self.expansion, self._copied)

    @property
    def _copied(self) -> float:
        return sum(table.rows * table.dimension for table in self.traffic.placed.replicated)

    @property
    def forward(self) -> Work:
        """Rows to lookups, then the dense forward pass."""
        return self.whole.forward

    @property
    def backward(self) -> Work:
        """The whole dense backward pass, then lookups to gradients per distinct row."""
        return self.whole.backward

    def adding(self, passes: Work, parts: int = 1, share: float = 1.0) -> Work:
        """Return `passes` that add one of `parts` parts of dense gradients to those of micro-batches before.

        Sums are read and written once, within the kernels that make the gradients (our count), in a `share`
        of all batches.
        """
        moved = share * 2 * STATE_BYTES * self.whole.quantities.parameters / parts
        return InTurn((passes, DenseWork(0.0, memory_bytes=moved)))

    @property
    def gradient_bytes(self) -> float:
        """Bytes of the gradients that all ranks add up: dense parameters and tables held by all."""
        return self.whole.gradient_bytes

    @property
    def buckets(self) -> int:
        """How many buckets these gradients are sent in, at most 16."""
        return self.whole.buckets

    @property
    def backward_buckets(self) -> tuple[Work, ...]:
        """The backward pass in equal buckets; row gradients come out with the last one."""
        return self.whole.backward_buckets

    @property
    def all_reduce_bucket(self) -> Work:
        """The all-reduce of one bucket of gradients."""
        return self.whole.all_reduce_bucket
