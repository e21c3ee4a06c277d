"""What a stage would be called in a real profile, so that tools for real profiles read simulated ones.

Holistic Trace Analysis (0.5) takes an event for communication when its name begins with `nccl` and
contains `Kernel`, for memory traffic when it begins with `Memcpy`, and else for computation.
"""

from functools import singledispatch

from simulator.pipeline import Stage
from simulator.quantities import (
    AllGatherWork,
    AllReduceWork,
    AllToAllWork,
    BroadcastWork,
    CopyWork,
    CpuWork,
    HoldWork,
    PointToPointWork,
    ReduceScatterWork,
    RowWork,
    Work,
    leaves,
)

COPY_NAMES = {"host_to_device": "Memcpy HtoD", "device_to_host": "Memcpy DtoH", "device": "Memcpy DtoD"}


def profiled_name(stage: Stage) -> str:
    """Return the profiler's name and the stage in brackets; just the stage where that is no data movement.

    A stage of several parts takes the name of its first collective or copy.
    """
    known = [name for leaf in leaves(stage.work) if (name := _profiled(leaf))]
    return f"{known[0]} ({stage.name})" if known else stage.name


def profiled_category(stage: Stage) -> str:
    """Return the category of the profiler's event: `gpu_memcpy`, `kernel`, or `cpu_op` on the host."""
    parts = list(leaves(stage.work))
    if profiled_name(stage).startswith("Memcpy"):
        return "gpu_memcpy"
    return "cpu_op" if parts and all(map(_on_host, parts)) else "kernel"


def _on_host(leaf: Work) -> bool:
    return isinstance(leaf, CpuWork | HoldWork) or (isinstance(leaf, RowWork) and leaf.tier == "dram")


@singledispatch
def _profiled(_leaf: Work) -> str:
    return ""


@_profiled.register
def _(_leaf: AllToAllWork) -> str:
    return "ncclKernel_AllToAll"


@_profiled.register
def _(_leaf: AllReduceWork) -> str:
    return "ncclKernel_AllReduce"


@_profiled.register
def _(_leaf: ReduceScatterWork) -> str:
    return "ncclKernel_ReduceScatter"


@_profiled.register
def _(_leaf: AllGatherWork) -> str:
    return "ncclKernel_AllGather"


@_profiled.register
def _(_leaf: BroadcastWork) -> str:
    return "ncclKernel_Broadcast"


@_profiled.register
def _(_leaf: PointToPointWork) -> str:
    return "ncclKernel_SendRecv"


@_profiled.register
def _(leaf: CopyWork) -> str:
    return COPY_NAMES[leaf.path]
