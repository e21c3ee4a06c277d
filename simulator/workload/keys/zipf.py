"""Keys whose popularity falls as a power of their rank, over any number of rows."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from simulator.errors import InputError
from simulator.quantities import FloatArray
from simulator.workload.keys.popularity import Independent, KeyClasses

HEAD_RANKS = 1024  # ranks kept one by one
BUCKETS_PER_E_FOLD = 48  # colder ranks per factor e; together 2e-5 or better (tested)
MAX_ROWS = 1e15  # beyond it float ranks are no longer whole
MAX_SHIFT = 1e12


@lru_cache(maxsize=256)
def rank_buckets(rows: int) -> tuple[FloatArray, FloatArray]:
    """Return the first and last rank, from 1, of each class of `rows` ranks; shape (classes,)."""
    head = np.arange(1, min(rows, HEAD_RANKS) + 1, dtype=np.float64)
    if rows <= HEAD_RANKS:
        return head, head
    count = math.ceil(BUCKETS_PER_E_FOLD * math.log(rows / HEAD_RANKS)) + 1
    ends = np.rint(np.exp(np.linspace(math.log(HEAD_RANKS), math.log(rows), count)))
    ends[0], ends[-1] = HEAD_RANKS, rows
    ends = ends[np.diff(ends, prepend=0.0) > 0]
    return np.concatenate([head, ends[:-1] + 1]), np.concatenate([head, ends[1:]])


def _power_sums(first: FloatArray, last: FloatArray, exponent: float, shift: float) -> FloatArray:
    """Return the sum of ((i + shift) / (1 + shift))^-exponent over i = first..last.

    It is the integral between half ranks: the midpoint rule errs by exponent (exponent + 1) /
    (24 i^2), below 1e-6 past the head. Written with expm1 so that it is smooth in the exponent
    through 1, where it becomes log(last / first); relative to the hottest key, so that steep laws
    underflow and nothing overflows.
    """
    unit = 1.0 + shift
    low = np.log((first - 0.5 + shift) / unit)
    span = np.log((last + 0.5 + shift) / unit) - low
    slope = (1.0 - exponent) * span
    steep = np.abs(slope) > 1e-12
    growth = np.where(steep, np.expm1(slope) / np.where(steep, slope, 1.0), 1.0 + slope / 2)
    return np.asarray(unit * np.exp((1.0 - exponent) * low) * span * growth)


def zipf_weights(rows: int, exponent: float, shift: float = 0.0) -> FloatArray:
    """Return the mean probability of a key in each class of `rank_buckets(rows)`.

    Weights are (rank + shift)^-exponent (Mandelbrot 1953; shift 0 is Zipf's law).
    """
    first, last = rank_buckets(rows)
    head = min(rows, HEAD_RANKS)
    weights, keys = np.empty_like(first), last - first + 1
    weights[:head] = ((first[:head] + shift) / (1.0 + shift)) ** -exponent
    weights[head:] = _power_sums(first[head:], last[head:], exponent, shift) / keys[head:]
    weights /= weights @ keys
    return weights


@lru_cache(maxsize=1024)
def zipf_classes(rows: int, exponent: float, shift: float = 0.0) -> KeyClasses:
    """Return the classes of a bounded power law; kept, since models repeat their tables."""
    first, last = rank_buckets(rows)
    return KeyClasses(zipf_weights(rows, exponent, shift), last - first + 1)


def checked_rows(rows: float) -> int:
    """Return `rows` as a whole number; raise InputError unless it is one from 1 to 1e15."""
    if not (1 <= rows <= MAX_ROWS and rows == int(rows)):
        raise InputError(f"rows must be a whole number from 1 to {MAX_ROWS:g}, not {rows}")
    return int(rows)


@dataclass(frozen=True)
class BoundedZipf(Independent):
    """Keys of ranks 1..rows with probability proportional to rank^-exponent.

    `exponent` 0 is uniform, and any larger value is allowed, 1 included. The hottest 1,024 ranks
    are exact, colder ones are summed in logarithmic buckets. Raises InputError for rows that
    are not a whole number from 1 to 1e15, or an exponent that is negative or not finite.
    """

    rows: float
    exponent: float

    def __post_init__(self) -> None:
        """Refuse impossible rows and exponents."""
        checked_rows(self.rows)
        if not (math.isfinite(self.exponent) and self.exponent >= 0):
            raise InputError(f"a Zipf exponent must be zero or positive, not {self.exponent}")

    @property
    def classes(self) -> KeyClasses:
        """Return the exact head and the buckets behind it."""
        return zipf_classes(int(self.rows), float(self.exponent))


@dataclass(frozen=True)
class ZipfMandelbrot(Independent):
    """Keys of ranks 1..rows with probability proportional to (rank + shift)^-exponent.

    A positive `shift` flattens the head, one between -1 and 0 sharpens it; 0 is Zipf's law. Raises
    InputError for what `BoundedZipf` refuses, and for a shift of -1 or less, or above 1e12.
    """

    rows: float
    exponent: float
    shift: float = 0.0

    def __post_init__(self) -> None:
        """Refuse impossible rows, exponents and shifts."""
        BoundedZipf(self.rows, self.exponent)
        if not -1.0 < self.shift <= MAX_SHIFT:
            raise InputError(f"a shift must lie above -1 and not above {MAX_SHIFT:g}, not at {self.shift}")

    @property
    def classes(self) -> KeyClasses:
        """Return the exact head and the buckets behind it."""
        return zipf_classes(int(self.rows), float(self.exponent), float(self.shift))


@dataclass(frozen=True)
class Uniform(Independent):
    """Keys that are all equally likely: a bounded Zipf of exponent 0, in one class."""

    rows: float

    def __post_init__(self) -> None:
        """Refuse impossible rows."""
        checked_rows(self.rows)

    @property
    def classes(self) -> KeyClasses:
        """Return the one class."""
        return KeyClasses(np.array([1.0 / self.rows]), np.array([float(self.rows)]))
