"""Averaging the copies of two-dimensional sparse parallelism: what moves between replicas.

Weights and the optimizer's row state are averaged, not gradients (PyTorch's description of 2D sparse
parallelism; arXiv 2508.03854): an all-reduce of a shard among the ranks that hold a copy of it. A row that
any copy has used since the last averaging differs between them, so all of them take part in its average.
Rows of the last batch still lie in the device buffer and return from there with the batch's write-back;
others that live outside of device memory are fetched for it and taken back. Lists of the keys that others
have used (8 bytes for each row) are left out.
"""

from dataclasses import dataclass

import numpy as np

from simulator.quantities import NOTHING, AllReduceWork, Amount, CopyWork, InTurn, Work
from simulator.sharding.moves import Moved, streamed
from simulator.sharding.places import Shard
from simulator.sharding.plan import PlacedPlan
from simulator.sharding.tiers import Tier
from simulator.sharding.traffic import Flow, Traffic
from simulator.sharding.world import Ledger
from simulator.workload.job import Optimizer


@dataclass(frozen=True, eq=False)
class Averaging:
    """One averaging after `last`, the traffic of the last batch, of rows or of whole shards.

    `used` is what all copies together have asked for since the averaging before (None: whole shards are
    averaged). Amounts are bytes.
    """

    last: Traffic
    optimizer: Optimizer
    used: Traffic | None = None

    @property
    def work(self) -> Work:
        """Fetch what is not on the device, all-reduce, take back what was fetched."""
        summed = AllReduceWork(float(np.max(self.bytes)), self.last.world.replica_group)
        there, back = self._whole if self.used is None else self._rows(self.used)
        return summed if there is NOTHING else InTurn((there, summed, back))

    @property
    def bytes(self) -> Amount:
        """Weights and row state that each owner averages."""
        if self.used is None:
            return shard_bytes(self.last.placed, self.optimizer)
        return self.used.total(lambda flow: flow.owned * self._width(flow))

    def _width(self, flow: Flow) -> float:
        return flow.piece.row_bytes + self.optimizer.row_state_bytes(flow.piece.values)

    @property
    def _whole(self) -> tuple[Work, Work]:
        """Shards cross the host link in one piece, but for what lies in device memory."""
        ledger = Ledger(self.last.world)
        for shard in self.last.placed.shards:
            held = _held(shard, self.optimizer) * (1.0 - shard.piece.kind.home.homes.get("hbm", 0.0))
            ledger.add(shard.first, shard.piece.span, held)
        buffered = self.last.total(lambda flow: flow.missed * self._width(flow))
        moved = np.maximum(ledger.amount() - buffered, 0.0)
        if not np.any(moved):
            return NOTHING, NOTHING
        size = float(moved) if np.ndim(moved) == 0 else moved
        return CopyWork(size, "host_to_device"), CopyWork(size, "device_to_host")

    def _rows(self, used: Traffic) -> tuple[Work, Work]:
        """Rows that other copies or earlier batches used are fetched from their tier, each once."""
        homes: dict[Tier, dict[float, Ledger]] = {}
        for flow, before in zip(used.flows, self.last.flows, strict=True):
            piece = flow.piece
            ledgers = homes.setdefault(piece.kind.home, {})
            ledger = ledgers.setdefault(self._width(flow), Ledger(self.last.world))
            ledger.add(flow.shard.first, piece.span, np.maximum(flow.missed - before.missed, 0.0))
        there: list[Work] = []
        back: list[Work] = []
        for home, ledgers in homes.items():
            rows = {width: ledger.amount() for width, ledger in ledgers.items()}
            there += home.read(Moved(rows, rows, self.last.world.ranks))
            back += home.write(Moved(rows, rows, self.last.world.ranks))
        return (streamed(tuple(there)), streamed(tuple(back))) if there else (NOTHING, NOTHING)


def shard_bytes(placed: PlacedPlan, optimizer: Optimizer) -> Amount:
    """Return the bytes of tables and row state that each rank owns."""
    ledger = Ledger(placed.world)
    for shard in placed.shards:
        ledger.add(shard.first, shard.piece.span, _held(shard, optimizer))
    return ledger.amount()


def _held(shard: Shard, optimizer: Optimizer) -> Amount:
    """Return the bytes of each owner of `shard`."""
    piece = shard.piece
    held = piece.rows * piece.table.rows * (piece.row_bytes + optimizer.row_state_bytes(piece.values))
    return held / piece.span if piece.shares is None else held * np.asarray(piece.shares)
