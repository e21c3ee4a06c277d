"""The links of a graph whose ways are known pair by pair."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from simulator.hardware.crossings.exchange import Exchange
from simulator.quantities import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Listed:
    """Ways in compressed rows, as `Routes` has them; every link is a class of its own, called `names`.

    `ends` are pairs of a rank and a link that leaves or reaches it, (2, n).
    """

    names: tuple[str, ...]
    capacity: FloatArray
    start: IntArray
    link: IntArray
    share: FloatArray
    ends: IntArray

    @property
    def parts(self) -> int:
        """All messages go together."""
        return 1

    @property
    def far(self) -> FloatArray:
        """None is set apart."""
        ranks = round((len(self.start) - 1) ** 0.5)
        return np.zeros((ranks, ranks))

    def paced(self, speed: FloatArray) -> "Listed":
        """Return the same with the links at slow ranks slow."""
        pace = np.ones(len(self.capacity))
        np.minimum.at(pace, self.ends[1], speed[self.ends[0]])
        return replace(self, capacity=self.capacity * pace)

    def loads(self, messages: FloatArray) -> FloatArray:
        """Return the bytes that cross each link."""
        each = np.repeat(messages.ravel(), np.diff(self.start)) * self.share
        return np.asarray(np.bincount(self.link, each, len(self.names))[None, :], np.float64)

    def spread(self, exchange: Exchange) -> FloatArray:
        """Return the same for an exchange."""
        return self.loads(exchange.messages)

    def least(self, level: FloatArray) -> FloatArray:
        """Return the lowest level on the way of each message."""
        found = np.full(len(self.start) - 1, np.inf)
        used = np.flatnonzero(np.diff(self.start))
        if len(used):
            found[used] = np.minimum.reduceat(level[self.link], self.start[used])
        return found.reshape(self.far.shape)

    def seconds(self, loads: FloatArray) -> Mapping[str, FloatArray]:
        """Return how long each link needs that has a limit."""
        busy = (loads / self.capacity).T
        return {
            name: seconds
            for name, seconds, rate in zip(self.names, busy, self.capacity, strict=True)
            if np.isfinite(rate)
        }
