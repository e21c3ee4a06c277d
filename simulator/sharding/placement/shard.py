"""What tables ask of their holders, and the pieces that are placed."""

import math
from dataclasses import dataclass

from simulator.errors import InputError


@dataclass(frozen=True)
class Demand:
    """What one table asks of whoever holds it, per step of the whole job.

    `load` is what placement evens out, in any unit that is the same for all tables (bytes moved,
    seconds, a share). `memory` is in bytes, optimizer state included, and `bytes` are the rows sent
    per step. `key_share` of the load is paid per key however narrow the rows (every column piece
    pays it again); `hot_share` of it falls on the hottest row, which row pieces cannot divide.
    Raises InputError on impossible values.
    """

    table: str
    rows: int
    dimension: int
    load: float
    memory: float = 0.0
    bytes: float = 0.0
    key_share: float = 0.0
    hot_share: float = 0.0

    def __post_init__(self) -> None:
        """Refuse empty tables, negative or endless amounts and shares outside 0 to 1."""
        amounts = (self.load, self.memory, self.bytes)
        if not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
            raise InputError(f'table "{self.table}": load, memory and bytes must be finite and not negative')
        if self.rows < 1 or self.dimension < 1:
            raise InputError(f'table "{self.table}": rows and dimension must be positive')
        if not (0 <= self.key_share <= 1 and 0 <= self.hot_share <= 1):
            raise InputError(f'table "{self.table}": shares of the load must lie in 0 to 1')


@dataclass(frozen=True)
class Span:
    """`size` rows or columns from `start`."""

    start: int
    size: int

    def of(self, total: int) -> float:
        """Return the share of `total` that it is."""
        return self.size / total


@dataclass(frozen=True)
class Shard:
    """A table or a piece of one: which rows and columns, and its load, bytes sent and memory.

    `copies` counts the chips that hold the same piece and share its keys between them.
    """

    table: str
    kind: str
    rows: Span
    columns: Span
    load: float
    bytes: float
    memory: float
    copies: int = 1


def piece(demand: Demand, kind: str, rows: Span, columns: Span, copies: int = 1) -> Shard:
    """Return the piece of a table with these rows and columns; `kind` names the cut it comes from.

    Its load is its share of the keys, times what it pays per key plus its share of the width. The
    hottest row counts as one of the first. One of several `copies` serves its chip's own samples: it has
    its share of the load and sends no rows. Raises InputError for a piece that reaches beyond the table.
    """
    if rows.start + rows.size > demand.rows or columns.start + columns.size > demand.dimension:
        raise InputError(f'a piece of "{demand.table}" reaches beyond its {demand.rows} x {demand.dimension}')
    keys = (1.0 - demand.hot_share) * rows.of(demand.rows) + demand.hot_share * (rows.start == 0)
    width = columns.of(demand.dimension)
    load = demand.load / copies * keys * (demand.key_share + (1.0 - demand.key_share) * width)
    memory = demand.memory * rows.of(demand.rows) * width
    sent = demand.bytes * keys * width if copies == 1 else 0.0
    return Shard(demand.table, kind, rows, columns, load, sent, memory, copies)
