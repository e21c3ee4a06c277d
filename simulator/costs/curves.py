"""Measured collectives: how long one takes by size, at the scales that were tested and beyond them.

Sizes are those of nccl-tests: the bytes of the larger of a rank's two buffers (for an all-to-all its
own share included, for an all-gather the gathered whole). How a curve changes with the number of
ranks is said by a law of `simulator.costs.growth`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from simulator.errors import InputError, did_you_mean
from simulator.quantities import Amount, FloatArray

ALIKE = 1e-9  # sizes that differ by less, relatively, are one size: products of ratios are rounded


def _whole(ranks: int) -> float:
    return 1.0


def _less_own(ranks: int) -> float:
    return (ranks - 1) / ranks


def _twice_less_own(ranks: int) -> float:
    return 2 * (ranks - 1) / ranks


# Bus bandwidth over algorithm bandwidth, as nccl-tests defines them (its doc/PERFORMANCE.md).
BUS_FACTORS: Mapping[str, Callable[[int], float]] = {
    "all_reduce": _twice_less_own,
    "all_gather": _less_own,
    "reduce_scatter": _less_own,
    "all_to_all": _less_own,
    "broadcast": _whole,
    "reduce": _whole,
    "point_to_point": _whole,
}


def algorithm_bandwidth(size: Amount, seconds: Amount) -> Amount:
    """Return bytes/s: the size of the operation over its time (nccl-tests `algbw`)."""
    return size / seconds


def bus_bandwidth(operation: str, size: Amount, seconds: Amount, ranks: int) -> Amount:
    """Return bytes/s that do not depend on the number of ranks when links are the limit (nccl-tests `busbw`).

    Raises InputError for an operation that is not in `BUS_FACTORS`.
    """
    if operation not in BUS_FACTORS:
        raise InputError(f'"{operation}" is not a collective{did_you_mean(operation, BUS_FACTORS)}')
    return algorithm_bandwidth(size, seconds) * BUS_FACTORS[operation](ranks)


class SizeCurve(Protocol):
    """Seconds by size at one scale."""

    def seconds(self, size: FloatArray) -> FloatArray:
        """Return the seconds of collectives of `size` bytes, same shape."""


@dataclass(frozen=True)
class AlphaBeta:
    """A start-up of `latency` seconds and then `bandwidth` bytes/s (Hockney, 1994)."""

    latency: float
    bandwidth: float

    def __post_init__(self) -> None:
        """Refuse what is not a time and a rate."""
        if not (self.latency >= 0 and self.bandwidth > 0):
            raise InputError("a line needs a latency of at least 0 and a positive bandwidth")

    def seconds(self, size: FloatArray) -> FloatArray:
        """Return the seconds of collectives of `size` bytes, same shape."""
        return np.asarray(self.latency + size / self.bandwidth)


@dataclass(frozen=True)
class Segments:
    """The cheapest of several protocols, each a line: libraries change protocol with the size."""

    lines: tuple[AlphaBeta, ...]

    def __post_init__(self) -> None:
        """Refuse an empty set of lines."""
        if not self.lines:
            raise InputError("segments need at least one line")

    def seconds(self, size: FloatArray) -> FloatArray:
        """Return the seconds of collectives of `size` bytes, same shape."""
        return np.asarray(np.minimum.reduce([line.seconds(size) for line in self.lines]))


@dataclass(frozen=True)
class LogLog:
    """Straight lines between measured points in log-log axes; `sizes` (bytes) rise strictly.

    Where time falls from one point to the next, the library has changed to a faster protocol in
    between, and the faster time holds from just above the smaller size. Below the first point the
    time is that of the first; above the last it goes on at the marginal rate of the last two.
    Raises InputError for fewer than two points, sizes that do not rise, or times of 0 or less.
    """

    sizes: tuple[float, ...]
    times: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse points that cannot be drawn in log-log axes."""
        if len(self.sizes) < 2 or len(self.sizes) != len(self.times):
            raise InputError("a measured curve needs at least two points, each a size and a time")
        if min(self.sizes) <= 0 or min(self.times) <= 0 or min(np.diff(self.sizes)) <= 0:
            raise InputError("a measured curve needs rising positive sizes and positive times")

    def seconds(self, size: FloatArray) -> FloatArray:
        """Return the seconds of collectives of `size` bytes, same shape."""
        return np.where(size > self.sizes[-1], self._beyond(size), self._between(size))

    def _between(self, size: FloatArray) -> FloatArray:
        x, y = np.log(self.sizes), np.log(self.times)
        at = np.log(np.maximum(size, self.sizes[0]))
        right = np.clip(np.searchsorted(x, at - ALIKE), 1, len(x) - 1)
        switched = (y[right] < y[right - 1]) & (at > x[right - 1] + ALIKE)
        return np.exp(np.where(switched, y[right], np.interp(at, x, y)))

    def _beyond(self, size: FloatArray) -> FloatArray:
        (before, last), (earlier, end) = self.sizes[-2:], self.times[-2:]
        steepness = np.clip(np.log(end / earlier) / np.log(last / before), 0.0, 1.0)
        return np.asarray(end * (1 + steepness * (size / last - 1)))


@dataclass(frozen=True)
class Scale:
    """How many `ranks` on how many `nodes` (hosts); raises InputError unless the nodes are equally full."""

    ranks: int
    nodes: int

    def __post_init__(self) -> None:
        """Refuse nodes that are unequally full."""
        if self.nodes < 1 or self.ranks < 1 or self.ranks % self.nodes:
            raise InputError(f"{self.ranks} ranks cannot be spread evenly over {self.nodes} nodes")

    @property
    def per_node(self) -> int:
        """Ranks of one node."""
        return self.ranks // self.nodes


@dataclass(frozen=True)
class Measured:
    """One collective at one scale, tested from `least` to `most` bytes.

    With a `lender` that was done on another cluster, whose name it is, and scaled.
    """

    scale: Scale
    curve: SizeCurve
    least: float
    most: float
    lender: str = ""


class Growth(Protocol):
    """How the time of a collective follows from what was measured at other scales."""

    def seconds(self, known: tuple[Measured, ...], size: FloatArray, scale: Scale) -> FloatArray:
        """Return the seconds (same shape as `size`) at `scale`; InputError where nothing can be said."""


@dataclass(frozen=True)
class Curve:
    """One operation of one system (accelerators, network, library and its settings) at every scale.

    `measured` stands in the order of nodes, then ranks; no scale twice.
    """

    operation: str
    measured: tuple[Measured, ...]
    growth: Growth

    def __post_init__(self) -> None:
        """Refuse an empty curve, a repeated scale and disorder."""
        order = [(one.scale.nodes, one.scale.ranks) for one in self.measured]
        if not order or order != sorted(set(order)):
            raise InputError(f"{self.operation}: the measured scales must rise, and there must be one")

    def seconds(self, size: Amount, ranks: int, nodes: int) -> Amount:
        """Return the seconds of collectives of `size` bytes (same shape) over `ranks` on `nodes`.

        A measured scale is read off its curve, others follow the growth law. Raises InputError
        where the law has nothing to start from.
        """
        amount, scale = np.asarray(size, dtype=float), Scale(ranks, nodes)
        exact = [one.curve for one in self.measured if one.scale == scale]
        found = exact[0].seconds(amount) if exact else self.growth.seconds(self.measured, amount, scale)
        return found if isinstance(size, np.ndarray) else float(found)

    def extrapolates(self, size: Amount, ranks: int) -> bool:
        """Whether any of `size` bytes, or `ranks`, lies outside what was measured on this very system."""
        own = [one for one in self.measured if not one.lender]
        if not own:
            return True
        least, most = min(one.least for one in own), max(one.most for one in own)
        tested = [one.scale.ranks for one in own]
        outside = np.any(np.less(size, least) | np.greater(size, most))
        return bool(outside) or not min(tested) <= ranks <= max(tested)

    def bus_bandwidth(self, size: Amount, ranks: int, nodes: int) -> Amount:
        """Return the bus bandwidth in bytes/s, as nccl-tests defines it."""
        return bus_bandwidth(self.operation, size, self.seconds(size, ranks, nodes), ranks)
