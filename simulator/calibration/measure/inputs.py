"""What primitives are measured on: values, keys and places of rows as a batch of a run has them."""

from functools import lru_cache

import numpy as np

from simulator.calibration.measure.channel import Array
from simulator.quantities import IntArray


def floats(shape: tuple[int, ...], seed: int) -> Array:
    """Return random single-precision values between 0 and 1."""
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def codes(size: int, turn: int) -> IntArray:
    """Return keys as a batch has them: Zipf over many rows, scattered."""
    uniform = np.random.default_rng([size, turn]).random(size)
    ranks = np.exp(uniform * np.log(200_000.0)).astype(np.int64)  # Zipf with exponent 1, by inversion
    return np.asarray((ranks * 2654435761) % (1 << 31), dtype=np.int64)


def urns(size: int, repetition: float) -> int:
    """Return among how many values `size` draws leave size / repetition distinct ones (bisection)."""
    low, high = 1.0, 1e4 * size
    for _ in range(60):
        middle = (low * high) ** 0.5
        found = middle * -np.expm1(-size / middle)
        low, high = (middle, high) if found < size / repetition else (low, middle)
    return max(1, round(low))


@lru_cache(maxsize=512)
def places(rows: int, size: int, turn: int) -> IntArray:
    """Return `size` rows of a table of `rows`: rising, and skewed as a batch's rows are."""
    random = np.random.default_rng([rows, size, turn])
    if size > rows // 2:
        return np.sort(random.integers(0, rows, size))
    drawn = np.unique(np.exp(random.random(6 * size) * np.log(rows)).astype(np.int64) * 2654435761 % rows)
    more = np.setdiff1d(random.integers(0, rows, 3 * size), drawn)
    chosen = np.concatenate([random.permutation(drawn), random.permutation(more)])[:size]
    return np.sort(chosen)
