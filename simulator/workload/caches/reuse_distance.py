"""Exact reuse distances: how many other keys were looked up since a key's last lookup.

An LRU cache of C rows hits exactly the lookups whose distance is below C (Mattson et al. 1970), so
one pass gives the miss curve of every size.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.quantities import IntArray
from simulator.workload.keys.counting import stable_order

FIRST = -1  # the distance of a key's first lookup
LEAF_BITS = 5  # blocks of 32 are counted by comparing all pairs


def earlier_smaller(values: IntArray) -> IntArray:
    """Return for each entry of a permutation of 0..n-1 how many entries before it are smaller.

    The entries are sorted bit by bit from the highest, keeping their order within equal leading
    bits; an entry whose bit is 1 has before it, in its group, the smaller entries whose bit is 0.
    n log n steps, each over whole arrays.
    """
    entries, counts = values.astype(np.int32), np.zeros(len(values), dtype=np.int32)
    places = np.arange(len(values), dtype=np.int32)
    for bit in range(max(len(values) - 1, 1).bit_length() - 1, LEAF_BITS - 1, -1):
        entries, counts = _split(entries, counts, places, bit)
    counts += _within_leaves(entries)
    smaller = np.empty_like(counts)
    smaller[entries] = counts
    return smaller[values].astype(np.int64)


def _split(
    entries: NDArray[np.int32], counts: NDArray[np.int32], places: NDArray[np.int32], bit: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return entries and counts, each group of equal leading bits split by its next `bit`."""
    one = (entries >> bit) & 1
    zeros_before = places - np.cumsum(one, dtype=np.int32) + one
    start = entries >> (bit + 1) << (bit + 1)  # the group of a permutation begins at its smallest value
    zeros_in_group = zeros_before - zeros_before[start]
    counts = counts + one * zeros_in_group
    target = np.where(one == 1, (1 << bit) + places - zeros_in_group, start + zeros_in_group)
    split, moved = np.empty_like(entries), np.empty_like(counts)
    split[target], moved[target] = entries, counts
    return split, moved


def _within_leaves(entries: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return how many entries before each are smaller, within blocks of 32 places."""
    block = 1 << LEAF_BITS
    padded = np.full(-(-len(entries) // block) * block, np.iinfo(np.int32).max, dtype=np.int32)
    padded[: len(entries)] = entries
    blocks = (padded & (block - 1)).astype(np.int8).reshape(-1, block)
    blocks.ravel()[len(entries) :] = block
    counts = np.zeros(blocks.shape, dtype=np.int8)
    for place in range(1, block):
        counts[:, place] = np.count_nonzero(blocks[:, :place] < blocks[:, place : place + 1], axis=1)
    return counts.ravel()[: len(entries)].astype(np.int32)


@dataclass
class ReuseDistances:
    """Distances of a stream of keys, given in pieces; memory grows with the distinct keys.

    `stack` holds the keys seen so far, the latest last. A piece costs time in proportion to its
    lookups and to the keys seen so far: pieces should be as long as there are keys.
    """

    stack: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def add(self, codes: IntArray) -> IntArray:
        """Return the distance of each lookup of the next piece, `FIRST` for a first lookup."""
        known, joined = len(self.stack), np.concatenate([self.stack, codes])
        previous, last = neighbours(joined)
        self.stack = joined[last]
        return _distances(previous)[known:]


def neighbours(codes: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the place of each lookup's predecessor (or -1), and which are the last of their key."""
    order = stable_order(codes)
    same = np.diff(codes[order]) == 0
    previous = np.full(len(codes), -1, dtype=np.int64)
    previous[order[1:][same]] = order[:-1][same]
    last = np.ones(len(codes), dtype=bool)
    last[order[:-1][same]] = False
    return previous, last


def _distances(previous: IntArray) -> IntArray:
    """Return the distinct keys between each lookup and its predecessor.

    Our derivation: between p and i, the keys are those whose first lookup there looks back to p or
    before. Every j <= p looks back before p, so they number #{j < i: previous_j <= p} - (p + 1).
    """
    again = np.flatnonzero(previous >= 0)
    first_before = np.cumsum(previous < 0)[again]
    has_next = np.zeros(len(previous), dtype=np.int64)
    has_next[previous[again]] = 1
    ranks = np.cumsum(has_next)[previous[again]] - 1
    distances = np.full(len(previous), FIRST, dtype=np.int64)
    distances[again] = first_before + earlier_smaller(ranks) - previous[again] - 1
    return distances
