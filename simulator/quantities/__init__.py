"""Work: how much there is to do. Amounts in SI units, never seconds of wall time.

An amount is a float when all ranks are alike, or an array with one entry per rank. How fast the
work is done is the business of `simulator.costs`; the two meet in `CostModel.seconds(work)`.
"""

from simulator.quantities.collective import (
    AllGatherWork,
    AllReduceWork,
    AllToAllWork,
    BroadcastWork,
    Collective,
    Group,
    PartsWork,
    PointToPointWork,
    ReduceScatterWork,
)
from simulator.quantities.formats import VALUE_BYTES, value_bytes
from simulator.quantities.local import CopyWork, CpuWork, DenseWork, Reuse, RowWork
from simulator.quantities.remote import RpcWork, ServerWork
from simulator.quantities.work import (
    NOTHING,
    Amount,
    FloatArray,
    HoldWork,
    IntArray,
    InTurn,
    Together,
    Work,
    busiest,
    leaves,
)

__all__ = [
    "NOTHING",
    "VALUE_BYTES",
    "AllGatherWork",
    "AllReduceWork",
    "AllToAllWork",
    "Amount",
    "BroadcastWork",
    "Collective",
    "CopyWork",
    "CpuWork",
    "DenseWork",
    "FloatArray",
    "Group",
    "HoldWork",
    "InTurn",
    "IntArray",
    "PartsWork",
    "PointToPointWork",
    "ReduceScatterWork",
    "Reuse",
    "RowWork",
    "RpcWork",
    "ServerWork",
    "Together",
    "Work",
    "busiest",
    "leaves",
    "value_bytes",
]
