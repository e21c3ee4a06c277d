"""Kinds of sharding: how one table is cut into pieces, each held by one rank or a block of neighbours.

The names are those of TorchRec. A kind says how a table is cut; where pieces that do not take all
ranks go is the business of `places`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from simulator.errors import InputError, did_you_mean
from simulator.sharding.tiers import Tier, tier
from simulator.sharding.world import World
from simulator.workload.tables import EmbeddingTable

OWNERS = ("expected", "drawn")


@dataclass(frozen=True, eq=False)
class Piece:
    """Some columns of a table, `row_bytes` of each row, with rows spread over `span` neighbouring ranks.

    `shares` are the owners' shares of the rows and lookups (None: equal), `first` the first owner where
    that is given. `column` numbers the pieces of a table. `rows` is the share of the table's rows and
    lookups in this piece.
    """

    table: EmbeddingTable
    kind: "Kind"
    row_bytes: float
    span: int
    shares: tuple[float, ...] | None = None
    first: int | None = None
    column: int = 0
    rows: float = 1.0

    @property
    def values(self) -> float:
        """Values of a row in this piece."""
        return self.row_bytes / self.table.row_bytes * self.table.dimension


@dataclass(frozen=True)
class Kind(ABC):
    """How a table is sharded. `tier` says in which memory its rows live.

    `owners` is `expected` (owners receive the mean load) or `drawn` (each owner's load is drawn once
    from the spread that the hash leaves: hot owners stay hot). Raises InputError on unknown names.
    """

    tier: str | Tier = "dram"
    owners: str = "expected"

    def __post_init__(self) -> None:
        """Refuse unknown tiers and load models."""
        tier(self.tier)
        if self.owners not in OWNERS:
            raise InputError(f'unknown value "{self.owners}"{did_you_mean(self.owners, OWNERS)}')

    @property
    def home(self) -> Tier:
        """The memory that rows live in."""
        return tier(self.tier)

    @property
    def replicated(self) -> bool:
        """Whether every rank holds all of the table."""
        return False

    @abstractmethod
    def cut(self, table: EmbeddingTable, world: World) -> tuple[Piece, ...]:
        """Return the pieces of `table`. Raises InputError when it cannot be cut like this."""


@dataclass(frozen=True)
class RowWise(Kind):
    """Rows of every table are spread over all ranks by a hash of their key.

    `shares` makes shards uneven: relative shares of the ranks, repeated when there are more ranks.
    """

    shares: tuple[float, ...] | None = None

    def cut(self, table: EmbeddingTable, world: World) -> tuple[Piece, ...]:
        """Return one piece over all ranks."""
        return (Piece(table, self, table.row_bytes, world.members, self._shares(world)),)

    def _shares(self, world: World) -> tuple[float, ...] | None:
        if self.shares is None:
            return None
        given = len(self.shares)
        if not given or min(self.shares) < 0 or sum(self.shares) <= 0:
            raise InputError("shares of rows must not be negative, and not all zero")
        if world.members % given:
            raise InputError(f"{given} shares of rows do not repeat evenly over {world.members} ranks")
        total = sum(self.shares) * (world.members // given)
        return tuple(share / total for share in self.shares) * (world.members // given)


@dataclass(frozen=True)
class TableWise(Kind):
    """Every table lives whole on one rank: `rank`, or the least loaded one."""

    rank: int | None = None

    def cut(self, table: EmbeddingTable, world: World) -> tuple[Piece, ...]:
        """Return one piece on one rank."""
        return (Piece(table, self, table.row_bytes, 1, first=self.rank),)


@dataclass(frozen=True)
class ColumnWise(Kind):
    """Every table is cut into `shards` parts of equal width, each on one rank."""

    shards: int = 2

    def cut(self, table: EmbeddingTable, world: World) -> tuple[Piece, ...]:
        """Return one piece per part."""
        return tuple(
            Piece(table, self, width, 1, column=column)
            for column, width in enumerate(_columns(table, self.shards))
        )


@dataclass(frozen=True)
class TableRowWise(Kind):
    """Every table lives on one host, its rows spread over the host's ranks by a hash."""

    host: int | None = None

    def cut(self, table: EmbeddingTable, world: World) -> tuple[Piece, ...]:
        """Return one piece on the ranks of one host."""
        first = None if self.host is None else self.host * world.neighbours
        return (Piece(table, self, table.row_bytes, world.neighbours, first=first),)


@dataclass(frozen=True)
class Grid(Kind):
    """Every table is cut into `shards` parts of equal width, each spread by row over one host."""

    shards: int = 2

    def cut(self, table: EmbeddingTable, world: World) -> tuple[Piece, ...]:
        """Return one piece per part, each on the ranks of one host."""
        return tuple(
            Piece(table, self, width, world.neighbours, column=column)
            for column, width in enumerate(_columns(table, self.shards))
        )


@dataclass(frozen=True)
class Part:
    """Shares of a table's `columns` and of its `rows` (by a hash of the key) on one rank, or on several.

    With a `span` the rows of the part are spread over so many neighbours, `rank` the first of them.
    """

    rank: int
    columns: float = 1.0
    rows: float = 1.0
    span: int = 1


@dataclass(frozen=True)
class Placed(Kind):
    """Every table is cut into the given `parts`, as a planner has decided.

    Raises InputError unless the parts make up the whole table.
    """

    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        """Refuse parts that leave something out or hold something twice."""
        super().__post_init__()
        held = sum(part.columns * part.rows for part in self.parts)
        if abs(held - 1.0) > 1e-6 or min((min(p.columns, p.rows) for p in self.parts), default=0) <= 0:
            raise InputError(f"the parts of a table must make up all of it, not {held:.4g} of it")

    def cut(self, table: EmbeddingTable, world: World) -> tuple[Piece, ...]:
        """Return one piece per part."""
        return tuple(
            Piece(table, self, part.columns * table.row_bytes, part.span, None, part.rank, index, part.rows)
            for index, part in enumerate(self.parts)
        )


@dataclass(frozen=True)
class DataParallel(Kind):
    """Every rank holds all of a (small) table: no exchange, an all-reduce of its gradients instead."""

    tier: str | Tier = "hbm"

    def __post_init__(self) -> None:
        """Refuse copies that do not live on the device."""
        super().__post_init__()
        if not self.home.in_place:
            raise InputError("tables that every rank holds whole live in hbm")

    @property
    def replicated(self) -> bool:
        """Yes."""
        return True

    def cut(self, table: EmbeddingTable, world: World) -> tuple[Piece, ...]:
        """Return no piece: nobody owns anything."""
        return ()


def _columns(table: EmbeddingTable, shards: int) -> list[float]:
    """Return the bytes of a row in each of `shards` parts that differ by at most one value."""
    if not 1 <= shards <= table.dimension:
        raise InputError(
            f'table "{table.name}" has {table.dimension} columns and cannot be cut into {shards} parts'
        )
    value = table.row_bytes / table.dimension
    least, wider = divmod(table.dimension, shards)
    return [value * (least + (part < wider)) for part in range(shards)]
