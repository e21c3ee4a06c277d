"""The pooled exchange: one sum of rows per sample and feature travels, as TorchRec does it.

Keys travel with their duplicates, the owner adds up the rows of a sample and sends one vector; rows
of one table on several ranks make partial sums, which a reduce-scatter adds up (the cost forms of
TorchRec's planner for table-wise, row-wise, table-row-wise and grid shards).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.quantities import (
    AllGatherWork,
    AllToAllWork,
    Amount,
    DenseWork,
    InTurn,
    PartsWork,
    ReduceScatterWork,
    RowWork,
    Work,
)
from simulator.sharding.exchange import Exchange, read_once, sort_requests
from simulator.sharding.kinds import Piece
from simulator.sharding.moves import access
from simulator.workload.keys.popularity import OwnerLoad
from simulator.workload.tables import KEY_BYTES, EmbeddingTable

if TYPE_CHECKING:
    from simulator.sharding.traffic import Flow, Traffic

# Putting keys into buckets by owner counts them, then reads and writes each (our count).
BUCKET_BYTES_PER_KEY = 3 * KEY_BYTES


@dataclass(frozen=True)
class PooledExchange(Exchange):
    """Owners add up the rows of each sample and feature and send the sums; keys keep duplicates."""

    def asked(self, table: EmbeddingTable, samples: float) -> float:
        """Return all keys."""
        return table.lookups(samples)

    def owner_load(self, table: EmbeddingTable, samples: float, members: int) -> OwnerLoad:
        """Return the load with duplicates."""
        return table.popularity.raw_owner_load(table.lookups(samples), members)

    def received(self, piece: Piece, samples: float) -> float:
        """Return one vector per sample."""
        return samples * self.wire_bytes(piece)

    def sent(self, piece: Piece, requests: Amount, samples: float) -> Amount:
        """Return one sum per sample of all sources; partial ones where rows are spread."""
        return samples * self.wire_bytes(piece)

    def prepare(self, traffic: "Traffic") -> Work:
        """Put keys into buckets by owner."""
        return DenseWork(0.0, memory_bytes=traffic.distinct * BUCKET_BYTES_PER_KEY)

    def collect(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Nothing where rows are read in place; else remove duplicates and read each row once."""
        if all(home.in_place for home in traffic.by_tier):
            return ()
        return (sort_requests(traffic), *read_once(traffic))

    def in_line(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Nothing."""
        return ()

    def gather(self, traffic: "Traffic") -> Work:
        """Read one row per lookup, write one sum per sample."""
        reads = [
            RowWork(rows, width, "hbm", reuse=traffic.reuse(width, once=False))
            for width, rows in traffic.by_width(lambda flow: flow.requests).items()
        ]
        sums = access(traffic.by_width(lambda flow: flow.sent / flow.piece.row_bytes), "hbm")
        return InTurn((*reads, sums))

    def deliver(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Add up partial sums among the ranks of a shard, then an all-to-all between shards."""
        return (*_scattered(traffic, ReduceScatterWork), *_between_blocks(traffic, back=False))

    def give_back(self, traffic: "Traffic") -> tuple[Work, ...]:
        """Return the transpose: an all-to-all, then an all-gather among the ranks of a shard."""
        return (*_between_blocks(traffic, back=True), *_scattered(traffic, AllGatherWork))

    def unpack(self, traffic: "Traffic") -> Work:
        """Read the sums by owner, write them by sample."""
        rows: dict[float, Amount] = {}
        for flow in traffic.flows:
            width = flow.piece.row_bytes
            rows[width] = rows.get(width, 0.0) + flow.received / width
        return access(rows, "hbm", passes=2)

    def add_up(self, traffic: "Traffic", times: int = 1) -> Work:
        """Sort the keys, as FBGEMM's backward pass does wherever rows live; read one gradient per lookup."""
        gradients = access(traffic.by_width(lambda flow: times * self._as_sent(flow)), "hbm")
        return InTurn((sort_requests(traffic, times), gradients))

    def _as_sent(self, flow: "Flow") -> Amount:
        """Return the requests of a flow, in rows as stored that are as many bytes as gradients on the way."""
        return flow.requests * (self.wire_bytes(flow.piece) / flow.piece.row_bytes)

    def model_rows(self, table: EmbeddingTable, samples: float) -> float:
        """Return one sum per sample."""
        return samples

    def local_rows(self, table: EmbeddingTable, samples: float) -> float:
        """One read per lookup, one sum per sample."""
        return table.lookups(samples) + samples


def _scattered(traffic: "Traffic", collective: type[PartsWork]) -> tuple[Work, ...]:
    """Return one collective per size of block that shares a table's rows."""
    spans = sorted({flow.piece.span for flow in traffic.flows if flow.piece.span > 1})
    return tuple(
        collective(_sent_by_blocks(traffic, span, 1), traffic.world.block_group(span)) for span in spans
    )


def _between_blocks(traffic: "Traffic", back: bool) -> tuple[Work, ...]:
    """Return one all-to-all per size of block; in a block of s a rank sends sums of 1/s of all samples."""
    spans = sorted({flow.piece.span for flow in traffic.flows if flow.piece.span < traffic.world.members})
    return tuple(_between(traffic, span, back) for span in spans)


def _between(traffic: "Traffic", span: int, back: bool) -> Work:
    sent = _sent_by_blocks(traffic, span, span)
    received = sum(flow.received for flow in traffic.flows if flow.piece.span == span)
    group = traffic.world.exchange_group if span == 1 else traffic.world.across_blocks(span)
    return AllToAllWork(received, sent, group) if back else AllToAllWork(sent, received, group)


def _sent_by_blocks(traffic: "Traffic", span: int, parts: int) -> Amount:
    """Return one of `parts` equal parts of what owners in blocks of `span` send."""

    def sent(flow: "Flow") -> Amount:
        return flow.sent / parts if flow.piece.span == span else 0.0

    return traffic.total(sent)
