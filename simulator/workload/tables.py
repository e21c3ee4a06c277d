"""Embedding tables: rows, their width, and how often a sample asks for them."""

from dataclasses import dataclass

from simulator.errors import InputError
from simulator.quantities import value_bytes
from simulator.workload.clustering.sharing import Sharing, Unshared
from simulator.workload.keys.popularity import Popularity

KEY_BYTES = 8
UNSHARED = Unshared()


@dataclass(frozen=True, eq=False)
class EmbeddingTable:
    """One table of `rows` vectors of `dimension` values in format `dtype`.

    `pooling` is the mean number of keys per sample: 1 for a single-hot feature, more for a
    multi-hot one, the length for a sequence. `sharing` is what samples have in common beyond the
    popularity of keys. Raises InputError on impossible values.
    """

    name: str
    rows: float
    dimension: int
    popularity: Popularity
    pooling: float = 1.0
    dtype: str = "fp32"
    sharing: Sharing = UNSHARED

    def __post_init__(self) -> None:
        """Refuse an empty table, and values in no known format."""
        if self.rows < 1 or self.dimension < 1 or self.pooling <= 0:
            raise InputError(f'table "{self.name}": rows, dimension and pooling must be positive')
        value_bytes(self.dtype)

    @property
    def row_bytes(self) -> float:
        """Bytes of one row, as stored and as sent."""
        return float(self.dimension * value_bytes(self.dtype))

    @property
    def bytes(self) -> float:
        """Bytes of the whole table, optimizer state excluded."""
        return self.rows * self.row_bytes

    def lookups(self, samples: float) -> float:
        """Return how many keys `samples` samples ask for, duplicates included."""
        return samples * self.pooling

    def draws(self, samples: float) -> float:
        """Return how many of these are independent of each other: the others repeat what a sample shares.

        Distinct keys, unions and overlaps follow from so many draws by popularity.
        """
        return self.lookups(samples) * self.sharing.fresh(samples)
