"""How rows travel: what an exchange must say, and the exchange of distinct rows.

`RowExchange` is what sequence models need and what NestPipe and caches do: a source removes
duplicates, each distinct row travels once. `PooledExchange`, in `pooled`, sends sums of rows.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.quantities import NOTHING, AllToAllWork, Amount, DenseWork, InTurn, RowWork, Work
from simulator.sharding.kinds import Piece
from simulator.sharding.moves import access, streamed
from simulator.workload.keys.popularity import OwnerLoad
from simulator.workload.tables import KEY_BYTES, EmbeddingTable

if TYPE_CHECKING:
    from simulator.sharding.traffic import Traffic

# A radix sort of 64-bit keys makes eight passes over byte-wide digits and reads and writes each
# key in each; removing duplicates costs one such sort (our count).
SORT_BYTES_PER_KEY = 8 * 2 * KEY_BYTES


@dataclass(frozen=True)
class Exchange(ABC):
    """What travels between sources and owners, and what is done to it at both ends.

    `value_bytes` is the width of one value of a row or a gradient on its way (None: as stored).
    """

    value_bytes: float | None = None

    def wire_bytes(self, piece: Piece) -> float:
        """Return the bytes of one row of `piece` on its way."""
        return piece.row_bytes if self.value_bytes is None else piece.values * self.value_bytes

    @abstractmethod
    def asked(self, table: EmbeddingTable, samples: float) -> float:
        """Return the keys that a source sends for each piece of `table`."""

    @abstractmethod
    def owner_load(self, table: EmbeddingTable, samples: float, members: int) -> OwnerLoad:
        """Return the keys that an owner receives when each of `members` sources is an owner, too."""

    @abstractmethod
    def received(self, piece: Piece, samples: float) -> float:
        """Return the bytes that a source receives from all owners of `piece`."""

    @abstractmethod
    def sent(self, piece: Piece, requests: Amount, samples: float) -> Amount:
        """Return the bytes that an owner sends that received `requests` keys of `samples` samples in all."""

    @abstractmethod
    def prepare(self, traffic: "Traffic") -> Work:
        """Return what a source does to its keys before they go to owners."""

    @abstractmethod
    def collect(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Return what owners do to bring rows to their device buffers."""

    @abstractmethod
    def in_line(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Return what of that they do when all rows are in device memory already."""

    @abstractmethod
    def gather(self, traffic: "Traffic") -> Work:
        """Return what owners do to rows before they travel."""

    @abstractmethod
    def deliver(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Return the collectives that take rows to their sources."""

    @abstractmethod
    def give_back(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Return the collectives that take gradients to their owners."""

    @abstractmethod
    def unpack(self, traffic: "Traffic") -> Work:
        """Return what a source does between what travels and what the dense model reads, either way."""

    @abstractmethod
    def add_up(self, traffic: "Traffic", times: int = 1) -> Work:
        """Return what owners do to the gradients of `times` such batches before they update each row once."""

    @abstractmethod
    def model_rows(self, table: EmbeddingTable, samples: float) -> float:
        """Return how many rows of `table`, or sums of them, the dense model reads."""

    @abstractmethod
    def local_rows(self, table: EmbeddingTable, samples: float) -> float:
        """Return the row accesses of a source to a table that it holds whole."""


@dataclass(frozen=True)
class RowExchange(Exchange):
    """Each distinct row travels once to every rank that needs it, however often it is used there."""

    def asked(self, table: EmbeddingTable, samples: float) -> float:
        """Return the distinct keys."""
        return table.popularity.distinct(table.draws(samples))

    def owner_load(self, table: EmbeddingTable, samples: float, members: int) -> OwnerLoad:
        """Return the load without duplicates."""
        return table.popularity.owner_load(table.draws(samples), members)

    def received(self, piece: Piece, samples: float) -> float:
        """Return the distinct rows, as wide as the piece."""
        return piece.rows * self.asked(piece.table, samples) * self.wire_bytes(piece)

    def sent(self, piece: Piece, requests: Amount, samples: float) -> Amount:
        """Return one row per request."""
        return requests * self.wire_bytes(piece)

    def prepare(self, traffic: "Traffic") -> Work:
        """Sort keys to remove duplicates."""
        return DenseWork(0.0, memory_bytes=traffic.routed * SORT_BYTES_PER_KEY)

    def collect(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Remove duplicates again, then read each row once from its tier."""
        return (*self.in_line(traffic), *read_once(traffic))

    def in_line(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Remove duplicates."""
        return (sort_requests(traffic),)

    def gather(self, traffic: "Traffic") -> Work:
        """Read requested rows from the buffer, write them out in order of their source."""
        return _read_and_write(traffic, once=True)

    def deliver(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Return one all-to-all."""
        return _all_to_all(traffic, traffic.row_bytes_sent, traffic.row_bytes_received)

    def give_back(self, traffic: "Traffic") -> tuple[Work, ...]:
        """One gradient per distinct row goes to its owner."""
        return _all_to_all(traffic, traffic.row_bytes_received, traffic.row_bytes_sent)

    def unpack(self, traffic: "Traffic") -> Work:
        """Distinct rows to one row per lookup (or its transpose): each read once and written once."""
        rows: dict[float, Amount] = {}
        for table in traffic.placed.exchanged:
            moved = self.asked(table, traffic.samples) + table.lookups(traffic.samples)
            rows[table.row_bytes] = rows.get(table.row_bytes, 0.0) + moved
        return access(rows, "hbm")

    def add_up(self, traffic: "Traffic", times: int = 1) -> Work:
        """Read the gradients in the order that the sort for reading has left."""
        return access(traffic.by_width(lambda flow: times * flow.requests), "hbm")

    def model_rows(self, table: EmbeddingTable, samples: float) -> float:
        """Return one per lookup."""
        return table.lookups(samples)

    def local_rows(self, table: EmbeddingTable, samples: float) -> float:
        """Distinct rows are read once and written once per lookup, as after an exchange."""
        return self.asked(table, samples) + table.lookups(samples)


def _all_to_all(traffic: "Traffic", sent: Amount, received: Amount) -> tuple[Work, ...]:
    """Return the exchange in each replica group; nothing when no table has owners."""
    return (AllToAllWork(sent, received, traffic.world.exchange_group),) if traffic.flows else ()


def sort_requests(traffic: "Traffic", times: int = 1) -> Work:
    """Return the sort that removes duplicates among the keys of `times` batches that an owner received."""
    return DenseWork(0.0, memory_bytes=times * traffic.requests * SORT_BYTES_PER_KEY)


def read_once(traffic: "Traffic") -> tuple[Work, ...]:
    """Return what brings each row that an owner needs from its tier, once."""
    parts = [part for home, moved in traffic.by_tier.items() for part in home.read(moved)]
    return (streamed(tuple(parts)),) if parts else ()


def _read_and_write(traffic: "Traffic", once: bool) -> Work:
    parts: list[Work] = []
    for width, rows in traffic.by_width(lambda flow: flow.requests).items():
        parts.append(RowWork(rows, width, "hbm", reuse=traffic.reuse(width, once)))
        parts.append(RowWork(rows, width, "hbm"))
    return InTurn(tuple(parts)) if parts else NOTHING
