"""The links of a torus or mesh: along the first axis that differs, then the next, the shorter way round.

The same ways as the routed graph takes (`DimensionOrder`); a message that finds both ways round equally
long takes half of its bytes each way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from simulator.hardware.crossings.exchange import Exchange
from simulator.quantities import FloatArray


@dataclass(frozen=True)
class Axis:
    """One ring (`ring`) or line of `length` chips; link (0, x) leads from x up, link (1, x) from x down."""

    length: int
    ring: bool

    @property
    def links(self) -> FloatArray:
        """Return how many links lead out of each chip."""
        most = min(self.length - 1, 2)
        inner = np.full(self.length, float(most))
        if not self.ring:
            inner[[0, -1]] = min(most, 1)
        return inner

    @property
    def furthest(self) -> int:
        """The most links that a message crosses one way."""
        return self.length // 2 if self.ring else self.length - 1

    def loads(self, moved: FloatArray) -> FloatArray:
        """Return the bytes on each link, (2, length, ...), of `moved` (length, length, ...) from i to j."""
        up = self._up(moved)
        down = self._up(moved[::-1, ::-1])[::-1]
        return np.stack([up, down])

    def _up(self, moved: FloatArray) -> FloatArray:
        """Add up what goes on beyond each link, from the messages that go furthest on."""
        place, load = np.arange(self.length), np.zeros(moved.shape[1:])
        onward = np.zeros(moved.shape[1:])
        for ahead in range(self.furthest, 0, -1):
            goal = place + ahead
            part = moved[place, goal % self.length]
            if not self.ring:
                part[goal >= self.length] = 0.0
            onward = onward + part * (0.5 if self._ties(ahead) else 1.0)
            load += np.roll(onward, ahead - 1, axis=0)
        return load

    def least(self, level: FloatArray) -> FloatArray:
        """Return the lowest `level` (2, length, ...) from i to j, (length, length, ...); inf to itself."""
        found = np.full((self.length, *level.shape[1:]), np.inf)
        self._lowest(level[0], found)
        self._lowest(level[1, ::-1], found[::-1, ::-1])
        return found

    def _lowest(self, level: FloatArray, found: FloatArray) -> None:
        place, lowest = np.arange(self.length), np.full_like(level, np.inf)
        for ahead in range(1, self.furthest + 1):
            lowest = np.minimum(lowest, np.roll(level, 1 - ahead, axis=0))
            goal = place + ahead
            there = place if self.ring else place[goal < self.length]
            at = there, goal[there] % self.length
            found[at] = np.minimum(found[at], lowest[there])

    def _ties(self, ahead: int) -> bool:
        return self.ring and 2 * ahead == self.length


@dataclass(frozen=True, eq=False)
class Grid:
    """A torus of `dims` chips, in row-major order, whose links carry `rate` bytes/s one way.

    Loads are flat over (axis, up or down, x, y, z). `pace` is the share of its rate that a link reaches.
    """

    dims: tuple[int, ...]
    wrap: bool
    rate: float
    pace: FloatArray | None = None

    @property
    def parts(self) -> int:
        """All messages share links."""
        return 1

    @property
    def far(self) -> FloatArray:
        """None is set apart."""
        return np.zeros((prod(self.dims),) * 2)

    @cached_property
    def capacity(self) -> FloatArray:
        """Bytes/s of each link."""
        whole = np.full(6 * prod(self.dims), self.rate)
        return whole if self.pace is None else whole * self.pace

    @cached_property
    def injection(self) -> FloatArray:
        """Bytes/s of all links out of each chip, more for inner ones of a mesh; of one link without any."""
        x, y, z = (axis.links for axis in self.axes)
        links = x[:, None, None] + y[:, None] + z
        return np.maximum(links, 1.0).ravel() * self.rate

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """The lengths of three axes, further ones 1 long."""
        x, y, z = (*self.dims, 1, 1)[:3]
        return x, y, z

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The three axes: two chips have one link whether the axis wraps or not."""
        return tuple(Axis(length, self.wrap and length > 2) for length in self.shape)

    def paced(self, speed: FloatArray) -> "Grid":
        """Return the same with the cables at slow chips slow, both ways."""
        here = speed.reshape(self.shape)
        both = []
        for axis in range(3):
            both += [np.minimum(here, np.roll(here, shift, axis)) for shift in (-1, 1)]
        return replace(self, pace=np.stack(both).ravel())

    def loads(self, messages: FloatArray) -> FloatArray:
        """Return the bytes that cross each link."""
        x, y, z = self.shape
        whole = messages.reshape(x, y * z, x, y, z)
        lines = whole.sum(axis=4)
        along_x = lines.sum(axis=3).transpose(0, 2, 1)
        along_y = lines.sum(axis=0).reshape(y, z, x, y).transpose(0, 3, 2, 1)
        along_z = messages.reshape(x * y, z, x, y, z).sum(axis=0).transpose(0, 3, 1, 2)
        return self._on_links(along_x, along_y, along_z)

    def spread(self, exchange: Exchange) -> FloatArray:
        """Return the same for an exchange among all chips."""
        sent = (exchange.sent / exchange.totals).reshape(self.shape)
        received = exchange.received.reshape(self.shape)
        x, y, z = self.shape
        along_x = np.einsum("xyz,i->xiyz", sent, received.sum(axis=(1, 2))).reshape(x, x, y * z)
        along_y = np.einsum("yz,xi->yixz", sent.sum(axis=0), received.sum(axis=2))
        along_z = np.einsum("z,xyi->zixy", sent.sum(axis=(0, 1)), received)
        return self._on_links(along_x, along_y, along_z)

    def _on_links(self, along_x: FloatArray, along_y: FloatArray, along_z: FloatArray) -> FloatArray:
        """Return all loads; messages along x keep their y and z, those along y have their x already."""
        first, second, third = self.axes
        shape = (2, *self.shape)
        found = (
            first.loads(along_x).reshape(shape),
            second.loads(along_y).transpose(0, 2, 1, 3),
            third.loads(along_z).transpose(0, 2, 3, 1),
        )
        return np.stack(found).reshape(1, -1)

    def least(self, level: FloatArray) -> FloatArray:
        """Return the lowest level on the way of each message."""
        x, y, z = self.shape
        first, second, third = self.axes
        each = level.reshape(3, 2, x, y, z)
        in_x = first.least(each[0].reshape(2, x, y * z)).transpose(0, 2, 1)
        in_y = second.least(each[1].transpose(0, 2, 1, 3)).transpose(0, 3, 2, 1)  # from y, z; to x, y
        in_z = third.least(each[2].transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)  # from z; to x, y, z
        both = np.minimum(in_x[:, :, :, None], in_y.reshape(1, y * z, x, y))
        last = np.minimum(both.reshape(x, y, z, x, y, 1), in_z.reshape(1, 1, z, x, y, z))
        return last.reshape(x * y * z, -1)

    def seconds(self, loads: FloatArray) -> Mapping[str, FloatArray]:
        """Return the time of the busiest link (it stands for the narrowest cut), and of the busiest chip.

        A chip is as busy as its own links are on average.
        """
        busiest = (loads / self.capacity).max()
        chips = loads.reshape(6, -1).sum(axis=0)
        return {"cut": np.array([busiest]), "chip": np.array([(chips / self.injection).max()])}
