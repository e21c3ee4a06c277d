"""Growth laws: what collectives measured at some scales say about another scale.

Two ideas carry all of it. *Similarity*: when the algorithm is so many equal steps with a message of
size/ranks each, then time per step as a function of the message is one curve for all scales (our
derivation, from the ring and direct-exchange cost forms of Thakur, Rabenseifner and Gropp, 2005).
*Trees*: time grows by the same amount each time that the nodes double.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import log2

import numpy as np

from simulator.costs.curves import Growth, Measured, Scale
from simulator.errors import InputError
from simulator.quantities import FloatArray


@dataclass(frozen=True)
class _Steps(ABC):
    """Similarity: `steps(scale)` equal steps, each with a message of size/ranks.

    Within one host the steps are the peers. Between hosts only tables between hosts count: the
    network is another machine than the links inside. Between two tested scales the time per step
    is interpolated in log-log axes; outside it is that of the nearest, times (nodes/nearest)^`decay`
    for the part of the time that is not start-up. `from_below` uses the nearest scale with fewer nodes
    alone: one of several algorithms, which another may have replaced at the larger scale.
    """

    decay: float = 0.0
    from_below: bool = False

    def seconds(self, known: tuple[Measured, ...], size: FloatArray, scale: Scale) -> FloatArray:
        """Return the seconds (same shape as `size`) at `scale`; InputError where nothing was tested."""
        near, far, share = _neighbours(_alike(known, scale), scale)
        far = near if self.from_below else far
        low, high = (self._per_step(one, size, scale) for one in (near, far))
        between = np.exp((1 - share) * np.log(low) + share * np.log(high))
        return np.asarray(self._count(scale) * between * self._decayed(near, far, size, scale))

    def _per_step(self, one: Measured, size: FloatArray, scale: Scale) -> FloatArray:
        same_message = size * (one.scale.ranks / scale.ranks)
        return one.curve.seconds(same_message) / self._count(one.scale)

    def _decayed(self, near: Measured, far: Measured, size: FloatArray, scale: Scale) -> FloatArray | float:
        if near is not far or not self.decay:
            return 1.0
        times = near.curve.seconds(np.array([near.least, near.most]))
        streaming = 1 - times[0] / near.curve.seconds(size * (near.scale.ranks / scale.ranks))
        ratio = max(scale.nodes / near.scale.nodes, 1.0)
        return np.asarray(ratio ** (self.decay * np.clip(streaming, 0.0, 1.0)))

    def _count(self, scale: Scale) -> float:
        return self.steps(scale) if scale.nodes > 1 else max(scale.ranks - 1, 1)

    @abstractmethod
    def steps(self, scale: Scale) -> float:
        """Return the steps that cross the network."""


@dataclass(frozen=True)
class RemotePeers(_Steps):
    """Direct exchange, for all-to-all: one step for each peer on another host.

    Those on the same host are served meanwhile over faster links.
    """

    def steps(self, scale: Scale) -> float:
        """Return the peers of a rank that live on other hosts."""
        return scale.ranks - scale.per_node


@dataclass(frozen=True)
class HostRing(_Steps):
    """A ring through all ranks, for all-gather and reduce-scatter: one crossing of the network per host.

    Ranks of a host follow each other in the ring, so that time per host holds one crossing and the
    hops inside.
    """

    def steps(self, scale: Scale) -> float:
        """Return the hosts, each entered once."""
        return scale.nodes


@dataclass(frozen=True)
class Doubling:
    """Trees: time grows linearly in log2 of the nodes, for each size of what one rank of a node carries.

    Through the two nearest tested scales (a single host is depth 0); beyond them time never falls.
    From one scale alone start-up (the time of the smallest size tested) grows as 1 + log2(nodes), as if
    a doubling cost what a host costs inside, and the rest as the bytes that leave a host, (n - 1)/n.
    Within one host, ranks take the place of nodes.
    """

    def seconds(self, known: tuple[Measured, ...], size: FloatArray, scale: Scale) -> FloatArray:
        """Return the seconds (same shape as `size`) at `scale`; InputError where nothing was tested."""
        alike = _alike(known, scale)
        usable = _one_per_depth(known if scale.nodes > 1 else alike, scale)
        depths = [_depth(one.scale, scale) for one in usable]
        times = [_rail(one, size, scale) for one in usable]
        depth = _depth(scale, scale)
        if len(usable) == 1:
            return _from_one(usable[0], times[0], depths[0], depth)
        first = int(np.clip(np.searchsorted(depths, depth), 1, len(usable) - 1)) - 1
        per_doubling = (times[first + 1] - times[first]) / (depths[first + 1] - depths[first])
        if depth > depths[-1]:
            return np.asarray(times[-1] + np.maximum(per_doubling, 0.0) * (depth - depths[-1]))
        return np.asarray(times[first] + per_doubling * max(depth - depths[first], 0.0))


def _from_one(one: Measured, times: FloatArray, depth: float, target: float) -> FloatArray:
    start = np.minimum(one.curve.seconds(np.array(one.least)), times)
    leaving, leaving_there = (1 - 0.5**deep if deep else 1.0 for deep in (depth, target))
    return np.asarray(start * (1 + target) / (1 + depth) + (times - start) * leaving_there / leaving)


@dataclass(frozen=True)
class Cheapest:
    """Whichever of several algorithms is fastest, as a tuned library would choose."""

    laws: tuple[Growth, ...]

    def seconds(self, known: tuple[Measured, ...], size: FloatArray, scale: Scale) -> FloatArray:
        """Return the seconds (same shape as `size`) at `scale`; InputError where nothing was tested."""
        return np.asarray(np.minimum.reduce([law.seconds(known, size, scale) for law in self.laws]))


def law(operation: str, decay: float = 0.0) -> Growth:
    """Return the law of an operation: an all-to-all is direct, an all-gather a ring, the rest trees or rings.

    `decay` is for the first two: what an all-reduce does to large messages is in the line through its
    two nearest scales already, and over two hosts it sends half of what it sends over many.
    """
    if operation == "all_to_all":
        return RemotePeers(decay)
    if operation in ("all_gather", "reduce_scatter"):
        return HostRing(decay)
    return Cheapest((Doubling(), HostRing(from_below=True))) if operation == "all_reduce" else Doubling()


def _alike(known: tuple[Measured, ...], scale: Scale) -> tuple[Measured, ...]:
    """Return what was measured on the same side of a host's edge."""
    alike = tuple(one for one in known if (one.scale.nodes > 1) == (scale.nodes > 1))
    if not alike:
        here, there = ("between", "inside") if scale.nodes > 1 else ("inside", "between")
        raise InputError(f"the collective was measured {there} hosts only, and nothing is known {here} them")
    return alike


def _depth(of: Scale, target: Scale) -> float:
    """Return log2 of the nodes, or of the ranks when the target is inside one host."""
    return log2(of.nodes if target.nodes > 1 else of.ranks)


def _one_per_depth(known: tuple[Measured, ...], scale: Scale) -> list[Measured]:
    """Return one table per depth, the one with hosts filled most like the target's, in order of depth."""
    best: dict[float, Measured] = {}
    for one in sorted(known, key=lambda one: -abs(log2(one.scale.per_node / scale.per_node))):
        best[_depth(one.scale, scale)] = one
    return [best[depth] for depth in sorted(best)]


def _neighbours(known: tuple[Measured, ...], scale: Scale) -> tuple[Measured, Measured, float]:
    """Return the tested scales below and above, and how far between them (0 to 1) the target lies."""
    usable = _one_per_depth(known, scale)
    depths, depth = [_depth(one.scale, scale) for one in usable], _depth(scale, scale)
    above = int(np.searchsorted(depths, depth))
    low, high = max(above - 1, 0), min(above, len(usable) - 1)
    gap = depths[high] - depths[low]
    return usable[low], usable[high], (depth - depths[low]) / gap if gap and low != high else 0.0


def _rail(one: Measured, size: FloatArray, scale: Scale) -> FloatArray:
    """Return what was measured for the same bytes per rank of a node: ranks of a node share the work."""
    return one.curve.seconds(size * (one.scale.per_node / scale.per_node) if scale.nodes > 1 else size)
