"""The ways to cut a table, and which of them placement may choose."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from simulator.errors import InputError
from simulator.sharding.placement.shard import Demand, Shard, Span, piece

NARROWEST = 128  # columns: what TorchRec's planner allows a column-wise shard by default


class Cut(Protocol):
    """A way to cut a table: the kind's name, the number of pieces, and the pieces."""

    @property
    def kind(self) -> str:
        """Return `table`, `column` or `row`."""

    @property
    def parts(self) -> int:
        """Return the number of pieces."""

    def pieces(self, demand: Demand) -> tuple[Shard, ...]:
        """Return the pieces of the table that `demand` describes."""


@dataclass(frozen=True)
class Whole:
    """No cut: one chip holds the table."""

    kind = "table"
    parts = 1

    def pieces(self, demand: Demand) -> tuple[Shard, ...]:
        """Return the table as its only piece."""
        return (piece(demand, self.kind, Span(0, demand.rows), Span(0, demand.dimension)),)


@dataclass(frozen=True)
class ColumnCut:
    """`parts` blocks of columns: each sees every key and holds a part of each row."""

    parts: int
    kind = "column"

    def pieces(self, demand: Demand) -> tuple[Shard, ...]:
        """Return the blocks, which share the row bytes and each pay for all keys."""
        rows = Span(0, demand.rows)
        return tuple(piece(demand, self.kind, rows, part) for part in blocks(demand.dimension, self.parts))


@dataclass(frozen=True)
class RowCut:
    """`parts` blocks of rows: each sees the keys of its own rows."""

    parts: int
    kind = "row"

    def pieces(self, demand: Demand) -> tuple[Shard, ...]:
        """Return the blocks; all but the hottest row are taken to be equally popular everywhere."""
        columns = Span(0, demand.dimension)
        return tuple(piece(demand, self.kind, part, columns) for part in blocks(demand.rows, self.parts))


def blocks(total: int, parts: int) -> Iterable[Span]:
    """Yield blocks of ceil(total / parts), the last ones smaller: the blocks of TorchRec's row-wise."""
    size = -(-total // parts)
    for part in range(parts):
        start = min(part * size, total)
        yield Span(start, min(size, total - start))


@dataclass(frozen=True)
class Choice:
    """One way to cut a table: its pieces, the load of the longest and of all, the memory of the largest."""

    pieces: tuple[Shard, ...]
    longest: float
    total: float
    largest: float

    @classmethod
    def of(cls, pieces: tuple[Shard, ...]) -> "Choice":
        """Return the choice with its sums."""
        loads = [piece.load for piece in pieces]
        return cls(pieces, max(loads), math.fsum(loads), max(piece.memory for piece in pieces))


@dataclass(frozen=True)
class CutRules:
    """Which cuts placement may choose: numbers of column and row pieces, and the narrowest piece.

    Raises InputError for fewer than two pieces or a narrowest piece below one column.
    """

    column_parts: tuple[int, ...] = (2, 4, 8)
    row_parts: tuple[int, ...] = (2, 4, 8, 16, 32)
    narrowest: int = NARROWEST

    def __post_init__(self) -> None:
        """Refuse cuts that do not cut."""
        if any(parts < 2 for parts in (*self.column_parts, *self.row_parts)) or self.narrowest < 1:
            raise InputError("a cut has two pieces or more, and a piece at least one column")

    def cuts(self, demand: Demand, chips: int) -> tuple[Cut, ...]:
        """Return the cuts that this table allows, none first: at most one piece per chip, none empty.

        Column pieces are of equal width.
        """
        columns = [parts for parts in self.column_parts if self._divides(demand.dimension, parts)]
        rows = [parts for parts in self.row_parts if (parts - 1) * -(-demand.rows // parts) < demand.rows]
        cuts: list[Cut] = [Whole(), *map(ColumnCut, columns), *map(RowCut, rows)]
        return tuple(cut for cut in cuts if cut.parts <= chips)

    def _divides(self, width: int, parts: int) -> bool:
        return width % parts == 0 and width // parts >= self.narrowest

    def choices(self, demands: Sequence[Demand], chips: int) -> tuple[tuple[Choice, ...], ...]:
        """Return, for each table, its pieces under every cut that it allows."""
        return tuple(
            tuple(Choice.of(cut.pieces(demand)) for cut in self.cuts(demand, chips)) for demand in demands
        )


WHOLE_TABLES = CutRules((), ())
"""The rules under which no table is cut."""
