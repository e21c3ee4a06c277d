"""The passes through the dense model, or through a part of it, on the samples of a micro-batch."""

import math
from dataclasses import dataclass, replace

from simulator.quantities import AllReduceWork, DenseWork, InTurn, Work
from simulator.workload.dense.products import MatrixProduct, as_array
from simulator.workload.dense.quantities import DenseQuantities
from simulator.workload.job import Workload

MOST_BUCKETS = 16


@dataclass(frozen=True, eq=False)
class DensePart:
    """`quantities` of a (part of a) dense model on `samples` samples.

    `rows` is what turns received rows into what the part reads, and its gradients back (nothing where the
    part reads no rows). `copied` counts the values of tables that every rank holds: their gradients are
    reduced with those of the part.
    """

    workload: Workload
    quantities: DenseQuantities
    samples: float
    rows: Work | None = None
    copied: float = 0.0

    @property
    def empty(self) -> bool:
        """Whether there is nothing to compute and nothing to learn."""
        return not (self.quantities.forward_flops or self.quantities.parameters)

    @property
    def forward(self) -> Work:
        """Rows to lookups, then the forward pass."""
        return self._with_rows(self.forward_alone, first=True)

    @property
    def forward_alone(self) -> DenseWork:
        """The forward pass without what is done to rows."""
        dense = self.quantities
        work = self._compute(dense.forward_flops, dense.forward_memory_bytes, dense.kernels)
        return replace(work, products=as_array(self._products))

    @property
    def backward(self) -> Work:
        """The whole backward pass, then lookups to gradients per distinct row."""
        return self._with_rows(self._backward(1))

    @property
    def buckets(self) -> int:
        """How many buckets the gradients are sent in."""
        return max(1, min(MOST_BUCKETS, math.ceil(self.gradient_bytes / self.workload.bucket_bytes)))

    @property
    def gradient_bytes(self) -> float:
        """Bytes of the gradients that all ranks add up."""
        return (self.quantities.parameters + self.copied) * self.workload.gradient_bytes

    @property
    def backward_buckets(self) -> tuple[Work, ...]:
        """The backward pass in equal buckets; row gradients come out with the last one."""
        *before, last = self.backward_alone
        return (*before, self._with_rows(last))

    @property
    def backward_alone(self) -> tuple[DenseWork, ...]:
        """The buckets of the backward pass without what is done to rows."""
        return (self._backward(self.buckets),) * self.buckets

    @property
    def all_reduce_bucket(self) -> Work:
        """The all-reduce of one bucket of gradients."""
        return AllReduceWork(self.gradient_bytes / self.buckets)

    def _backward(self, parts: int) -> DenseWork:
        dense = self.quantities
        kernels = 2 * dense.kernels / parts
        work = self._compute(dense.backward_flops / parts, dense.backward_memory_bytes / parts, kernels)
        gradients = tuple(one for product in self._products for one in product.backward)
        return replace(work, products=as_array(gradients), share=1 / parts)

    @property
    def _products(self) -> tuple[MatrixProduct, ...]:
        return tuple(product.of(self.samples) for product in self.quantities.products)

    def _compute(self, flops: float, memory_bytes: float, kernels: float) -> DenseWork:
        samples = self.samples
        return DenseWork(flops * samples, memory_bytes * samples, kernels, self.workload.precision)

    def _with_rows(self, work: DenseWork, first: bool = False) -> Work:
        if self.rows is None:
            return work
        return InTurn((self.rows, work) if first else (work, self.rows))


def captured(work: Work) -> Work:
    """Return `work` launched as one graph: of all launches of kernels in a stage, one is left.

    What a graph saves on a real device is less than that: the gaps between its kernels shrink and do not
    vanish.
    """
    if isinstance(work, InTurn):
        return InTurn(tuple(captured(part) for part in work.parts))
    if not isinstance(work, DenseWork):
        return work
    return replace(work, kernels=min(work.kernels, 1.0))
