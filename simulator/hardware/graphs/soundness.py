"""Refuse graphs that are inconsistent or disconnected, each fault by the name of what is wrong."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.errors import InputError
from simulator.hardware.graphs.links import Links, NextHops
from simulator.hardware.graphs.routing import ShortestPaths
from simulator.quantities import IntArray

if TYPE_CHECKING:
    from networkx import MultiDiGraph

EVERY_PAIR = 512
"""Up to this many ranks every ordered pair is checked, and can be routed."""


def check_parts(name: str, graph: "MultiDiGraph[str]", ranks: Sequence[str]) -> None:
    """Raise InputError on a fault in a rank, a node or a link, looked at one by one."""
    if not ranks:
        raise InputError(f"{name} has no accelerators")
    for rank, times in Counter(ranks).items():
        if times > 1:
            raise InputError(f'{name}: two ranks are named "{rank}"')
        if rank not in graph:
            raise InputError(f'{name}: rank "{rank}" is not a node')
    for node, data in graph.nodes(data=True):
        _check_fields(f"{name}: node {node}", data, ("kind", "forwards"))
    for tail, head, data in graph.edges(data=True):
        _check_fields(f"{name}: link {tail} -> {head}", data, ("kind", "bandwidth", "latency", "cost"))
        _check_link(f"{name}: link {tail} -> {head}", tail == head, data)
    for node in graph if len(graph) > 1 else ():
        _check_ends(name, graph, node)


def _check_fields(place: str, data: dict[str, Any], fields: tuple[str, ...]) -> None:
    for field in fields:
        if field not in data:
            raise InputError(f"{place} lacks {field}")


def _check_link(place: str, loop: bool, data: dict[str, Any]) -> None:
    if loop:
        raise InputError(f"{place} leads back to where it begins")
    rate, latency, cost = data["bandwidth"], data["latency"], data["cost"]
    if isnan(rate) or rate <= 0:
        raise InputError(f"{place}: bandwidth must be above zero, not {rate:g}")
    if not isfinite(latency) or latency < 0:
        raise InputError(f"{place}: latency must not be below zero, it is {latency:g}")
    if not isfinite(cost) or cost <= 0:
        raise InputError(f"{place}: cost must be above zero, not {cost:g}")


def _check_ends(name: str, graph: "MultiDiGraph[str]", node: str) -> None:
    ways_in, ways_out = graph.in_degree(node), graph.out_degree(node)
    if ways_in and ways_out:
        return
    lacks = "link" if not (ways_in or ways_out) else "link in" if not ways_in else "link out"
    raise InputError(f'{name}: {graph.nodes[node]["kind"]} "{node}" has no {lacks}')


def check_pairs(name: str, links: Links, ranks: IntArray, hops: NextHops) -> None:
    """Raise InputError naming the first pair of ranks, in rank order, without a way between them."""
    size = len(ranks)
    rows = ranks[:, None] * size + np.arange(size)
    missing = (hops.start[rows + 1] == hops.start[rows]) & ~np.eye(size, dtype=bool)
    if missing.any():
        source, target = np.argwhere(missing)[0]
        pair = f'"{links.nodes[ranks[source]]}" cannot reach "{links.nodes[ranks[target]]}"'
        raise InputError(f"{name}: {pair}{_hint(links, ranks[source], ranks[target])}")


def _hint(links: Links, source: int, target: int) -> str:
    """Say so when there would be a way if accelerators passed traffic on."""
    open_links = replace(links, forwards=np.ones(len(links.nodes), bool))
    hops = ShortestPaths().next_hops(open_links, np.array([target]))
    if hops.start[source + 1] == hops.start[source]:
        return ""
    return "; the only way leads through nodes that do not forward (forwards: true lets them)"


def check_whole(name: str, graph: "MultiDiGraph[str]") -> None:
    """Raise InputError naming a node that lies apart from the first one."""
    from networkx import weakly_connected_components

    parts = [min(part) for part in weakly_connected_components(graph)]
    if len(parts) > 1:
        raise InputError(f'{name}: "{parts[0]}" and "{parts[1]}" are not connected')
