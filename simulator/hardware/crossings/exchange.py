"""An uneven exchange, and what a fabric must say about the links that its messages cross."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from simulator.quantities import FloatArray, Group, IntArray


@dataclass(frozen=True, eq=False)
class Exchange:
    """Bytes that each rank sends and receives in all, own share included, and the number of its group.

    Arrays have shape (ranks,). What i sends to j of its group is in proportion to what one sends and the
    other receives: `sent[i] * received[j] / total`. Where a group does not receive as much as it sends,
    the smaller sum is the total, so that nobody has less than is said of it.
    """

    sent: FloatArray
    received: FloatArray
    group: IntArray

    @property
    def totals(self) -> FloatArray:
        """The bytes that each rank's group exchanges, (ranks,); 1 where it exchanges nothing."""
        sums = [np.bincount(self.group, amount) for amount in (self.sent, self.received)]
        total = np.minimum(*sums)[self.group]
        return np.where(total > 0.0, total, 1.0)

    @property
    def messages(self) -> FloatArray:
        """The bytes from each rank (row) to each other one, (ranks, ranks)."""
        each = np.multiply.outer(self.sent / self.totals, self.received)
        each[self.group[:, None] != self.group] = 0.0
        np.fill_diagonal(each, 0.0)
        return each


class Crossings(Protocol):
    """The links between so many ranks, each on its own, and the ways of all messages over them.

    Messages come in `parts` that share no link (inside fast domains, and between them), one or two; an
    array of loads has shape (parts, links).
    """

    @property
    def capacity(self) -> FloatArray:
        """Bytes/s of each link, (links,)."""

    @property
    def parts(self) -> int:
        """How many kinds of messages there are that share no link."""

    @property
    def far(self) -> FloatArray:
        """Which messages belong to the second part: 1, else 0; (ranks, ranks)."""

    def paced(self, speed: FloatArray) -> "Crossings":
        """Return the same with the links at each rank at that share of their rate, (ranks,)."""

    def loads(self, messages: FloatArray) -> FloatArray:
        """Return the bytes that cross each link for these messages, (ranks, ranks)."""

    def spread(self, exchange: Exchange) -> FloatArray:
        """Return the same for an exchange, without looking at every pair."""

    def least(self, level: FloatArray) -> FloatArray:
        """Return the lowest `level` (links,) on the way of each message, (ranks, ranks); inf without one."""

    def seconds(self, loads: FloatArray) -> Mapping[str, FloatArray]:
        """Return how long the busiest link of each class needs, part by part, (parts,)."""


def members(ranks: int, group: Group | None) -> IntArray:
    """Return the number of each rank's group: all are 0 without one."""
    rank = np.arange(ranks, dtype=np.int64)
    if group is None:
        return np.zeros_like(rank)
    return rank // (group.size * group.stride) * group.stride + rank % group.stride
