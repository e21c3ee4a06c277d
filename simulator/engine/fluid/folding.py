"""Folding: flows and links that cannot be told apart become classes, and the rates stay the same.

Colours are refined until stable (Weisfeiler and Leman, 1968): flows of one colour cross links of the
same colours, and links of one colour are crossed by the same flows, coefficients included. Then flows
of one colour have the same max-min rate: the rates are unique, and each step of the filling treats
links of one colour alike, because their loads are sums over the same colours. For the same reason the
colours stay stable when time passes. Nothing is assumed about the fabric.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.engine.fluid.flows import FlowClasses
from simulator.engine.fluid.problem import check_links, checked_capacity
from simulator.quantities import FloatArray, IntArray

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Folded:
    """The smaller problem, and the class of each link (L,) and of each flow (F,) of the larger one.

    `times[flow_class]` spreads what was found for the classes over the flows.
    """

    capacity: FloatArray
    flows: FlowClasses
    link_class: IntArray
    flow_class: IntArray


def fold(capacity: FloatArray, flows: FlowClasses) -> Folded:
    """Return the coarsest folding of `flows` on links of `capacity` that is exact.

    Colours are compared by 64-bit hashes: among 100,000 flows and links, the chance that two colours
    are taken for one is below 1e-9. Where nothing is alike, the result is as large as the input.
    """
    links, owner = checked_capacity(capacity), flows.owner()
    check_links(len(links), flows.link)
    link_class, flow_class = _stable_colours(links, flows, owner)
    chosen_links, chosen_flows = _first_of(link_class), _first_of(flow_class)
    rows = _folded_entries(flows, owner, (link_class, flow_class), chosen_links)
    starts = np.searchsorted(rows[0], np.arange(len(chosen_flows) + 1))
    per_flow = (values[chosen_flows] for values in (flows.bytes, flows.weight, flows.cap))
    folded = FlowClasses(starts, rows[1].astype(np.int32), rows[2], *per_flow)
    return Folded(links[chosen_links], folded, link_class, flow_class)


def _stable_colours(capacity: FloatArray, flows: FlowClasses, owner: IntArray) -> tuple[IntArray, IntArray]:
    """Refine the colours of links and flows until neither tells the other anything new."""
    link = _number(_mix(capacity.view(np.uint64)))
    flow = _number(_hash_of(flows.bytes, flows.weight, flows.cap))
    crossing = _hash_of(flows.coefficient)
    known = -1  # even where all start alike, some links may carry flows and others none
    while known < link.max() + flow.max():
        known = link.max() + flow.max()
        flow = _refined(flow, owner, _mix(link.astype(np.uint64))[flows.link] ^ crossing)
        link = _refined(link, flows.link, _mix(flow.astype(np.uint64))[owner] ^ crossing)
    return link, flow


def _refined(colour: IntArray, place: NDArray[np.integer], seen: Words) -> IntArray:
    """Return new colours: the old one and the multiset of what is seen at each place."""
    gathered = np.zeros(len(colour), dtype=np.uint64)
    np.add.at(gathered, place, _mix(seen))
    return _number(_mix(colour.astype(np.uint64)) + _mix(gathered))


def _folded_entries(
    flows: FlowClasses, owner: IntArray, classes: tuple[IntArray, IntArray], chosen_links: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return (flow class, link class, coefficient) as one link of each class sees it, by flow class."""
    link_class, flow_class = classes
    seen = np.zeros(len(link_class), dtype=np.bool_)
    seen[chosen_links] = True
    entry = np.flatnonzero(seen[flows.link])
    width = int(link_class.max()) + 1
    pair = flow_class[owner[entry]] * width + link_class[flows.link[entry]]
    pairs, place = np.unique(pair, return_inverse=True)
    coefficient: FloatArray = np.bincount(place, flows.coefficient[entry]).astype(np.float64)
    return pairs // width, pairs % width, coefficient


def _number(words: Words) -> IntArray:
    """Number distinct words 0, 1, ... in the order in which they appear."""
    _, first, inverse = np.unique(words, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _first_of(classes: IntArray) -> IntArray:
    return np.unique(classes, return_index=True)[1].astype(np.int64)


def _hash_of(*columns: FloatArray) -> Words:
    words = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        words = _mix(words + np.ascontiguousarray(column).view(np.uint64))
    return words


def _mix(words: Words) -> Words:
    """Mix 64-bit words (SplitMix64; Steele, Lea, Flood, OOPSLA 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
