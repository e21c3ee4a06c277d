"""How many keys one sample looks up in one table."""

import math
from dataclasses import dataclass

from simulator.errors import InputError


@dataclass(frozen=True)
class Feature:
    """A feature that looks up `pooling` keys per sample, on average, in the table named `table`.

    A single-hot feature has pooling 1, a multi-hot one the mean number of its values, and a
    sequence the mean length of its history. Raises InputError unless `pooling` is positive.
    """

    table: str
    pooling: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a pooling factor that is not a positive number."""
        if not (math.isfinite(self.pooling) and self.pooling > 0):
            raise InputError(f'feature of table "{self.table}": pooling must be positive, not {self.pooling}')

    def lookups(self, samples: float) -> float:
        """Return the lookups (duplicates included) that `samples` samples make."""
        return samples * self.pooling
