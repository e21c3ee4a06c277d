"""What a piece of work occupies: seconds of full use of each resource of a rank.

Resources: `tensor` and `hbm` of the accelerator, `host_to_device` and `device_to_host` copy paths,
this rank's share of host `cores`, `dram` and `ssd`, the `network`, and for rows on parameter servers
this rank's connection to them (`remote`) and one of them (`server`). Occupancy over duration is the
share of a resource that the work needs to run at its full speed; at most 1.
"""

from functools import singledispatch

import numpy as np

from simulator.costs.model import CostModel
from simulator.quantities import (
    AllReduceWork,
    AllToAllWork,
    Amount,
    CopyWork,
    CpuWork,
    DenseWork,
    InTurn,
    ReduceScatterWork,
    RowWork,
    Together,
    Work,
)

Occupancy = dict[str, float]


@singledispatch
def occupancy(work: Work, costs: CostModel) -> Occupancy:
    """Return seconds of full use by resource, on the busiest rank.

    Work that was measured as a time occupies nothing.
    """
    return {}


def _longest(seconds: Amount) -> float:
    return float(np.max(seconds))


@occupancy.register
def _(work: DenseWork, costs: CostModel) -> Occupancy:
    """The engine is held for the whole time, gaps between launches included; passes also use HBM."""
    total = _longest(costs.seconds(work))
    accelerator = costs.cluster.accelerator
    passes = _longest(work.memory_bytes) / (accelerator.hbm_bandwidth * accelerator.memory_efficiency)
    return {"tensor": total, "hbm": min(total, passes)}


@occupancy.register
def _(work: CpuWork, costs: CostModel) -> Occupancy:
    cluster = costs.cluster
    traffic = _longest(work.memory_bytes) / cluster.dram_bandwidth_per_rank
    return {"cores": _longest(work.core_seconds) / cluster.cores_per_rank, "dram": traffic}


@occupancy.register
def _(work: RowWork, costs: CostModel) -> Occupancy:
    """Random rows keep their memory busy all the time, at the share of its rate that they reach."""
    return {work.tier: _longest(costs.seconds(work))}


@occupancy.register
def _(work: CopyWork, costs: CostModel) -> Occupancy:
    """A copy between host and device also passes through both memories, at their full rates."""
    total = _longest(costs.seconds(work))
    if work.path == "device":
        return {"hbm": total}
    size, cluster = _longest(work.bytes), costs.cluster
    near, far = size / cluster.accelerator.hbm_bandwidth, size / cluster.dram_bandwidth_per_rank
    return {work.path: total, "hbm": near, "dram": far}


@occupancy.register(AllToAllWork)
@occupancy.register(AllReduceWork)
@occupancy.register(ReduceScatterWork)
def _(work: Work, costs: CostModel) -> Occupancy:
    return {"network": _longest(costs.seconds(work))}


@occupancy.register(InTurn)
@occupancy.register(Together)
def _(work: InTurn | Together, costs: CostModel) -> Occupancy:
    total: Occupancy = {}
    for part in work.parts:
        for resource, seconds in occupancy(part, costs).items():
            total[resource] = total.get(resource, 0.0) + seconds
    return total
