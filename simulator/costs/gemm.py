"""How long a matrix product takes, from its shape: an analytic law everywhere, a learned residual in a box.

The law is a roofline with a start-up. Products are made in tiles by the multiprocessors of a device, all
at once, so a last wave that is not full costs as much as a full one (tile and wave quantisation). What
a library makes of single shapes (other tiles, split products) follows no law; it is learned from
measured shapes, and is applied only inside the box of shapes that were measured.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError
from simulator.quantities import FloatArray

BoolArray = NDArray[np.bool_]
SMALLEST = 16.0  # rows and columns of the smallest tile that matrix engines work on
DEEP = 4096.0  # products deeper than that are split in parts, which are added up
MIRROR = [1, 0, 2, 3]  # m, n, k, batch of the transposed product
LESSER = 1 / 3  # chosen with the reach, see simulator/calibration/gemm_fit.py
# From logarithms of m, n, k, batch to those of the values of the result, of m/n, k and batch, weighed.
AXES = np.array(
    [[1.0, LESSER, 0.0, 0.0], [1.0, -LESSER, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, LESSER]]
)
TILE = 128.0  # rows and columns of one tile: the commonest in cuBLAS and rocBLAS for large products


@dataclass(frozen=True, eq=False)
class Shapes:
    """Products of `batch` times an m x k by a k x n matrix; arrays of one length.

    `read_bytes` and `written_bytes` are the widths of one value of the operands and of the result.
    """

    m: FloatArray
    n: FloatArray
    k: FloatArray
    batch: FloatArray
    read_bytes: float
    written_bytes: float

    @classmethod
    def of(cls, rows: "FloatArray", read_bytes: float, written_bytes: float) -> "Shapes":
        """Return the shapes of an array with the columns m, n, k, batch."""
        m, n, k, batch = np.asarray(rows, dtype=float).reshape(-1, 4).T
        return cls(m, n, k, batch, read_bytes, written_bytes)

    @property
    def flops(self) -> FloatArray:
        """Multiply-adds counted as two."""
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def bytes(self) -> FloatArray:
        """Every operand read once and the result written once."""
        operands = (self.m + self.n) * self.k * self.read_bytes
        return self.batch * (operands + self.m * self.n * self.written_bytes)

    @property
    def logs(self) -> FloatArray:
        """Shape (products, 4): the base-2 logarithms of m, n, k and batch."""
        return np.log2(np.stack([self.m, self.n, self.k, self.batch], axis=1))

    def waste(self, units: float) -> FloatArray:
        """Return the time in whole waves of `units` tiles over that of the product's share of them."""
        high, wide = _tile(self.m), _tile(self.n)
        each = high * wide / TILE**2  # how much of a full tile's time one takes
        tiles = self.batch * np.ceil(self.m / high) * np.ceil(self.n / wide) * each
        exact = self.batch * self.m * self.n / TILE**2
        parts = np.clip(np.minimum(self.k / DEEP, units / tiles), 1.0, None)
        tiles, exact = tiles * parts, exact * parts
        return np.asarray(np.ceil(tiles / units) * units / exact)


def _tile(length: FloatArray) -> FloatArray:
    """Return the side of the tiles: no larger than needed, in powers of two."""
    return np.clip(2.0 ** np.ceil(np.log2(length)), SMALLEST, TILE)


@dataclass(frozen=True)
class TileLaw:
    """`rate` flop/s and `bandwidth` bytes/s at their best, `start_up` seconds, `units` tiles at a time.

    `quantisation` (0 to 1) is the part of the waste of unfilled waves that shows, `sharpness` (from 1) how
    sharply the memory-bound turns into the compute-bound. Raises InputError on impossible values.
    """

    rate: float
    bandwidth: float
    start_up: float
    units: float
    quantisation: float
    sharpness: float

    def __post_init__(self) -> None:
        """Refuse what is no rate, time or share."""
        if not (min(self.rate, self.bandwidth, self.units) > 0 and self.start_up >= 0):
            raise InputError("a law of matrix products needs positive rates and units")
        if not (0 <= self.quantisation <= 1 and self.sharpness >= 1):
            raise InputError("quantisation lies between 0 and 1, sharpness from 1 up")

    def busy(self, shapes: Shapes) -> FloatArray:
        """Return the seconds of each product, start-up left out."""
        slowed = 1 + self.quantisation * (shapes.waste(self.units) - 1)
        made = shapes.flops * slowed / self.rate
        moved = shapes.bytes / self.bandwidth
        longer = np.maximum(made, moved)
        other = np.minimum(made, moved) / longer
        return np.asarray(longer * (1 + other**self.sharpness) ** (1 / self.sharpness))


@dataclass(frozen=True, eq=False)
class Residual:
    """Log of measured over analytic time, by kernel regression on measured shapes.

    `points` (N, 4) are base-2 logarithms of shapes, `weights` (N,) their weights in the sum of the
    `closeness` to each (an exponential, hence rough, Gaussian process).
    """

    points: FloatArray
    weights: FloatArray
    reach: float

    def inside(self, shapes: Shapes) -> BoolArray:
        """Return for each product whether it lies in the box of the points."""
        logs, low, high = shapes.logs, self.points.min(axis=0), self.points.max(axis=0)
        return np.asarray(np.all((logs >= low - 1e-9) & (logs <= high + 1e-9), axis=1), dtype=bool)

    def factor(self, shapes: Shapes) -> FloatArray:
        """Return measured over analytic time of each product; 1 outside of the box."""
        learned = np.exp(closeness(shapes.logs, self.points, self.reach) @ self.weights)
        return np.where(self.inside(shapes), learned, 1.0)


def closeness(left: FloatArray, right: FloatArray, reach: float) -> FloatArray:
    """Return how alike the shapes `left` (A, 4) and `right` (B, 4) are, base-2 logarithms; shape (A, B).

    That is the mean of exp(-distance / reach) to a shape and to its mirror image, as a product and its
    transpose (m and n exchanged) are the same work. Distance is in octaves of the values of the result (how
    many tiles there are) and of the depth k; an octave of m/n or of the batch counts `LESSER` as much.
    """
    here, there = left @ AXES, (right @ AXES, right[:, MIRROR] @ AXES)
    apart = (np.sqrt(((here[:, None, :] - one[None, :, :]) ** 2).sum(axis=2)) for one in there)
    return np.asarray(sum(np.exp(-one / reach) for one in apart) / len(there))


@dataclass(frozen=True, eq=False)
class GemmTime:
    """The law of one device and number format, with what was learned beside it (None: nothing)."""

    law: TileLaw
    residual: Residual | None = None

    def busy(self, shapes: Shapes) -> FloatArray:
        """Return the seconds of each product without start-up, as one of many kernels in a row."""
        return self.law.busy(shapes) * self._factor(shapes)

    def alone(self, shapes: Shapes) -> FloatArray:
        """Return the seconds of each product measured on its own."""
        return (self.law.start_up + self.law.busy(shapes)) * self._factor(shapes)

    def extrapolates(self, shapes: Shapes) -> BoolArray:
        """Return for each product whether nothing near it was measured."""
        if self.residual is None:
            return np.ones(len(shapes.m), dtype=bool)
        return np.logical_not(self.residual.inside(shapes))

    def _factor(self, shapes: Shapes) -> FloatArray:
        return np.ones(len(shapes.m)) if self.residual is None else self.residual.factor(shapes)

    @cached_property
    def learned_shapes(self) -> int:
        """How many measured shapes the residual was learned from."""
        return 0 if self.residual is None else len(self.residual.points)
