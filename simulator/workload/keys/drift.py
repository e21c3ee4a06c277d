"""How much the popularity of keys changes between two stretches of a log."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.workload.keys.room import copied

Counts = NDArray[np.uint32]


def _none() -> Counts:
    return np.zeros(0, dtype=np.uint32)


@dataclass
class DriftCounter:
    """Compares two stretches of equal length: up to half of the latest mark, and from there to the mark.

    Marks (in samples) double, starting at one batch, so the stretches are known whenever the log
    ends, and cover at least half of it. Memory: two counts per key.
    """

    mark: int
    marks: int = 0
    half: Counts = field(default_factory=_none)
    full: Counts = field(default_factory=_none)

    def reach(self, counts: Counts) -> None:
        """Keep the lookups of each key up to the mark, and move the mark on."""
        self.half, self.full = self.full, copied(counts)
        self.marks += 1
        self.mark *= 2

    def drift(self) -> float | None:
        """Return 1 minus Morisita's index of similarity: 0 without drift, 1 when no key stays.

        Morisita (1959), in the form of Horn's review (1966): it compares the odds that two lookups
        of different stretches agree with the odds within a stretch, so chance alone shows no drift.
        None when the log is shorter than two batches, or no key recurs.
        """
        if self.marks < 2:
            return None
        first = np.zeros(len(self.full))
        first[: len(self.half)] = self.half
        second = self.full - first
        within = _agreement(first) + _agreement(second)
        between = float(first @ second) / max(float(first.sum() * second.sum()), 1.0)
        return 1.0 - 2.0 * between / within if within else None


def _agreement(counts: NDArray[np.float64]) -> float:
    """Return the odds that two lookups of the stretch name the same key."""
    lookups = float(counts.sum())
    return float(counts @ (counts - 1.0)) / max(lookups * (lookups - 1.0), 1.0)
