"""What can pass between two halves of a fabric at most, whatever the routing."""

from collections.abc import Collection
from typing import Any

from simulator.errors import InputError
from simulator.hardware.graphs.fabric_graph import FabricGraph


def cut_bandwidth(fabric: FabricGraph, side: Collection[int]) -> float:
    """Return the bytes/s that the ranks in `side` together can send to all others: a maximum flow.

    It equals the narrowest cut between them (Ford and Fulkerson, 1956). Takes seconds from about
    500 ranks on. Raises InputError if a side is empty.
    """
    from networkx import DiGraph, maximum_flow_value

    flow: Any = DiGraph()
    for tail, head, data in fabric.graph.edges(data=True):
        known = flow.get_edge_data(tail, head, {"capacity": 0.0})["capacity"]
        flow.add_edge(tail, head, capacity=known + data["bandwidth"])
    within = {rank for index, rank in enumerate(fabric.ranks) if index in side}
    if not 0 < len(within) < len(fabric.ranks):
        raise InputError(f"{fabric.name}: a cut needs ranks on both sides")
    begin, end = object(), object()  # no name of a node equals these
    for rank in fabric.ranks:  # an edge without a capacity never limits
        flow.add_edge(*((begin, rank) if rank in within else (rank, end)))
    return float(maximum_flow_value(flow, begin, end))
