"""Key-centric sample clustering: equal groups of samples that ask for few different keys."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError
from simulator.quantities import IntArray
from simulator.workload.clustering.samples import SampleKeys, SharedKeys

TAKEN = -(2**60)


def cluster(batch: SampleKeys, parts: int) -> IntArray:
    """Return the micro-batch, 0..parts-1, of each sample, shape (samples,): equal sizes, few keys.

    The aim is that of NestPipe (arXiv 2604.06956, by summaries; its own algorithm is not known);
    the algorithm is ours. Groups are grown one after the other. A group takes next the free sample
    with the largest 2 x (its keys that the group has) - (its keys that free samples elsewhere
    share): what joining saves now, less what it would cost those left behind. The index by key
    makes this cheap: when a key enters a group, its holders' scores rise by one, and a key visits
    its holders once per group that has it. Deterministic: ties go to the earlier sample.

    Raises InputError when `parts` does not divide the batch.
    """
    if parts < 1 or batch.count % parts:
        raise InputError(f"{batch.count} samples cannot be split into {parts} equal micro-batches")
    growth = _Growth(SharedKeys.of(batch), batch.count)
    for part in range(parts):
        growth.grow(part, batch.count // parts)
    return growth.part_of


@dataclass(eq=False)
class _Growth:
    """The groups so far: who is free, and what each free sample shares with whom.

    `pull` counts a sample's keys that another free sample holds too. `free_holders` counts the free
    holders of each key, and `their_xor` is the exclusive-or of their numbers: when one is left, it
    is that one's number, found without a search.
    """

    shared: SharedKeys
    count: int
    visits: int = 0
    part_of: IntArray = field(init=False)
    pull: IntArray = field(init=False)
    free_holders: IntArray = field(init=False)
    their_xor: IntArray = field(init=False)

    def __post_init__(self) -> None:
        """Start with every sample free."""
        holders, keys = self.shared.holders, self.shared.keys
        self.part_of = np.full(self.count, -1, dtype=np.int64)
        self.pull = np.diff(keys.starts)
        self.free_holders = np.diff(holders.starts)
        self.their_xor = np.bitwise_xor.reduceat(holders.values, holders.starts[:-1])

    def grow(self, part: int, size: int) -> None:
        """Fill one group, starting with the sample that has most to share."""
        has = np.zeros(len(self.free_holders), dtype=bool)
        gain = np.zeros(self.count, dtype=np.int64)
        score = self.pull
        for _ in range(size):
            sample = int(np.argmax(np.where(self.part_of < 0, score, TAKEN)))
            self._take(sample, part)
            gain += self._entering(sample, has)
            score = 2 * gain - self.pull

    def _take(self, sample: int, part: int) -> None:
        self.part_of[sample] = part
        keys = self.shared.keys.of(sample)
        self.free_holders[keys] -= 1
        self.their_xor[keys] ^= sample
        lonely = self.their_xor[keys[self.free_holders[keys] == 1]]
        self.pull -= np.bincount(lonely, minlength=self.count)

    def _entering(self, sample: int, has: NDArray[np.bool_]) -> IntArray:
        """Return how many of the keys that `sample` brings new into the group each sample holds."""
        keys = self.shared.keys.of(sample)
        new = keys[~has[keys] & (self.free_holders[keys] > 0)]
        has[keys] = True
        holders = self.shared.holders.joined(new)
        self.visits += len(holders)
        return np.bincount(holders, minlength=self.count)
