"""Matrix products by their shape, as libraries are asked for them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from simulator.quantities import FloatArray


@dataclass(frozen=True)
class MatrixProduct:
    """`batch` times a `rows` x `depth` by a `depth` x `columns` matrix; of one sample, or of all.

    Samples add rows, or with `stacked` products of their own.
    """

    rows: float
    columns: float
    depth: float
    batch: float = 1.0
    stacked: bool = False

    @property
    def flops(self) -> float:
        """Multiply-adds counted as two."""
        return 2.0 * self.batch * self.rows * self.columns * self.depth

    def of(self, samples: float) -> "MatrixProduct":
        """Return the product of so many samples."""
        if self.stacked:
            return MatrixProduct(self.rows, self.columns, self.depth, self.batch * samples, True)
        return MatrixProduct(self.rows * samples, self.columns, self.depth, self.batch)

    @property
    def backward(self) -> "tuple[MatrixProduct, MatrixProduct]":
        """The products that make the gradients of both operands; as many flops each."""
        return (
            MatrixProduct(self.rows, self.depth, self.columns, self.batch, self.stacked),
            MatrixProduct(self.depth, self.columns, self.rows, self.batch, self.stacked),
        )


def as_array(products: Iterable[MatrixProduct]) -> FloatArray:
    """Return rows, columns, depth and batch of each product, shape (products, 4)."""
    found = [(one.rows, one.columns, one.depth, one.batch) for one in products]
    return np.array(found, dtype=np.float64).reshape(-1, 4)
