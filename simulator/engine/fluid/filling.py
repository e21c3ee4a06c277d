"""Weighted max-min rates by progressive filling, in numpy.

The level of all flows rises together; when a link is full, the flows that cross it keep their level,
and the others go on (Bertsekas and Gallager, Data Networks, section 6.5.2). A link's fair level only
rises while other flows freeze, so *every* link on which all flows have their lowest level can be
frozen in the same round, and likewise every flow whose cap lies below the levels of all its links.
That is what keeps the rounds few here: in a complete all-to-all, one per change of side.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.engine.fluid.problem import Problem
from simulator.quantities import FloatArray, IntArray

TIE = 1e-13  # levels this close (relative) are the same level computed in another order


class Shares(NamedTuple):
    """Rates of all member flows, bytes/s (F,), and which links bound a flow, (L,) or longer."""

    rate: FloatArray
    tight: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class NumpyFilling:
    """The shares of any subset of the flows of `problem`, in whole-array steps."""

    problem: Problem

    def share(self, active: IntArray) -> Shares:
        """Return the rates and the tight links when the `active` flows (ids, ascending) share the links."""
        links = len(self.problem.capacity) + 1
        filled = Shares(np.zeros(len(self.problem.weight)), np.zeros(links, dtype=np.bool_))
        used = np.zeros(links)
        while len(active):
            active = self._round(active, filled, used)
        return filled

    def holds(self, shares: Shares, ended: IntArray, active: IntArray) -> bool:
        """Return whether `shares` stay right for the `active` flows now that `ended` are gone.

        They do when no tight link of an ended flow still carries another: each flow that goes on
        keeps the full link that bounds it, and that is what makes rates max-min.
        """
        touched = np.zeros_like(shares.tight)
        touched[self._links[:, ended]] = True
        touched &= shares.tight
        return not touched.any() or not touched[self._links[:, active]].any()

    def _round(self, active: IntArray, filled: Shares, used: FloatArray) -> IntArray:
        """Freeze what has reached its level; return the flows that go on."""
        link, share = self._links[:, active], self._shares[:, active]
        offered = self._offered(link, share, used)[link]
        lowest = np.minimum(offered.min(axis=0), self.problem.ceiling[active])
        full = _full(link, offered, lowest)
        ready = full.any(axis=0) | (self.problem.ceiling[active] == lowest)
        filled.rate[active[ready]] = lowest[ready] * self.problem.weight[active[ready]]
        filled.tight[link[full]] = True
        taken = share[:, ready] * np.where(np.isinf(lowest), 0.0, lowest)[ready]
        used += np.bincount(link[:, ready].ravel(), taken.ravel(), len(used))
        going: IntArray = active[~ready]
        return going

    def _offered(self, link: IntArray, share: FloatArray, used: FloatArray) -> FloatArray:
        """Return the level that each link could give to all its unfrozen flows, (L + 1,)."""
        load = np.bincount(link.ravel(), share.ravel(), len(used))
        left = np.append(self.problem.capacity, np.inf) - used
        offered: FloatArray = np.divide(left, load, out=np.full(len(used), np.inf), where=load > 0)
        return offered

    @cached_property
    def _links(self) -> IntArray:
        """Links crossed, (K, F): rows of unequal length are filled up with link L, which is free."""
        table: IntArray = np.full(self._table_shape, len(self.problem.capacity), dtype=np.int64)
        table[self._places] = self.problem.link
        return table

    @cached_property
    def _shares(self) -> FloatArray:
        table: FloatArray = np.zeros(self._table_shape)
        table[self._places] = self.problem.share
        return table

    @cached_property
    def _table_shape(self) -> tuple[int, int]:
        counts = np.diff(self.problem.starts)
        return max(1, int(counts.max())), len(counts)

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        """Row and column of each crossing in the tables."""
        starts, counts = self.problem.starts, np.diff(self.problem.starts)
        flow = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        return np.arange(len(flow), dtype=np.int64) - starts[flow], flow


def _full(link: IntArray, offered: FloatArray, lowest: FloatArray) -> NDArray[np.bool_]:
    """Return which entries stand for a link whose flows all have their lowest level there."""
    elsewhere = lowest < offered * (1 - TIE)
    blocked = np.bincount(link.ravel(), elsewhere.ravel()) > 0
    full: NDArray[np.bool_] = ~elsewhere & ~blocked[link]
    return full
