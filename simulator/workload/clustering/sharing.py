"""How many of a batch's lookups are independent of each other, in whole batches and in micro-batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from simulator.errors import InputError
from simulator.quantities import IntArray
from simulator.workload.clustering.grouping import cluster
from simulator.workload.clustering.histories import Histories, SharedHistories
from simulator.workload.clustering.samples import SampleKeys
from simulator.workload.keys.popularity import Independent

MOST_SAMPLES = 8192  # in a batch that is clustered: beyond, clustering takes seconds of host time a batch
MOST_LOOKUPS = 1 << 20  # drawn per batch; more are thinned out evenly
BATCHES = 2  # clustered and averaged: their growth differs by about 0.1 %
MOST_ROWS = 2**62


class Sharing(Protocol):
    """What samples of one table have in common beyond the popularity of keys."""

    def fresh(self, samples: float) -> float:
        """Return the share of the lookups of `samples` samples of a source that are independent draws."""


@dataclass(frozen=True)
class Unshared:
    """Every lookup is drawn on its own."""

    def fresh(self, samples: float) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class InOrder:
    """Samples share histories and stand in the batch as they come, groups scattered over it.

    Less than a `batch` of samples is a micro-batch, cut at random as far as groups are concerned;
    several batches have histories of their own.
    """

    histories: Histories
    batch: int

    def fresh(self, samples: float) -> float:
        """Return the closed form; see `Histories.draws`."""
        kept = min(1.0, samples / self.batch)
        return self.histories.draws(self.batch, kept) / (self.batch * kept) if kept else 1.0


@dataclass(frozen=True)
class Regrouped:
    """Samples share histories and are clustered by their keys before a batch is split.

    The keys of a few batches are drawn for tables of `laws` (popularity, lookups per sample), and
    `cluster` is run on them; what counts is which samples of a group it has brought together. Keys that
    are hot for everybody repeat as popularity has it, whatever they happened to save.
    """

    histories: Histories
    batch: int
    laws: tuple[tuple[Independent, float], ...]
    seed: int = 0

    def fresh(self, samples: float) -> float:
        """Return what micro-batches of so many samples ask for, over that of the batch.

        Raises InputError when they do not divide the batch, or it is too large to be clustered.
        """
        whole = InOrder(self.histories, self.batch).fresh(self.batch)
        if samples >= self.batch:
            return whole
        parts = round(self.batch / samples)
        return whole * _growth(self.histories, self.laws, self.batch, parts, self.seed)


def checked_batch(batch: int) -> int:
    """Return `batch` unchanged. Raises InputError when it is too large to be clustered."""
    if batch > MOST_SAMPLES:
        raise InputError(
            f"batches of more than {MOST_SAMPLES:,} samples are not clustered, and {batch:,} are"
        )
    return batch


@lru_cache(maxsize=64)
def _growth(
    histories: Histories, laws: tuple[tuple[Independent, float], ...], batch: int, parts: int, seed: int
) -> float:
    """Return the draws in all clustered micro-batches over those in whole batches."""
    split = whole = 0.0
    checked_batch(batch)
    for number in range(BATCHES):
        group_of = histories.groups(batch, seed, number)
        part_of = cluster(_drawn(histories, laws, group_of, (seed, number)), parts)
        split += histories.draws_of(group_of, part_of)
        whole += histories.draws_of(group_of, np.zeros_like(part_of))
    return split / whole


def _drawn(
    histories: Histories, laws: Sequence[tuple[Independent, float]], group_of: IntArray, key: tuple[int, int]
) -> SampleKeys:
    """Return the keys of a batch, those of each table in a range of their own."""
    columns, first = [], 0
    for table, ((popularity, _), lookups) in enumerate(zip(laws, _thinned(laws, len(group_of)), strict=True)):
        if lookups:
            model = SharedHistories(popularity, histories.group, histories.share)
            columns.append(first + model.matrix(group_of, lookups, *key, table))
        first += int(popularity.classes.cumulative[0][-1]) + 1
        if first > MOST_ROWS:
            raise InputError(f"tables that are clustered may have {MOST_ROWS:.3g} rows in all, and not more")
    return SampleKeys.from_matrix(np.concatenate(columns, axis=1))


def _thinned(laws: Sequence[tuple[Independent, float]], batch: int) -> list[int]:
    """Return whole lookups per sample of each table: about as many as there are, or what may be drawn."""
    ends = np.cumsum([pooling for _, pooling in laws])
    wanted = max(1.0, min(round(float(ends[-1])), MOST_LOOKUPS // batch))
    counts: list[int] = np.diff(np.rint(ends * (wanted / ends[-1])), prepend=0.0).astype(int).tolist()
    return counts
