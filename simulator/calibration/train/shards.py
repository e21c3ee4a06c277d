"""One rank's share of the tables, and the two optimizers that update its rows."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from simulator.calibration.measure.channel import Array
from simulator.calibration.measure.kernels import adagrad, sgd
from simulator.calibration.train.settings import Settings
from simulator.quantities import IntArray

OWNER_BITS = 40


@dataclass(frozen=True, eq=False)
class Shard:
    """Rows of this rank: weights first, then the optimizer's state where it has any."""

    arrays: tuple[Array, ...]
    rate: float

    @classmethod
    def seeded(cls, settings: Settings, rank: int, ranks: int) -> "Shard":
        """Return small random weights: row g of the whole lies on rank g mod ranks, at place g div ranks."""
        model = settings.model
        held = -(-(model.tables * model.rows - rank) // ranks)
        weights = _seeded(held, model.dimension, settings.seed, rank).copy()
        state = (np.full_like(weights, 0.1),) if settings.optimizer == "adagrad" else ()
        return cls((weights, *state), settings.rate)

    def update(self, rows: tuple[Array, ...], gradient: Array) -> None:
        """Update some rows (weights, state) in place; `gradient` has their shape."""
        if len(rows) == 1:
            sgd(rows[0], gradient, self.rate)
        else:
            adagrad(rows[0], rows[1], gradient, self.rate)


@lru_cache(maxsize=4)
def _seeded(rows: int, dimension: int, seed: int, rank: int) -> Array:
    """Return weights between -0.05 and 0.05, read-only: all runs of a launch start from them."""
    weights = np.random.default_rng([seed, 3, rank]).random((rows, dimension), dtype=np.float32)
    weights -= 0.5
    weights *= 0.1
    weights.flags.writeable = False
    return weights


def codes(row_numbers: IntArray, ranks: int) -> IntArray:
    """Return owner and place in one number: sorted, they are grouped by owner."""
    return ((row_numbers % ranks) << OWNER_BITS) | (row_numbers // ranks)


def by_owner(values: IntArray, ranks: int) -> IntArray:
    """Return where each owner's part of rising codes begins, and the end; shape (ranks + 1,)."""
    return np.searchsorted(values, np.arange(ranks + 1, dtype=np.int64) << OWNER_BITS)


def places(values: IntArray) -> IntArray:
    """Return the places at the owner."""
    return values & ((1 << OWNER_BITS) - 1)
