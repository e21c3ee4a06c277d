"""A torus of chips, as TPU pods are wired: every chip has one link each way along each axis."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.hardware.crossings import Crossings, Exchange, Grid
from simulator.hardware.fabric import WayOut, no_way_out
from simulator.quantities import Group


@dataclass(frozen=True)
class Torus:
    """A 1-, 2- or 3-dimensional torus (`wrap`) or mesh of `dims` chips.

    `link_bandwidth` is bytes/s of one link in one direction, `hop_latency` seconds from chip to
    neighbour, `efficiency` the share of the bandwidth that large transfers reach. An axis of two
    chips has one link whether it wraps or not.
    """

    dims: tuple[int, ...]
    link_bandwidth: float
    hop_latency: float = 0.0
    wrap: bool = True
    efficiency: float = 1.0

    def __post_init__(self) -> None:
        """Raise InputError on an impossible value."""
        if not 1 <= len(self.dims) <= 3:
            raise InputError(f"torus: dims must name 1 to 3 axes, not {len(self.dims)}")
        checks.counts("torus", **{f"dims[{axis}]": length for axis, length in enumerate(self.dims)})
        checks.positive("torus", link_bandwidth=self.link_bandwidth)
        checks.not_negative("torus", hop_latency=self.hop_latency)
        checks.shares("torus", efficiency=self.efficiency)

    @property
    def on_host_links(self) -> bool:
        """No: chips have links of their own."""
        return False

    def way_out(self, per_host: int) -> WayOut:
        """Raise InputError: its links lead to other chips only."""
        raise no_way_out("torus")

    @property
    def size(self) -> int:
        """The number of chips."""
        return prod(self.dims)

    @property
    def rate(self) -> float:
        """The bytes/s that large transfers reach on one link in one direction."""
        return self.link_bandwidth * self.efficiency

    def domain_size(self, per_host: int) -> int:
        """Return all chips: the torus is one fast domain."""
        return self.size

    def check(self, ranks: int, per_host: int) -> None:
        """Raise InputError unless the torus has exactly `ranks` chips."""
        if ranks != self.size:
            shape = "x".join(map(str, self.dims))
            raise InputError(f"a {shape} torus has {self.size} accelerators, the cluster has {ranks}")

    def resized(self, ranks: int) -> "Torus":
        """Return a torus of `ranks` chips with as many axes, shaped for the widest bisection.

        Itself if the size is right already. Raises InputError if `ranks` is below one.
        """
        checks.counts("torus", ranks=ranks)
        if ranks == self.size:
            return self
        # the shortest longest axis has the widest bisection; then the least total length, the fewest hops
        best = min(_shapes(ranks, len(self.dims)), key=lambda shape: (max(shape), sum(shape)))
        return replace(self, dims=best)

    def injection_bandwidth(self) -> float:
        """Return the bytes/s that a chip can send on all its links, averaged over the chips."""
        return self.rate * sum(2 * self._links(length) / length for length in self.dims)

    def bisection_bandwidth(self, ranks: int = 0, per_host: int = 0) -> float:
        """Return the bytes/s, in one direction, through the narrowest cut across an axis.

        A cut meets each ring of its axis twice, each line once (our derivation). On an axis of odd
        length the halves differ by one layer. The arguments are the protocol's; a torus knows its size.
        """
        cuts = [self.size // length * self._cut(length) for length in self.dims if length > 1]
        return min(cuts, default=0) * self.rate

    def exchange_bandwidth(self) -> float:
        """Return the bytes/s that each chip sends in an even all-to-all, as its busiest link lets through.

        Half of a chip's bytes cross the middle of an axis of even length, half of them each way: a quarter
        of all. Of an odd length d it is 1 / d^2 less, as no chip of the middle layer has a far half. Axes
        are crossed one after the other, so that each has its whole load (our derivation).
        """
        shares = [self._exchange_rate(length) for length in self.dims if length > 1]
        return min(shares, default=self.rate)

    def _exchange_rate(self, length: int) -> float:
        """Return the bytes/s of each chip that the busiest link of one axis lets through."""
        whole = 4 * (self.size // length * self._cut(length) * self.rate) / self.size
        return whole * (length**2 / (length**2 - length % 2))

    def average_hops(self) -> float:
        """Return the mean links from a chip to a chip picked at random, itself included (our derivation).

        An axis of d chips adds floor(d^2 / 4) / d with wraparound, (d^2 - 1) / (3 d) without.
        """
        return sum(self._hops(length) for length in self.dims)

    def busiest_hops(self) -> float:
        """Return the same of the chip whose links carry most each in an even all-to-all.

        Times the links of a mean chip over its own: an inner chip of a mesh forwards more on more links.
        """
        return self.average_hops() if self.wrap else _mesh_hops(self)

    def crossings(self, ranks: int = 0, per_host: int = 0, group: Group | None = None) -> Crossings:
        """Return the links of all chips. The arguments are the protocol's; a torus knows its size."""
        return Grid(self.dims, self.wrap, self.rate)

    def _hops(self, length: int) -> float:
        return length**2 // 4 / length if self.wrap else (length**2 - 1) / (3 * length)

    def _cut(self, length: int) -> int:
        """Count the links that a cut through one ring or line of `length` chips meets."""
        return 2 if self.wrap and length > 2 else 1

    def _links(self, length: int) -> int:
        """Count the links of one ring or line of `length` chips."""
        return length - 2 + self._cut(length)


@lru_cache(maxsize=64)
def _mesh_hops(mesh: Torus) -> float:
    links, each = mesh.crossings(), np.ones(mesh.size)
    loads = links.spread(Exchange(each, each, np.zeros(mesh.size, int)))
    return float(links.seconds(loads)["chip"].max()) * mesh.injection_bandwidth()


def _shapes(size: int, axes: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write `size` as a product of `axes` factors in rising order."""
    if axes == 1:
        yield (size,)
        return
    for first in range(1, int(size ** (1 / axes) + 1e-9) + 1):
        if size % first == 0:
            yield from ((first, *rest) for rest in _shapes(size // first, axes - 1) if first <= rest[0])
