"""The load of each owner and the traffic between pairs of ranks, as vectors."""

from dataclasses import dataclass

import numpy as np

from simulator.errors import InputError
from simulator.quantities import Amount, FloatArray
from simulator.sharding.placement.placed import imbalance
from simulator.sharding.traffic import Traffic
from simulator.sharding.world import World

LARGEST_MATRIX = 1024


@dataclass(frozen=True, eq=False)
class RankLoad:
    """What each rank does as an owner for one batch: arrays of shape (ranks,).

    `lookups` are keys it is asked for, `rows` distinct rows it reads, `bytes` what it sends.
    """

    lookups: FloatArray
    rows: FloatArray
    bytes: FloatArray

    @classmethod
    def of(cls, traffic: Traffic) -> "RankLoad":
        """Return the load that `traffic` puts on each rank."""
        ranks = traffic.world.ranks
        return cls(
            per_rank(traffic.requests, ranks),
            per_rank(traffic.rows_owned, ranks),
            per_rank(traffic.row_bytes_sent, ranks),
        )

    @property
    def imbalance(self) -> dict[str, float]:
        """Return ranks * max / sum for each of the three; 1 when all ranks are alike."""
        return {name: imbalance(getattr(self, name)) for name in ("lookups", "rows", "bytes")}


def per_rank(amount: Amount, ranks: int) -> FloatArray:
    """Return `amount` as an array of shape (ranks,)."""
    return np.array(np.broadcast_to(np.asarray(amount, dtype=np.float64), (ranks,)))


@dataclass(frozen=True, eq=False)
class PairTraffic:
    """Bytes from each owner to each source, kept as one vector.

    All ranks train batches of the same size, so what an owner sends is spread evenly over the members
    of its replica group: pair (i, j) is `sent[i]` / members where both are in one group, else 0.
    """

    sent: FloatArray
    world: World

    @classmethod
    def of(cls, traffic: Traffic) -> "PairTraffic":
        """Return the traffic of rows (or their sums) from owners to sources."""
        return cls(per_rank(traffic.row_bytes_sent, traffic.world.ranks), traffic.world)

    @property
    def received(self) -> FloatArray:
        """Return what each rank receives, shape (ranks,)."""
        world = self.world
        by_group = np.bincount(self._groups, weights=self.sent, minlength=world.replicas)
        return np.asarray(by_group[self._groups] / world.members)

    def between(self, size: int) -> FloatArray:
        """Return the bytes between blocks of `size` ranks (1: ranks, `per_host`: hosts), sender first.

        Raises InputError for more than 1,024 blocks: such a matrix is never needed.
        """
        blocks = self.world.ranks // size
        if blocks > LARGEST_MATRIX:
            raise InputError(
                f"a matrix of {blocks:,} x {blocks:,} is too large; ask for larger blocks or for vectors"
            )
        block_of = np.arange(self.world.ranks) // size
        place = (block_of, self._groups)
        sent, present = np.zeros((blocks, self.world.replicas)), np.zeros((blocks, self.world.replicas))
        np.add.at(sent, place, self.sent / self.world.members)
        np.add.at(present, place, 1.0)
        return np.asarray(sent @ present.T)

    @property
    def _groups(self) -> np.ndarray:
        """The replica group of each rank."""
        ranks = np.arange(self.world.ranks)
        return ranks % self.world.replicas if self.world.adjacent else ranks // self.world.members
