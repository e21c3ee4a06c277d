"""Checking the closed forms on a few ranks whose keys are really drawn."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.errors import InfeasibleError, InputError
from simulator.quantities import IntArray
from simulator.workload.keys.layered import Layered
from simulator.workload.keys.popularity import Independent
from simulator.workload.traces.sampling import PowerLaw, sampler_of
from simulator.workload.traces.streams import stream

MOST_ERRORS = 4.0

Source = Callable[[int, int], IntArray]  # (rank, batch) -> the keys looked up


@dataclass(frozen=True)
class SpotCheck:
    """One quantity: the closed form, what sampled ranks gave, and the standard error of the latter."""

    quantity: str
    expected: float
    sampled: float
    standard_error: float

    @property
    def errors(self) -> float:
        """Return the deviation in standard errors."""
        gap = abs(self.sampled - self.expected)
        return gap / self.standard_error if self.standard_error else (math.inf if gap > 1e-9 else 0.0)

    def __str__(self) -> str:
        """Return the check in one line."""
        sizes = f"{self.sampled:.6g} sampled, {self.expected:.6g} expected"
        return f"{self.quantity}: {sizes}, {self.errors:.1f} standard errors apart"


def compare_ranks(
    popularity: Independent, m: int, ranks: Sequence[int], source: Source
) -> tuple[SpotCheck, ...]:
    """Return the checks of distinct keys, overlap of batches 0 and 1, and union of the ranks.

    `source(rank, batch)` gives the keys that a rank looks up. Raises InputError without ranks.
    """
    if not ranks:
        raise InputError("a spot check needs at least one rank")
    count = len(ranks)
    first, second = ([np.unique(source(rank, batch)) for rank in ranks] for batch in (0, 1))
    common = [len(np.intersect1d(a, b, assume_unique=True)) for a, b in zip(first, second, strict=True)]
    sizes = [len(keys) for keys in (*first, *second)]
    union = len(np.unique(np.concatenate(first)))
    return (
        SpotCheck(
            "distinct", popularity.distinct(m), _mean(sizes), popularity.distinct_sd(m) / math.sqrt(2 * count)
        ),
        SpotCheck(
            "overlap", popularity.overlap(m), _mean(common), _overlap_sd(popularity, m) / math.sqrt(count)
        ),
        SpotCheck("union", popularity.union(m, count), float(union), popularity.distinct_sd(m * count)),
    )


def _mean(numbers: list[int]) -> float:
    return sum(numbers) / len(numbers)


def _overlap_sd(popularity: Independent, m: float) -> float:
    """Return the spread of the common keys of two batches, keys taken as independent (our derivation)."""
    common = popularity.classes.present(m) ** 2
    return math.sqrt(popularity.classes.total(common * (1.0 - common)))


def spot_check(
    popularity: PowerLaw | Layered, m: int, ranks: Sequence[int] = (0, 1, 2, 3), source: Source | None = None
) -> tuple[SpotCheck, ...]:
    """Return the checks of sampled `ranks` with `m` lookups each.

    Keys come from `source`, by default drawn by the popularity with seed 0. Raises InfeasibleError
    when a sample is more than 4 standard errors away from its closed form.
    """
    sampler = sampler_of(popularity)
    drawn = source or (lambda rank, batch: sampler.draw(stream(0, "spot check", rank, batch), m))
    checks = compare_ranks(popularity, m, ranks, drawn)
    worst = max(checks, key=lambda check: check.errors)
    if worst.errors > MOST_ERRORS:
        raise InfeasibleError(f"the closed form does not describe these keys: {worst}")
    return checks
