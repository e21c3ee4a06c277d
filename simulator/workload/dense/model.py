"""The one thing asked of a dense model."""

from typing import Protocol

from simulator.workload.dense.quantities import DenseQuantities


class DenseModel(Protocol):
    """Anything that can say what one sample costs to train."""

    def quantities(self) -> DenseQuantities:
        """Return flops, element-wise bytes and kept bytes of one sample, and the parameters."""
        ...
