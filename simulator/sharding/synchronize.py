"""Averaging the copies of two-dimensional sparse parallelism: what moves between replicas.

Weights and the optimizer's row state are averaged, not gradients (PyTorch's description of 2D sparse
parallelism; arXiv 2508.03854): an all-reduce of a shard among the ranks that hold a copy of it. Rows
outside of device memory cross the host link before and after.
"""

import numpy as np

from simulator.quantities import AllReduceWork, Amount, CopyWork, InTurn, Work
from simulator.sharding.plan import PlacedPlan
from simulator.sharding.traffic import Flow, Traffic
from simulator.sharding.world import Ledger
from simulator.workload.job import Optimizer


def average_copies(placed: PlacedPlan, optimizer: Optimizer, touched: Traffic | None) -> Work:
    """Return the work of one averaging: of the rows that `touched` reads, or of whole shards (None)."""
    resident = shard_bytes(placed, optimizer)
    size = resident if touched is None else _touched(touched, optimizer)
    summed = AllReduceWork(float(np.max(size)), placed.world.replica_group)
    if all(piece.kind.home.in_place for piece in (shard.piece for shard in placed.shards)):
        return summed
    return InTurn((CopyWork(size, "host_to_device"), summed, CopyWork(size, "device_to_host")))


def _touched(traffic: Traffic, optimizer: Optimizer) -> Amount:
    def bytes_of(flow: Flow) -> Amount:
        return flow.owned * (flow.piece.row_bytes + optimizer.row_state_bytes(flow.piece.values))

    return traffic.total(bytes_of)


def shard_bytes(placed: PlacedPlan, optimizer: Optimizer) -> Amount:
    """Return the bytes of tables and row state that each rank owns."""
    ledger = Ledger(placed.world)
    for shard in placed.shards:
        piece = shard.piece
        state = optimizer.row_state_bytes(piece.values)
        held = piece.rows * piece.table.rows * (piece.row_bytes + state)
        each = held / piece.span if piece.shares is None else held * np.asarray(piece.shares)
        ledger.add(shard.first, piece.span, each)
    return ledger.amount()
