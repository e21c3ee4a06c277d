"""Power laws that, sampled as often as a log has lookups, show the log's skew.

A short log's hottest keys are partly luck, and most of a large table never shows up in it. So the
law is not read off the observed counts: what a sample of the law is expected to show is compared
with what the log shows.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError
from simulator.quantities import FloatArray, IntArray
from simulator.workload.keys.frequencies import SHIFTS, STEEPEST
from simulator.workload.keys.layered import Layered
from simulator.workload.keys.zipf import BoundedZipf, ZipfMandelbrot
from simulator.workload.traces.sampling import PowerLaw, sampler_of
from simulator.workload.traces.streams import stream

HEAD, CLASSES, LEVELS = 32, 32, 40
HOTTEST, DEVIATIONS = 10, np.array([-2.5, -1.2, 0.0, 1.2, 2.5])
TABLE_SIZES = (1.0, 1.2, 1.6, 3.0, 10.0, 100.0, 3000.0)  # rows over distinct keys
CLOSE = 0.01
HALF, MINOR = 0.5, 0.2


@dataclass(frozen=True)
class SkewFit:
    """The fitted law, and the largest gap between an expected share and the log's."""

    law: ZipfMandelbrot | Layered
    gap: float


@dataclass(frozen=True)
class _Observed:
    """What a log showed: lookups, distinct keys, and the share of lookups of hot shares of keys."""

    lookups: int
    distinct: int
    shares: tuple[tuple[float, float], ...]

    @property
    def targets(self) -> FloatArray:
        return np.array([share for _, share in self.shares])

    @property
    def hot(self) -> FloatArray:
        """Return how many whole keys each share of keys is."""
        return np.array([math.ceil(round(fraction * self.distinct, 9)) for fraction, _ in self.shares])

    @property
    def hottest(self) -> int:
        """Return the keys of the largest share that counts fully."""
        return int(self.hot[~self.minor].max(initial=1))

    @property
    def minor(self) -> NDArray[np.bool_]:
        """Return which shares count less: those of half the keys and more."""
        return np.array([fraction >= HALF for fraction, _ in self.shares])


def fit_skew(lookups: int, distinct: int, shares: dict[float, float]) -> SkewFit:
    """Return the law whose samples of `lookups` lookups show `distinct` keys and the `shares`.

    `shares[f]` is the share of lookups on the hottest f of the distinct keys (rounded up to whole
    keys). A Zipf-Mandelbrot law (rows, exponent, shift) is fitted by least squares, over a ladder of
    table sizes; where none comes within 1 point, two layers of Zipf laws. Raises
    InputError for impossible counts, or without shares.
    """
    if not 1 <= distinct <= lookups or not shares:
        raise InputError("a skew needs lookups, distinct keys no more than those, and shares")
    observed = _Observed(lookups, distinct, tuple(sorted(shares.items())))
    sizes = [max(round(size * distinct), 1) for size in TABLE_SIZES]
    single = _best(observed, [_Single(rows) for rows in sizes])
    if single.gap <= CLOSE:
        return single
    layered = _best(observed, [_Double(observed.hottest, rows) for rows in sizes])
    return min(single, layered, key=lambda fit: fit.gap)


def _best(observed: _Observed, families: Iterable["_Family"]) -> SkewFit:
    """Return the best fit of all families and starting points; the first close one is good enough."""
    best: SkewFit | None = None
    for family, start in ((laws, start) for laws in families for start in laws.starts):
        fit = _fit(observed, family, start)
        best = fit if best is None or fit.gap < best.gap else best
        if best.gap <= CLOSE:
            break
    assert best is not None
    return best


def _fit(observed: _Observed, family: "_Family", start: tuple[float, ...]) -> SkewFit:
    from scipy.optimize import least_squares

    def gaps(point: FloatArray) -> FloatArray:
        return _gaps(observed, *family.classes(point))

    bounds = list(zip(*family.bounds, strict=True))
    found = least_squares(gaps, start, bounds=bounds, diff_step=1e-4, ftol=1e-3, max_nfev=25)
    return SkewFit(family.law(found.x), float(np.max(np.abs(found.fun))))


def _gaps(observed: _Observed, keys: FloatArray, chances: FloatArray) -> FloatArray:
    """Return expected minus observed: each share, and the distinct keys over those observed."""
    distinct = float(keys @ -np.expm1(observed.lookups * np.log1p(-np.minimum(chances, 1 - 1e-12))))
    shares = _expected_shares(keys, chances, observed.lookups, observed.hot)
    weights = np.where(observed.minor, MINOR, 1.0)
    return np.append(weights * (shares - observed.targets), MINOR * (distinct / observed.distinct - 1.0))


class _Family(Protocol):
    """Laws with some free numbers."""

    starts: ClassVar[tuple[tuple[float, ...], ...]]
    bounds: ClassVar[tuple[tuple[float, float], ...]]

    def law(self, point: FloatArray) -> ZipfMandelbrot | Layered: ...

    def classes(self, point: FloatArray) -> tuple[FloatArray, FloatArray]: ...


class _Single:
    """Zipf-Mandelbrot laws over `rows` rows: exponent, log(1 + shift)."""

    starts: ClassVar[tuple[tuple[float, ...], ...]] = ((1.0, 0.1), (0.7, -2.0), (2.0, 2.0))
    bounds: ClassVar[tuple[tuple[float, float], ...]] = ((0.0, STEEPEST), SHIFTS)

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def law(self, point: FloatArray) -> ZipfMandelbrot:
        return ZipfMandelbrot(self.rows, float(point[0]), math.expm1(float(point[1])))

    def classes(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _coarse_law(self.rows, float(point[0]), math.expm1(float(point[1])))


class _Double:
    """Zipf laws over `hot` hot and `rows` other rows: the hot share, and both exponents."""

    starts: ClassVar[tuple[tuple[float, ...], ...]] = ((0.5, 1.0, 0.5), (0.85, 0.5, 0.2))
    bounds: ClassVar[tuple[tuple[float, float], ...]] = ((0.001, 0.999), (0.0, STEEPEST), (0.0, STEEPEST))

    def __init__(self, hot: int, rows: int) -> None:
        self.hot, self.rows = hot, rows

    def law(self, point: FloatArray) -> Layered:
        share, steep, flat = map(float, point)
        return Layered(share, BoundedZipf(self.hot, steep), BoundedZipf(self.rows, flat))

    def classes(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        hot_keys, hot = _coarse_law(self.hot, float(point[1]), 0.0)
        cold_keys, cold = _coarse_law(self.rows, float(point[2]), 0.0)
        return np.append(hot_keys, cold_keys), np.append(point[0] * hot, (1.0 - point[0]) * cold)


def _coarse_law(rows: int, exponent: float, shift: float) -> tuple[FloatArray, FloatArray]:
    """Return (keys, chance of each) by class: the hottest one by one, the rest in about 64 classes."""
    ends = np.arange(1.0, min(rows, HEAD) + 1)
    if rows > HEAD:
        ends = np.append(ends, np.unique(np.rint(np.geomspace(HEAD + 1, rows, CLASSES))))
    starts = np.append(1.0, ends[:-1] + 1)
    middle = np.sqrt((starts + shift) * (ends + shift))
    weights = np.exp(-exponent * np.log(middle / (1.0 + shift)))
    keys = ends - starts + 1
    return keys, weights / (keys @ weights)


def _expected_shares(keys: FloatArray, chances: FloatArray, lookups: int, hot: FloatArray) -> FloatArray:
    """Return the expected share of lookups on the `hot` most looked-up keys of a sample.

    The counts of the T largest sum to sum over k of min(T, keys with at least k lookups); the
    expectation of the minimum is taken as the minimum of the expectation.
    """
    from scipy.special import betainc

    levels = _levels(chances, lookups)
    at_least = betainc(levels[:, None], lookups - levels[:, None] + 1.0, chances) @ keys
    top = np.minimum(hot[:, None], at_least)
    span = np.diff(levels)
    between = (top[:, :-1] + top[:, 1:]) / 2.0 * span + (top[:, 1:] - top[:, :-1]) / 2.0
    return np.asarray((top[:, 0] + between.sum(axis=1)) / lookups)


def _levels(chances: FloatArray, lookups: int) -> FloatArray:
    """Return the counts at which keys are counted: few, and dense where the hottest keys' counts lie."""
    if lookups <= LEVELS:
        return np.arange(1.0, lookups + 1)
    centre = lookups * chances[:HOTTEST, None]
    near = (centre + DEVIATIONS * np.sqrt(centre * (1.0 - chances[:HOTTEST, None]))).ravel()
    levels = np.append(near, np.geomspace(1, lookups, LEVELS))
    return np.asarray(np.unique(np.clip(np.rint(levels), 1, lookups)))


def sampled_shares(
    law: PowerLaw | Layered, lookups: int, hot: Sequence[int], repeats: int = 32
) -> tuple[float, FloatArray]:
    """Return mean distinct keys, and mean shares of the `hot` most looked-up keys, of sampled traces.

    `repeats` traces of `lookups` lookups each are drawn.
    """
    sampler = sampler_of(law)
    draws = (stream(0, "skew", 0, repeat) for repeat in range(repeats))
    counts = [np.unique(sampler.draw(draw, lookups), return_counts=True)[1] for draw in draws]
    shares = [_hot_shares(np.sort(one)[::-1], hot) for one in counts]
    return float(np.mean([len(one) for one in counts])), np.asarray(np.mean(shares, axis=0))


def _hot_shares(counts: IntArray, hot: Sequence[int]) -> FloatArray:
    running = np.append(0, np.cumsum(counts))
    return np.asarray(running[np.minimum(hot, len(counts))] / running[-1])
