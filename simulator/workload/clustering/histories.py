"""A batch in which some samples share a history: the correlation that clustering lives on."""

import math
from dataclasses import dataclass

import numpy as np

from simulator.errors import InputError
from simulator.quantities import FloatArray, IntArray
from simulator.workload.clustering.samples import SampleKeys
from simulator.workload.draws import uniforms
from simulator.workload.keys.popularity import Independent


@dataclass(frozen=True)
class Histories:
    """Samples come in groups (one user's impressions, one interest) that share part of their keys.

    A group has a geometric number of samples, `group` on average, lying anywhere in the batch. It has
    one history of keys; a sample keeps each of its keys with chance `share` and draws a fresh one
    otherwise. `group` 1 is the model of independent lookups. Raises InputError for a mean group below
    1 or a share outside 0 to 1.
    """

    group: float = 1.0
    share: float = 0.9

    def __post_init__(self) -> None:
        """Refuse impossible groups and shares."""
        if not (math.isfinite(self.group) and self.group >= 1 and 0 <= self.share <= 1):
            raise InputError(
                f"a mean group must be at least 1 and a share lie in 0 to 1, not {self.group}, {self.share}"
            )

    def draws(self, batch: float, kept: float = 1.0) -> float:
        """Return the independent draws, per lookup of a sample, in a random `kept` part of a batch.

        Our derivation: a group of G samples of which each holds a given key of its history with chance
        s = share x kept contributes it once with chance 1 - (1 - s)^G; averaged over geometric G that is
        s / (s + (1 - s) / group). Fresh keys are added one by one. So many draws meet by popularity alone.
        """
        held = self.share * kept
        bases = batch / self.group * held / (held + (1.0 - held) / self.group) if held else 0.0
        return bases + batch * kept * (1.0 - self.share)

    def draws_of(self, group_of: IntArray, part_of: IntArray) -> float:
        """Return the draws, per lookup, of all parts together when samples are split as `part_of` says.

        A history that g samples of a part share adds 1 - (1 - share)^g draws to it. Both arrays have
        shape (samples,).
        """
        places = group_of * (int(part_of.max()) + 1) + part_of
        together = np.unique(places, return_counts=True)[1]
        bases = float(np.sum(1.0 - (1.0 - self.share) ** together))
        return bases + len(group_of) * (1.0 - self.share)

    def groups(self, batch: int, seed: int, number: int = 0) -> IntArray:
        """Return the group of each sample of batch `number`, from 0: geometric sizes, in random order."""
        draws = _draws(seed, "group", number, (batch,))
        leave = math.log1p(-1.0 / self.group) if self.group > 1 else -math.inf
        sizes = np.clip(np.ceil(np.log(draws) / min(leave, -1e-300)), 1, batch)
        groups = np.searchsorted(np.cumsum(sizes), np.arange(batch), side="right")
        shuffled: IntArray = groups[np.argsort(_draws(seed, "place in batch", number, (batch,)))]
        return shuffled


@dataclass(frozen=True)
class SharedHistories:
    """Samples with histories whose keys are drawn from `popularity`; see `Histories` for the others.

    A single lookup is as likely to ask for a hot key as without groups.
    """

    popularity: Independent
    group: float = 1.0
    share: float = 0.9

    def __post_init__(self) -> None:
        """Refuse impossible groups and shares."""
        Histories(self.group, self.share)

    @property
    def histories(self) -> Histories:
        """The groups and what their samples share."""
        return Histories(self.group, self.share)

    def distinct(self, batch: int, lookups: float, kept: float = 1.0) -> float:
        """Return the expected distinct keys of a random `kept` part of the batch's samples.

        `lookups` are keys per sample; see `draws`.
        """
        return self.popularity.distinct(lookups * self.histories.draws(batch, kept))

    def random_growth(self, batch: int, lookups: float, parts: int) -> float:
        """Return the rows of `parts` micro-batches cut at random, over those of the whole batch."""
        split = parts * self.distinct(batch, lookups, kept=1.0 / parts)
        return split / self.distinct(batch, lookups)

    def clustered_growth(self, batch: int, lookups: float, parts: int) -> float:
        """Return the same when every group lies within one micro-batch: what is left is popularity.

        A floor for any clustering by groups: keys that are hot for everybody are in every
        micro-batch however samples are arranged.
        """
        whole = self.distinct(batch, lookups)
        part = self.distinct(batch, lookups / parts)
        return parts * part / whole

    def sample(self, batch: int, lookups: int, seed: int, number: int = 0) -> SampleKeys:
        """Return the keys of batch `number`: `lookups` keys for each of `batch` samples.

        Draws are keyed by (seed, number), independent of what was drawn before.
        """
        groups = self.histories.groups(batch, seed, number)
        return SampleKeys.from_matrix(self.matrix(groups, lookups, seed, number))

    def matrix(self, group_of: IntArray, lookups: int, seed: int, number: int, table: int = 0) -> IntArray:
        """Return the keys of samples in the given groups, shape (samples, lookups); tables draw apart."""
        batch, label = len(group_of), f" of table {table}" if table else ""
        histories = (int(group_of.max()) + 1, lookups)
        history = self._keys(_draws(seed, "history" + label, number, histories))
        fresh = self._keys(_draws(seed, "fresh key" + label, number, (batch, lookups)))
        keeps = _draws(seed, "kept key" + label, number, (batch, lookups)) < self.share
        return np.where(keeps, history[group_of], fresh)

    def _keys(self, draws: FloatArray) -> IntArray:
        """Return keys, numbered from 0 by popularity: the inverse of the cumulative share."""
        rows, shares = self.popularity.classes.cumulative
        keys: IntArray = np.interp(draws, shares, rows).astype(np.int64)
        return keys


def _draws(seed: int, label: str, number: int, shape: tuple[int, ...]) -> FloatArray:
    count = np.arange(math.prod(shape), dtype=np.int64)
    return uniforms(seed, label, number, count).reshape(shape)
