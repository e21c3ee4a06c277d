"""A model run by a framework that launches a kernel for every arithmetic operation."""

from dataclasses import dataclass, replace

from simulator.workload.dense.model import DenseModel
from simulator.workload.dense.quantities import DenseQuantities


@dataclass(frozen=True)
class Eager:
    """`model` with the passes over memory that fused kernels save."""

    model: DenseModel

    def quantities(self) -> DenseQuantities:
        """Return what one sample costs, unfused."""
        return unfused(self.model.quantities())


def unfused(fused: DenseQuantities) -> DenseQuantities:
    """Return quantities whose passes include those that fusion saves."""
    return replace(
        fused,
        forward_memory_bytes=fused.forward_memory_bytes + fused.fused_forward_bytes,
        backward_memory_bytes=fused.backward_memory_bytes + fused.fused_backward_bytes,
        fused_forward_bytes=0.0,
        fused_backward_bytes=0.0,
        bottom=unfused(fused.bottom) if fused.bottom else None,
    )
