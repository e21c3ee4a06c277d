"""The flat arrays that the solvers read: one or more sets of flow classes on one set of links."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simulator.engine.fluid.flows import FlowClasses, LinkArray
from simulator.quantities import FloatArray, IntArray

NEARLY = 1e-12  # of its bytes: so near its end a flow ends together with the others


class Problem(NamedTuple):
    """Flow classes in the form in which rates are sought; compiled code reads it too.

    The *level* of a flow is its rate per unit of weight: filling raises one level for all. `share`
    (C,) is what an entry loads its link with per unit of level, coefficient times weight; `ceiling`
    (F,) is the level at which a flow's cap binds; `capped` lists the flows that have one, lowest first.
    """

    capacity: FloatArray
    starts: IntArray
    link: LinkArray
    share: FloatArray
    weight: FloatArray
    ceiling: FloatArray
    capped: IntArray
    size: FloatArray

    @classmethod
    def of(cls, capacity: FloatArray, parts: Sequence[FlowClasses]) -> "Problem":
        """Put `parts` one after the other; ValueError when a link id has no capacity."""
        link = np.concatenate([flows.link for flows in parts])
        check_links(len(capacity), link)
        share = np.concatenate([flows.coefficient * flows.weight[flows.owner()] for flows in parts])
        weight = np.concatenate([flows.weight for flows in parts])
        ceiling = np.concatenate([flows.cap for flows in parts]) / weight
        size = np.concatenate([flows.bytes for flows in parts])
        return cls(capacity, _starts(parts), link, share, weight, ceiling, _capped(ceiling), size)


def checked_capacity(capacity: FloatArray) -> FloatArray:
    """Return `capacity` (L,), bytes/s, as floats; ValueError unless all are finite and positive."""
    links = np.ascontiguousarray(capacity, dtype=np.float64)
    if links.ndim != 1 or not (np.all(links > 0) and np.all(np.isfinite(links))):
        raise ValueError("capacities must be one row of finite, positive bytes/s")
    return links


def check_links(links: int, crossed: LinkArray) -> None:
    """Raise ValueError when a link is crossed that does not exist."""
    if len(crossed) and crossed.max() >= links:
        raise ValueError(f"a flow crosses link {crossed.max()}, but there are {links} links")


def checked_tick(tick: float) -> float:
    """Return `tick`, a share of a duration; ValueError unless it is from 0 to a half."""
    if not 0 <= tick <= 0.5:
        raise ValueError(f"a tick is a share from 0 to 0.5, not {tick}")
    return tick


def bottleneck_seconds(capacity: FloatArray, flows: FlowClasses) -> float:
    """Return the least time in which the busiest link, or a capped flow, can move its bytes."""
    check_links(len(capacity), flows.link)
    crossing = flows.coefficient * flows.bytes[flows.owner()]
    load = np.bincount(flows.link, weights=crossing, minlength=len(capacity))
    return float(max((load / capacity).max(initial=0.0), (flows.bytes / flows.cap).max()))


def _starts(parts: Sequence[FlowClasses]) -> IntArray:
    counts = np.concatenate([np.diff(flows.starts) for flows in parts])
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))


def _capped(ceiling: FloatArray) -> IntArray:
    """Return the flows with a finite ceiling, by ceiling."""
    finite = np.flatnonzero(np.isfinite(ceiling))
    return finite[np.argsort(ceiling[finite], kind="stable")].astype(np.int64)
