"""Which resource a piece of work keeps busy, and for how long, when nothing is shared."""

from functools import singledispatch

import numpy as np

from simulator.costs.model import CostModel
from simulator.quantities import (
    AllReduceWork,
    AllToAllWork,
    CopyWork,
    CpuWork,
    DenseWork,
    InTurn,
    RowWork,
    Together,
    Work,
)

Busy = dict[str, float]


@singledispatch
def busy_seconds(work: Work, costs: CostModel) -> Busy:
    """Return seconds by resource (compute, memory, network, host, copy), on the busiest rank.

    Work that was measured as a time keeps no resource busy.
    """
    return {}


def _all_of(resource: str, work: Work, costs: CostModel) -> Busy:
    return {resource: float(np.max(costs.seconds(work)))}


@busy_seconds.register
def _(work: DenseWork, costs: CostModel) -> Busy:
    return _all_of("compute", work, costs)


@busy_seconds.register
def _(work: CpuWork, costs: CostModel) -> Busy:
    return _all_of("host", work, costs)


@busy_seconds.register
def _(work: RowWork, costs: CostModel) -> Busy:
    return _all_of("memory" if work.tier == "hbm" else "host", work, costs)


@busy_seconds.register
def _(work: CopyWork, costs: CostModel) -> Busy:
    return _all_of("memory" if work.path == "device" else "copy", work, costs)


@busy_seconds.register(AllToAllWork)
@busy_seconds.register(AllReduceWork)
def _(work: Work, costs: CostModel) -> Busy:
    return _all_of("network", work, costs)


@busy_seconds.register(InTurn)
@busy_seconds.register(Together)
def _(work: InTurn | Together, costs: CostModel) -> Busy:
    total: Busy = {}
    for part in work.parts:
        for resource, seconds in busy_seconds(part, costs).items():
            total[resource] = total.get(resource, 0.0) + seconds
    return total
