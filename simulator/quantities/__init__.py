"""Work: how much there is to do. Amounts in SI units, never seconds of wall time.

An amount is a float when all ranks are alike, or an array with one entry per rank. How fast the
work is done is the business of `simulator.costs`; the two meet in `CostModel.seconds(work)`.
"""

from simulator.quantities.collective import (
    AllGatherWork,
    AllReduceWork,
    AllToAllWork,
    BroadcastWork,
    Group,
    PointToPointWork,
    ReduceScatterWork,
)
from simulator.quantities.local import CopyWork, CpuWork, DenseWork, Reuse, RowWork
from simulator.quantities.remote import RpcWork, ServerWork
from simulator.quantities.work import NOTHING, Amount, FloatArray, HoldWork, IntArray, InTurn, Together, Work

__all__ = [
    "NOTHING",
    "AllGatherWork",
    "AllReduceWork",
    "AllToAllWork",
    "Amount",
    "BroadcastWork",
    "CopyWork",
    "CpuWork",
    "DenseWork",
    "FloatArray",
    "Group",
    "HoldWork",
    "InTurn",
    "IntArray",
    "PointToPointWork",
    "ReduceScatterWork",
    "Reuse",
    "RowWork",
    "RpcWork",
    "ServerWork",
    "Together",
    "Work",
]
