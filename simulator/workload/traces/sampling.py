"""Sampling the ranks of a bounded power law, in blocks of numbers that fit a processor's cache."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError
from simulator.quantities import FloatArray, IntArray
from simulator.workload.keys.layered import Layered
from simulator.workload.keys.zipf import BoundedZipf, Uniform, ZipfMandelbrot, zipf_classes

BLOCK = 1 << 15
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
LEAST = -1.0 + 1e-15
HALF, MOST_SCATTERED = 1 << 20, 1 << 40

PowerLaw = BoundedZipf | ZipfMandelbrot | Uniform


class Sampler(Protocol):
    """Draws the popularity ranks of a table's lookups, 1..rows."""

    @property
    def rows(self) -> int:
        """Return the rows of the table."""

    def draw(self, generator: np.random.Generator, count: int) -> IntArray:
        """Return `count` independent ranks, shape (count,)."""

    def at(self, uniform: FloatArray) -> IntArray:
        """Return the rank at each quantile: the hottest at 0, the coldest at 1."""


def sampler_of(law: PowerLaw | Layered) -> Sampler:
    """Return the sampler of a popularity."""
    if isinstance(law, Layered):
        return LayeredSampler(law.share, _single(law.hot), _single(law.cold))
    return _single(law)


def _single(law: PowerLaw) -> "PowerLawSampler":
    exponent = 0.0 if isinstance(law, Uniform) else law.exponent
    shift = law.shift if isinstance(law, ZipfMandelbrot) else 0.0
    return PowerLawSampler(int(law.rows), float(exponent), float(shift))


@dataclass(frozen=True)
class PowerLawSampler:
    """Draws ranks 1..rows with odds (rank + shift)^-exponent.

    Rejection-inversion (Hörmann and Derflinger 1996): the continuous power law is inverted exactly
    and rounded; a draw is refused where the law's area around a rank exceeds that rank's weight.
    Weights are relative to the hottest rank's, and logarithms of 1 + x keep exponents near 1 exact.
    """

    rows: int
    exponent: float
    shift: float = 0.0

    def draw(self, generator: np.random.Generator, count: int) -> IntArray:
        """Return `count` independent ranks, shape (count,)."""
        ranks = np.empty(count, dtype=np.int64)
        filled = 0
        while filled < count:
            wanted = min(count - filled, BLOCK)
            block = self._accepted(generator.random(wanted))
            ranks[filled : filled + len(block)] = block
            filled += len(block)
        return ranks

    def _accepted(self, uniform: FloatArray) -> FloatArray:
        """Return the ranks of the draws that are kept, in order."""
        low, high, sure = self._limits
        area = low + uniform * (high - low)
        place = self._place(area)
        rank = np.rint(place)
        np.clip(rank, 1, self.rows, out=rank)
        doubtful = np.flatnonzero(rank - place > sure)
        if not len(doubtful):
            return rank
        keep = np.ones(len(rank), dtype=bool)
        edge = rank[doubtful]
        keep[doubtful] = area[doubtful] >= self._area(edge + 0.5) - self._weight(edge)
        return rank[keep]

    @cached_property
    def _limits(self) -> tuple[float, float, float]:
        """Return the ends of the area, and how far above a place its rank is surely kept."""
        low = float(self._area(np.array(1.5))) - 1.0
        high = float(self._area(np.array(self.rows + 0.5)))
        second = self._area(np.array(2.5)) - self._weight(np.array(2.0))
        return low, high, 2.0 - float(self._place(np.asarray(second)))

    def _weight(self, rank: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-self.exponent * np.log((rank + self.shift) / (1.0 + self.shift))))

    def _area(self, place: FloatArray) -> FloatArray:
        """Return the integral of the weight from rank 1 to `place`."""
        unit, slope = 1.0 + self.shift, 1.0 - self.exponent
        distance = np.log((place + self.shift) / unit)
        return np.asarray(unit * (np.expm1(slope * distance) / slope if slope else distance))

    def _place(self, area: FloatArray) -> FloatArray:
        """Return the place up to which the integral is `area`; areas below all places give the least."""
        unit, slope = 1.0 + self.shift, 1.0 - self.exponent
        distance = area / unit
        if slope:
            distance *= slope
            distance = np.maximum(distance, LEAST)
            distance = np.log1p(distance) if abs(slope) < 1e-3 else np.log(distance + 1.0)
            distance /= slope
        return np.asarray(np.exp(distance) * unit - self.shift)

    def at(self, uniform: FloatArray) -> IntArray:
        """Return the rank at each quantile: the hottest at 0, the coldest at 1.

        Head ranks come from their exact shares, colder ones from the continuous law behind them.
        """
        classes = zipf_classes(self.rows, self.exponent, self.shift)
        head = int(np.count_nonzero(classes.keys == 1))
        shares = np.cumsum(classes.probability[:head])
        ranks = 1 + np.searchsorted(shares, uniform, side="right")
        behind = np.flatnonzero(ranks > head)
        if len(behind):
            low, high = self._area(np.array([head + 0.5, self.rows + 0.5]))
            part = (uniform[behind] - shares[-1]) / max(1.0 - float(shares[-1]), math.ulp(1.0))
            ranks[behind] = np.rint(self._place(low + np.clip(part, 0.0, 1.0) * (high - low)))
        return np.asarray(np.clip(ranks, 1, self.rows), dtype=np.int64)


@dataclass(frozen=True)
class LayeredSampler:
    """Draws from one of two power laws; ranks of the second come behind those of the first."""

    share: float
    hot: PowerLawSampler
    cold: PowerLawSampler

    @property
    def rows(self) -> int:
        """Return the rows of both laws."""
        return self.hot.rows + self.cold.rows

    def draw(self, generator: np.random.Generator, count: int) -> IntArray:
        """Return `count` independent ranks, shape (count,)."""
        hot = generator.random(count) < self.share
        ranks = np.empty(count, dtype=np.int64)
        ranks[hot] = self.hot.draw(generator, int(np.count_nonzero(hot)))
        ranks[~hot] = self.hot.rows + self.cold.draw(generator, count - int(np.count_nonzero(hot)))
        return ranks

    def at(self, uniform: FloatArray) -> IntArray:
        """Return the rank at each quantile; the hot layer's keys come first."""
        hot = uniform < self.share
        ranks = np.empty(len(uniform), dtype=np.int64)
        ranks[hot] = self.hot.at(uniform[hot] / self.share)
        ranks[~hot] = self.hot.rows + self.cold.at((uniform[~hot] - self.share) / (1.0 - self.share))
        return ranks


def scattered(ranks: NDArray[np.int64], rows: int) -> IntArray:
    """Return a row from 0 for each rank from 1, one-to-one, neighbouring ranks far apart.

    Raises InputError above 2^40 rows, where products would no longer fit 64 bits.
    """
    if rows > MOST_SCATTERED:
        raise InputError(f"a synthetic trace has at most {MOST_SCATTERED} rows per table, not {rows}")
    step = max(round(rows * GOLDEN), 1)
    while math.gcd(step, rows) != 1:
        step += 1
    high, low = divmod(step, HALF)  # the product with a rank is taken in two parts
    return np.asarray(((ranks - 1) * high % rows * HALF + (ranks - 1) * low) % rows, dtype=np.int64)
