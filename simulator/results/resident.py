"""What a rank holds from the first step to the last: tables, their state, the dense model, caches."""

from dataclasses import dataclass

import numpy as np

from simulator.quantities import Amount
from simulator.sharding import Kind, TrainStep
from simulator.sharding.load import per_rank
from simulator.sharding.places import Shard
from simulator.sharding.world import Ledger
from simulator.workload.job import STATE_BYTES
from simulator.workload.tables import EmbeddingTable

TABLES = "embedding tables and their optimizer state"
CACHE = "cached rows and their optimizer state"
COPIES = "tables that every rank holds"
DENSE = "dense parameters, gradients, optimizer state"


@dataclass(frozen=True)
class Resident:
    """Bytes per rank by item in each memory (`hbm`, `host`, `ssd`): floats, or arrays of shape (ranks,)."""

    items: dict[str, dict[str, Amount]]

    @classmethod
    def of(cls, step: TrainStep) -> "Resident":
        """Return what `step` keeps in memory all the time."""
        items: dict[str, dict[str, Amount]] = {"hbm": {DENSE: _dense_state(step)}, "host": {}, "ssd": {}}
        copied = sum(_table_bytes(step, table) for table in step.placed.replicated)
        if copied:
            items["hbm"][COPIES] = copied + gradients_of_copies(step)
        for memory, held in items.items():
            size = _sharded(step, memory)
            if np.any(size):
                cached = memory == "hbm" and not any(_kind(s).home.in_place for s in step.placed.shards)
                held[CACHE if cached else TABLES] = size
        return cls(items)

    def at(self, memory: str, rank: int, ranks: int) -> dict[str, float]:
        """Return the bytes of each item of one rank."""
        return {name: float(per_rank(size, ranks)[rank]) for name, size in self.items[memory].items()}


def gradients_of_copies(step: TrainStep) -> float:
    """Return the bytes of dense gradients of tables that every rank holds."""
    return sum(table.rows * table.dimension * STATE_BYTES for table in step.placed.replicated)


def largest_table(step: TrainStep, memory: str, rank: int) -> tuple[str, float]:
    """Return the name and the bytes of the table that takes most of `memory` on `rank`; ("", 0) if none."""
    copied = step.placed.replicated if memory == "hbm" else ()
    found: dict[str, float] = {table.name: _table_bytes(step, table) for table in copied}
    member = step.placed.world.member_of(rank)
    for shard in step.placed.shards:
        name, place = shard.piece.table.name, member - shard.first
        if 0 <= place < shard.piece.span:
            held = np.broadcast_to(_shard_bytes(step, shard, memory), (shard.piece.span,))
            found[name] = found.get(name, 0.0) + float(held[place])
    return max(found.items(), key=lambda one: one[1], default=("", 0.0))


def _dense_state(step: TrainStep) -> float:
    values = 2 + step.workload.optimizer.dense_state  # parameter and gradient, both kept in fp32
    return STATE_BYTES * values * step.workload.model.quantities().parameters


def _table_bytes(step: TrainStep, table: EmbeddingTable) -> float:
    return table.bytes + step.workload.optimizer.row_state_bytes(table.dimension) * table.rows


def _sharded(step: TrainStep, memory: str) -> Amount:
    ledger = Ledger(step.placed.world)
    for shard in step.placed.shards:
        if memory in _kind(shard).home.homes:
            ledger.add(shard.first, shard.piece.span, _shard_bytes(step, shard, memory))
    return ledger.amount()


def _shard_bytes(step: TrainStep, shard: Shard, memory: str) -> Amount:
    """Return the bytes of each owner of a shard in one memory."""
    piece = shard.piece
    state = step.workload.optimizer.row_state_bytes(piece.values)
    share = piece.kind.home.homes.get(memory, 0.0) * piece.rows
    held = share * (piece.table.rows * piece.row_bytes + state * piece.table.rows)
    return held / piece.span if piece.shares is None else held * np.asarray(piece.shares)


def _kind(shard: Shard) -> Kind:
    return shard.piece.kind
