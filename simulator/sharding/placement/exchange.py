"""Local improvement: pieces change chips, alone or in pairs, as long as the busiest chip gets less to do."""

from dataclasses import dataclass, replace

import numpy as np

from simulator.quantities import FloatArray, IntArray
from simulator.sharding.placement.placed import ROUNDING, Placement

MOST_STEPS = 5000  # far more than a few hundred tables need


def exchanged(placement: Placement) -> Placement:
    """Return the placement after the best moves and swaps of the busiest chip, until none helps.

    A step takes one piece from the busiest chip, or swaps it for a smaller one, such that the
    busier of the two chips has as little to do as possible and less than before. Memory is respected.
    """
    state = _State.of(placement)
    for _ in range(MOST_STEPS):
        if not state.step():
            break
    return replace(placement, chip_of=tuple(state.chip_of.tolist()))


@dataclass(eq=False)
class _State:
    """Loads and sizes of shards, shape (shards,), where they are, and what chips hold, shape (chips,)."""

    load: FloatArray
    size: FloatArray
    chip_of: IntArray
    loads: FloatArray
    room: FloatArray

    @classmethod
    def of(cls, placement: Placement) -> "_State":
        """Return the state of a placement; the last shard is one of nothing, for moves without return."""
        load = np.array([shard.load for shard in placement.shards])
        size = np.array([shard.memory for shard in placement.shards])
        room = placement.chips.memory * (1 + ROUNDING) - placement.memory
        return cls(load, size, np.array(placement.chip_of), placement.loads.copy(), room)

    def step(self) -> bool:
        """Do the best exchange of the busiest chip; return whether there was one."""
        busiest = int(np.argmax(self.loads))
        given, taken, to = self._candidates(busiest)
        shift = self._difference(self.load, given, taken)
        bytes_ = self._difference(self.size, given, taken)
        after = np.maximum(self.loads[busiest] - shift, self.loads[to] + shift)
        fits = (bytes_ <= self.room[to]) & (-bytes_ <= self.room[busiest])
        after = np.where(fits & (shift > 0), after, np.inf)
        if not after.size or after.min() >= self.loads[busiest] * (1 - ROUNDING):
            return False
        row, column = np.unravel_index(int(np.argmin(after)), after.shape)
        self._do(busiest, int(to[column]), given[row], taken[column])
        self.loads[[busiest, to[column]]] += np.array([-1, 1]) * shift[row, column]
        self.room[[busiest, to[column]]] += np.array([1, -1]) * bytes_[row, column]
        return True

    def _candidates(self, busiest: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return what the busiest chip can give, what it can take (-1: nothing), and from which chip."""
        given = np.flatnonzero(self.chip_of == busiest)
        others = np.flatnonzero(self.chip_of != busiest)
        chips = np.delete(np.arange(len(self.loads)), busiest)
        taken = np.append(np.full(len(chips), -1), others)
        return given, taken, np.append(chips, self.chip_of[others])

    @staticmethod
    def _difference(amounts: FloatArray, given: IntArray, taken: IntArray) -> FloatArray:
        """Return what leaves the busiest chip in each exchange, shape (given, taken)."""
        back = np.where(taken >= 0, amounts[taken], 0.0)
        difference: FloatArray = amounts[given][:, None] - back[None, :]
        return difference

    def _do(self, busiest: int, to: int, given: int, taken: int) -> None:
        self.chip_of[given] = to
        if taken >= 0:
            self.chip_of[taken] = busiest
