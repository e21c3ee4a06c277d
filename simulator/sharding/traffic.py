"""What a (micro-)batch asks of the owners of rows: distinct keys, rows and bytes, per rank."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np

from simulator.quantities import Amount
from simulator.sharding.kinds import Piece
from simulator.sharding.moves import Moved, width_total
from simulator.sharding.places import Shard
from simulator.sharding.plan import PlacedPlan
from simulator.sharding.reuse import Accesses, HotRows
from simulator.sharding.tiers import Tier
from simulator.sharding.world import Ledger, World
from simulator.workload.draws import uniforms
from simulator.workload.keys.popularity import OwnerLoad
from simulator.workload.tables import KEY_BYTES


@dataclass(frozen=True, eq=False)
class Flow:
    """What one shard has to do with a batch. Owner amounts are per owner: alike, or one for each.

    A source asks for `asked` keys and receives `received` bytes; an owner receives `requests` keys,
    sends `sent` bytes, and reads `owned` rows for all sources together, of which `missed` do not lie in
    device memory and `shared` were used by the previous batch too. While that one's rows are still there,
    device memory has no room for `late` of the missed ones.
    """

    shard: Shard
    asked: float
    received: float
    requests: Amount
    sent: Amount
    owned: Amount
    missed: Amount
    shared: Amount
    late: Amount

    @property
    def piece(self) -> Piece:
        """The piece of a table that the shard holds."""
        return self.shard.piece


Pick = Callable[[Flow], Amount]


@dataclass(frozen=True, eq=False)
class Traffic:
    """Amounts per rank for `samples` samples on each rank, under a placed plan.

    An amount is a float while all ranks are alike, else an array of shape (ranks,). What sources ask
    for once and what owners send follows from the plan's exchange. `seed` fixes which owners are hot
    when a kind draws them.
    """

    placed: PlacedPlan
    samples: float
    seed: int = 0

    @property
    def world(self) -> World:
        """The ranks and their replica groups."""
        return self.placed.world

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """One flow per shard of a replica group."""
        return tuple(self._flow(shard) for shard in self.placed.shards)

    def _flow(self, shard: Shard) -> Flow:
        piece, exchange, members = shard.piece, self.placed.plan.exchange, self.world.members
        table, draws = piece.table, piece.table.draws(self.samples)
        requests = piece.rows * self._per_owner(piece, exchange.owner_load(table, self.samples, members))
        union = table.popularity.union(draws, members)
        home, shared = piece.kind.home, table.popularity.overlap(draws * members)
        missed = home.missed(table, draws * members, union)
        return Flow(
            shard,
            piece.rows * exchange.asked(table, self.samples),
            exchange.received(piece, self.samples),
            requests,
            exchange.sent(piece, requests, self.samples * members),
            _split(piece, union),
            _split(piece, missed),
            _split(piece, shared),
            _split(piece, min(missed, max(0.0, 2 * union - shared - home.room(table)))),
        )

    def _per_owner(self, piece: Piece, load: OwnerLoad) -> Amount:
        """Return the load of each owner of a piece: the mean, or a normal draw per owner.

        `load` is for as many owners as sources. The hash gives each of s owners a key with chance
        1/s, so the spread over s owners of what n sources send is sqrt(n/s (1 - 1/s) / (1 - 1/n))
        times that (our derivation). Drawn loads are scaled to their mean: together the owners
        receive exactly what sources send.
        """
        owners, sources = piece.span, self.world.members
        if piece.shares is not None:
            mean: Amount = load.mean * sources * np.asarray(piece.shares)
        else:
            mean = load.mean * (sources / owners)
        if piece.kind.owners == "expected" or load.sd == 0.0 or owners == 1:
            return mean
        ratio = 1.0 if owners == sources else sources / owners * (1 - 1 / owners) / (1 - 1 / sources)
        return mean * self._hot(piece, load.mean * (sources / owners), load.sd * ratio**0.5)

    def _hot(self, piece: Piece, mean: float, sd: float) -> Amount:
        """Return each owner's load over the mean."""
        from scipy.special import ndtri

        number = self.placed.numbers[piece.table]
        label = f"owner of table {number}" + (f" {piece.column}" if piece.column else "")
        draws = uniforms(self.seed, label, 0, np.arange(piece.span, dtype=np.int64))
        drawn = np.maximum(0.0, mean + sd * ndtri(draws))
        return np.asarray(drawn / drawn.mean()) if drawn.any() else 1.0

    def total(self, pick: Pick) -> Amount:
        """Return the sum over shards of an owner amount, per rank."""
        ledger = Ledger(self.world)
        for flow in self.flows:
            ledger.add(flow.shard.first, flow.piece.span, pick(flow))
        return ledger.amount()

    def by_width(self, pick: Pick, flows: tuple[Flow, ...] | None = None) -> dict[float, Amount]:
        """Return the same apart for each width of rows in bytes; of `flows` only, if given."""
        ledgers: dict[float, Ledger] = {}
        for flow in self.flows if flows is None else flows:
            ledger = ledgers.setdefault(flow.piece.row_bytes, Ledger(self.world))
            ledger.add(flow.shard.first, flow.piece.span, pick(flow))
        return {width: ledger.amount() for width, ledger in ledgers.items()}

    @cached_property
    def by_tier(self) -> dict[Tier, Moved]:
        """What owners need from each memory tier."""
        homes: dict[Tier, list[Flow]] = {}
        for flow in self.flows:
            homes.setdefault(flow.piece.kind.home, []).append(flow)
        return {home: self._moved(tuple(flows)) for home, flows in homes.items()}

    def _moved(self, flows: tuple[Flow, ...]) -> Moved:
        rows = self.by_width(lambda flow: flow.owned, flows)
        return Moved(rows, self.by_width(lambda flow: flow.missed, flows), self.world.ranks)

    @cached_property
    def lookup_kind(self) -> str:
        """The kind of stages that move rows: that of the tiers most of the bytes come from."""
        brought = {"lookup": 0.0}
        for home, moved in self.by_tier.items():
            size = float(np.mean(width_total(moved.missed)))
            brought[home.stage_kind] = brought.get(home.stage_kind, 0.0) + size
        return max(brought, key=lambda kind: brought[kind])

    def reuse(self, width: float, once: bool) -> HotRows | None:
        """Return how skewed an owner's accesses to rows of `width` bytes are (see `Accesses`)."""
        flows = [flow for flow in self.flows if flow.piece.row_bytes == width]
        members = self.world.members
        found = (
            Accesses(
                table.popularity,
                table.draws(self.samples) if once else table.lookups(self.samples),
                members,
                flow.piece.span / flow.piece.rows,
                once,
            )
            for flow in flows
            for table in (flow.piece.table,)
        )
        return HotRows.of(found, float(np.mean(self.by_width(lambda flow: flow.owned)[width])))

    @cached_property
    def lookups(self) -> float:
        """Keys asked for, duplicates included."""
        return fsum(table.lookups(self.samples) for table in self.placed.in_order)

    @cached_property
    def routed(self) -> float:
        """Keys asked for in tables whose rows have an owner, duplicates included."""
        return fsum(table.lookups(self.samples) for table in self.placed.exchanged)

    @cached_property
    def distinct(self) -> float:
        """Keys that one source asks for: each distinct one once, unless the exchange is pooled."""
        return fsum(flow.asked for flow in self.flows)

    @cached_property
    def row_bytes_received(self) -> float:
        """Bytes of rows (or of their sums) that one source receives."""
        return fsum(flow.received for flow in self.flows)

    @property
    def key_bytes_sent(self) -> float:
        """Bytes of keys that one source routes."""
        return KEY_BYTES * self.distinct

    @cached_property
    def requests(self) -> Amount:
        """Keys that an owner receives from all sources."""
        return self.total(lambda flow: flow.requests)

    @cached_property
    def row_bytes_sent(self) -> Amount:
        """Bytes of rows (or of sums) that an owner sends to all sources."""
        return self.total(lambda flow: flow.sent)

    @cached_property
    def rows_owned(self) -> Amount:
        """Distinct rows that an owner reads for all sources together."""
        return self.total(lambda flow: flow.owned)

    @cached_property
    def bytes_owned(self) -> Amount:
        """Bytes of those rows."""
        return self.total(lambda flow: flow.owned * flow.piece.row_bytes)

    @cached_property
    def bytes_buffered(self) -> Amount:
        """Bytes of those that come to a device buffer: rows in device memory are used in place."""
        return self.total(lambda flow: flow.missed * flow.piece.row_bytes)

    @cached_property
    def bytes_refreshed(self) -> Amount:
        """Bytes of buffered rows that the previous batch used; of a cache's misses at most all."""
        return self.total(lambda flow: np.minimum(flow.shared, flow.missed) * flow.piece.row_bytes)

    @cached_property
    def bytes_shared(self) -> Amount:
        """Bytes of an owner's rows that the previous batch used as well."""
        return self.total(lambda flow: flow.shared * flow.piece.row_bytes)

    @property
    def shared_share(self) -> float:
        """Share of all owned bytes that the previous batch used as well."""
        owned = float(np.mean(self.bytes_owned))
        return float(np.mean(self.bytes_shared)) / owned if owned else 0.0

    @property
    def mean_row_bytes(self) -> float:
        """Bytes received per key asked for."""
        return self.row_bytes_received / self.distinct if self.distinct else 0.0


def _split(piece: Piece, rows: float) -> Amount:
    """Return each owner's part of `rows` distinct rows."""
    held = rows * piece.rows
    return held / piece.span if piece.shares is None else held * np.asarray(piece.shares)
