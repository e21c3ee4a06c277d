"""The keys that are replayed: as few as tell apart all that stages may do to a row.

Rows of a real batch were last used by one batch or another, some by every batch; what stages do to them
follows from that. `Reuse` says how often each case occurs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.pipeline import Access, Pipeline
from simulator.quantities import FloatArray, IntArray
from simulator.results.staleness_replay import Keys

TELL_SINGLE = ("single", "later")
TELL_HOT = ("hot", "cold")
TELL_OWN = ("own",)
DRAWN = 512  # rows drawn; a share of updates is known to about 1 %
CELLS = 1 << 15  # of rows times batches: fewer rows are drawn where the batches are many
SEED = 20_260_101


@dataclass(frozen=True, eq=False)
class Reuse:
    """How the rows of a batch come back.

    `shares[gap - 1]` is the share of a batch's rows that were last used `gap` batches ago. `chances` are the
    chances of rows to be used by a batch, one for each of as many equal parts of a batch's rows.
    """

    shares: Sequence[float]
    chances: FloatArray

    @classmethod
    def alike(cls, shared: float, gaps: int = 5) -> "Reuse":
        """Return the reuse of rows that are all in a batch with the chance `shared`."""
        return cls([shared * (1.0 - shared) ** gap for gap in range(gaps)], np.full(1, shared))

    def drawn(self, count: int) -> FloatArray:
        """Return the chances of `count` rows of a batch, in an order that says nothing."""
        at = (np.arange(count) + 0.5) / count * len(self.chances)
        return self.chances[at.astype(np.int64)][np.random.default_rng(SEED).permutation(count)]


def accesses(pipeline: Pipeline) -> Iterator[Access]:
    """Yield what the stages of `pipeline` read and write."""
    return (one for stage in pipeline.stages for one in (*stage.reads, *stage.writes))


def longest_gap(pipeline: Pipeline) -> int:
    """Return how many batches back an update can lie that a stage of `pipeline` may treat unlike older ones.

    That is as far as a stage works ahead, as seldom as one runs, as far as a selector looks, or as late as
    one touches what it selects; and one batch more on either side.
    """
    reach = [number for stage in pipeline.stages for number in (stage.ahead, stage.every)]
    reach += [number for one in accesses(pipeline) for number in (one.within, one.late)]
    return max(reach, default=0) + 2


@dataclass(frozen=True)
class KeyClass:
    """A class of keys that some stage treats apart; `name` is a word before "keys", with a blank, or ""."""

    name: str
    single: bool
    hot: bool
    own: bool


def classes(pipeline: Pipeline, gap: int) -> list[KeyClass]:
    """Return the classes of keys used `gap` batches apart.

    Keys that were looked up once are those with a gap that a selector of such keys looks beyond.
    """
    kinds = {one.keys for one in accesses(pipeline)}
    single_from = min(
        (one.within + 1 for one in accesses(pipeline) if one.keys in TELL_SINGLE), default=gap + 1
    )
    return [
        KeyClass(
            f"{'single-use ' if single else ''}{popular}{mine}", single, popular == "hot ", mine == "own "
        )
        for single in ((False, True) if gap >= single_from else (False,))
        for popular in (("cold ", "hot ") if kinds.intersection(TELL_HOT) else ("",))
        for mine in (("", "own ") if kinds.intersection(TELL_OWN) else ("",))
    ]


def keys_of(first: int, uses: IntArray, kinds: Sequence[KeyClass], update: IntArray) -> Keys:
    """Return keys with `uses` and `update` as in `Keys`, and a class each."""
    single, hot, own = (
        np.array([getattr(one, mark) for one in kinds], dtype=np.bool_) for mark in ("single", "hot", "own")
    )
    return Keys(first, uses.astype(np.bool_), single, hot, own, update)


def used_twice(twice: Sequence[tuple[int, int, KeyClass]]) -> Keys:
    """Return a key for each (batch, gap, class): used by `batch` and `gap` batches before, by no other."""
    first = min(batch - gap for batch, gap, _ in twice)
    last = max(batch for batch, _, _ in twice)
    uses = np.zeros((last - first + 2, len(twice)), dtype=np.int64)
    update = np.zeros_like(uses)
    for key, (batch, gap, _) in enumerate(twice):
        uses[[batch - gap - first, batch - first], key] = 1
        update[batch - first, key] = 1
    return keys_of(first, uses, [kind for _, _, kind in twice], update)


def always_used(first: int, last: int, kinds: Sequence[KeyClass]) -> Keys:
    """Return a key of each class that the batches `first` to `last`, and the one after, use."""
    uses = np.ones((last - first + 2, len(kinds)), dtype=np.int64)
    return keys_of(first, uses, kinds, np.cumsum(uses, axis=0) - 1)


def drawn_keys(batches: range, reuse: Reuse, focal: Sequence[int], kinds: Sequence[KeyClass]) -> Keys:
    """Return keys that `batches` use by chance, as they use rows, and one of `focal` each of them surely.

    Key i is used by `focal[i mod len(focal)]`. What is counted about it, or as a share of all its uses, is
    what the rows of a batch have on average. As many of them as in a batch are looked up once.
    """
    count = max(64, min(DRAWN, CELLS // len(batches)))
    chance = np.random.default_rng(SEED + 1).random((len(batches), count))
    uses = (chance < reuse.drawn(count)).astype(np.int64)
    key = np.arange(count)
    uses[np.asarray(focal)[key % len(focal)] - batches.start, key] = 1
    update = np.tile(np.arange(len(batches))[:, None], (1, count))
    chosen = [kinds[i % len(kinds)] for i in range(count)]
    looked_up_once = np.random.default_rng(SEED + 2).random(count) < _once(reuse.drawn(count))
    return keys_of(
        batches.start,
        uses,
        [replace(k, single=bool(o)) for k, o in zip(chosen, looked_up_once, strict=True)],
        update,
    )


def _once(chance: FloatArray) -> FloatArray:
    """Return the chance that a row which a batch uses is looked up just once in it, for lookups at random.

    Lookups of a row are Poisson: with a mean of m, a batch uses it with the `chance` 1 - exp(-m).
    """
    mean = -np.log1p(-np.minimum(chance, 1.0 - 1e-12))
    once: FloatArray = np.where(chance > 0.0, mean * np.exp(-mean) / np.maximum(chance, 1e-300), 1.0)
    return once
