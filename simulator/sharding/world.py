"""Who shares a copy of the tables: replica groups, the ranks in them, and amounts per rank."""

from dataclasses import dataclass

import numpy as np

from simulator.errors import InputError
from simulator.quantities import Amount, FloatArray, Group


@dataclass(frozen=True)
class World:
    """`ranks` ranks in hosts of `per_host`, in `replicas` groups that hold all tables each.

    With `adjacent`, the replicas of a shard are neighbours (rank r, r + 1, ...) and a group takes every
    `replicas`-th rank; without, a group is a block of neighbours. Raises InputError when groups would
    differ in size.
    """

    ranks: int
    per_host: int = 1
    replicas: int = 1
    adjacent: bool = False

    def __post_init__(self) -> None:
        """Refuse groups of unequal size."""
        if self.replicas < 1 or self.ranks % self.replicas:
            near = [m for m in range(1, self.ranks + 1) if self.ranks % m == 0]
            best = sorted(near, key=lambda m: abs(m - self.replicas))[:2]
            wanted = " or ".join(str(m) for m in sorted(best))
            raise InputError(f"{self.ranks} ranks do not make {self.replicas} equal groups; take {wanted}")

    @property
    def members(self) -> int:
        """Ranks of one group: the owners of one copy of the tables."""
        return self.ranks // self.replicas

    @property
    def neighbours(self) -> int:
        """Members of one group in one host, at least 1."""
        here = self.per_host // self.replicas if self.adjacent else self.per_host
        return max(1, min(here, self.members))

    @property
    def exchange_group(self) -> Group | None:
        """Who exchanges rows with whom (None: all ranks)."""
        return None if self.replicas == 1 else Group(self.members, self._stride)

    @property
    def replica_group(self) -> Group:
        """The ranks that hold copies of the same shard."""
        return Group(self.replicas, 1 if self.adjacent else self.members)

    def block_group(self, span: int) -> Group | None:
        """Return the blocks of `span` neighbouring members (None: all ranks)."""
        return self.exchange_group if span == self.members else Group(span, self._stride)

    def across_blocks(self, span: int) -> Group:
        """Return the members with the same place in each block of `span`."""
        return Group(self.members // span, span * self._stride)

    @property
    def _stride(self) -> int:
        return self.replicas if self.adjacent else 1

    def member_of(self, rank: int) -> int:
        """Return the place of `rank` in its replica group."""
        return rank // self.replicas if self.adjacent else rank % self.members

    def on_ranks(self, by_member: Amount) -> Amount:
        """Return an amount per member, shape (members,), as an amount per rank; a float stays one."""
        if np.ndim(by_member) == 0 or self.replicas == 1:
            return by_member
        vector: FloatArray = np.asarray(by_member)
        return np.repeat(vector, self.replicas) if self.adjacent else np.tile(vector, self.replicas)


@dataclass(eq=False)
class Ledger:
    """Adds up amounts of blocks of members; the total stays a float while all members are alike."""

    world: World
    even: float = 0.0
    uneven: FloatArray | None = None

    def add(self, first: int, span: int, amount: Amount) -> None:
        """Add `amount` (of each, or one per owner) to `span` members from `first` on."""
        if span == self.world.members and np.ndim(amount) == 0:
            self.even += float(amount)
            return
        if self.uneven is None:
            self.uneven = np.zeros(self.world.members)
        self.uneven[first : first + span] += amount

    def amount(self) -> Amount:
        """Return the total per rank: a float, or an array of shape (ranks,)."""
        if self.uneven is None:
            return self.even
        return self.world.on_ranks(self.uneven + self.even)
