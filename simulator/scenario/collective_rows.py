"""The collectives of a run as the report lists them, with bandwidths as nccl-tests defines them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulator.costs import CostModel
from simulator.costs.collectives import NOTHING_TO_DO
from simulator.costs.curves import algorithm_bandwidth, bus_bandwidth
from simulator.pipeline import MarkedGraph
from simulator.quantities import (
    AllGatherWork,
    AllReduceWork,
    AllToAllWork,
    BroadcastWork,
    Collective,
    Group,
    PointToPointWork,
    ReduceScatterWork,
    Work,
    leaves,
)

OPERATIONS: Mapping[type[Work], str] = {
    AllGatherWork: "all_gather",
    ReduceScatterWork: "reduce_scatter",
    AllReduceWork: "all_reduce",
    AllToAllWork: "all_to_all",
    BroadcastWork: "broadcast",
    PointToPointWork: "point_to_point",
}
GB_PER_S = 1e9


def collective_rows(graph: MarkedGraph, costs: CostModel) -> list[dict[str, Any]]:
    """Return every collective once: name, algorithm, bytes per rank, bandwidths in GB/s.

    One among a single rank exchanges nothing and is left out.
    """
    done = ((name, part, costs.plan(part)) for name, part in _collectives(graph))
    return [_row(name, part, costs) for name, part, plan in done if plan is not NOTHING_TO_DO]


def beyond_curves(graph: MarkedGraph, costs: CostModel) -> list[str]:
    """Name the collectives whose size or ranks lie outside of the measured curve that times them."""
    ranks, measured = costs.cluster.ranks, [row for row in _collectives(graph) if _is_measured(row[1], costs)]
    return [
        f"{name} (measured {operation(part)})"
        for name, part in measured
        if costs.curves[operation(part)].extrapolates(_size(part), ranks)
    ]


def _collectives(graph: MarkedGraph) -> list[tuple[str, Work]]:
    parts = [(stage.name, part) for stage in graph.pipeline.stages for part in leaves(stage.work)]
    return [(name, part) for name, part in parts if isinstance(part, Collective)]


def _is_measured(work: Work, costs: CostModel) -> bool:
    return operation(work) in costs.curves and _group(work) is None


def operation(work: Work) -> str:
    """Return the name of a collective's operation."""
    return OPERATIONS[type(work)]


def _size(work: Work) -> float:
    assert isinstance(work, Collective)
    return float(np.max(work.bytes))


def _group(work: Work) -> Group | None:
    group: Group | None = getattr(work, "group", None)
    return group


def _algorithm(work: Work, costs: CostModel) -> str:
    """Name what is assumed, or chosen, for a collective; a measured curve says nothing of its algorithm."""
    return "measured" if _is_measured(work, costs) else costs.plan(work).algorithm


def _row(name: str, work: Work, costs: CostModel) -> dict[str, Any]:
    named, size, seconds = operation(work), _size(work), float(np.max(costs.seconds(work)))
    group = _group(work)
    ranks = costs.cluster.ranks if group is None else group.size
    rates = (
        (algorithm_bandwidth(size, seconds), bus_bandwidth(named, size, seconds, ranks))
        if seconds
        else (0.0, 0.0)
    )
    return {
        "name": name,
        "operation": named,
        "algorithm": _algorithm(work, costs),
        "bytes": size,
        "algbw_gbps": float(rates[0]) / GB_PER_S,
        "busbw_gbps": float(rates[1]) / GB_PER_S,
    }
