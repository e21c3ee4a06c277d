"""Three lines through one measured collective: its protocols, with intervals from resampled rows.

The time is the least of the lines. Errors count relative to the measured time, so that a message of
4 bytes weighs as much as one of a gigabyte.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from zlib import crc32

import numpy as np

from simulator.calibration.collective_tables import Table
from simulator.costs.curves import AlphaBeta, Segments
from simulator.quantities import FloatArray, IntArray
from simulator.quantities.statistics import COVERAGE as COVERAGE

LINES = 3
RESAMPLES = 40
ROUNDS = 6
FASTEST = 1e15  # bytes/s: a line as flat as this is only a start-up
CUTS = (0.2, 0.4, 0.5, 0.6, 0.8)  # shares of the sizes at which protocols may change, to begin with

Interval = tuple[float, float]


@dataclass(frozen=True)
class FittedLines:
    """The lines, in the order of rising latency, and an interval of `COVERAGE` for each number of each."""

    segments: Segments
    latencies: tuple[Interval, ...]
    bandwidths: tuple[Interval, ...]


def fit_lines(sizes: FloatArray, times: FloatArray, lines: int = LINES) -> Segments:
    """Return at most `lines` lines whose least is nearest to `times` (s) at `sizes` (bytes), shape (rows,).

    Lines are fitted to the points on which they are the least, in turns, from several first guesses;
    fewer lines where there are fewer than two points for each.
    """
    count = max(1, min(lines, len(sizes) // 2))
    starts = _starts(np.asarray(sizes), count)
    fits = [_turns(np.asarray(sizes), np.asarray(times), start, count) for start in starts]
    return _needed(min(fits, key=lambda one: _loss(one, sizes, times)), sizes)


def _needed(segments: Segments, sizes: FloatArray) -> Segments:
    """Leave out lines that are the least at none of `sizes`."""
    used = set(np.argmin([line.seconds(sizes) for line in segments.lines], axis=0).tolist())
    return Segments(tuple(line for index, line in enumerate(segments.lines) if index in used))


def fit_with_intervals(tables: Sequence[Table]) -> FittedLines:
    """Return the lines through all rows of `tables` (one scale), with bootstrap intervals.

    Rows are drawn with replacement, by a generator keyed with the names of the tables.
    """
    sizes = np.array([size for table in tables for size in table.sizes])
    times = np.array([time for table in tables for time in table.times])
    order = np.argsort(sizes, kind="stable")
    sizes, times = sizes[order], times[order]
    best = fit_lines(sizes, times)
    generator = np.random.default_rng(crc32(" ".join(table.name for table in tables).encode()))
    again = [_resampled(best, sizes, times, generator) for _ in range(RESAMPLES)]
    return _spread(best, [one for one in again if len(one.lines) == len(best.lines)])


def _starts(sizes: FloatArray, count: int) -> list[IntArray]:
    ranks = (np.arange(len(sizes)) + 0.5) / len(sizes)
    return [np.searchsorted(np.array(cuts), ranks) for cuts in combinations(CUTS, count - 1)]


def _turns(sizes: FloatArray, times: FloatArray, owner: IntArray, count: int) -> Segments:
    lines = [_line(sizes, times)] * count
    best, least = Segments(tuple(lines)), np.inf
    for _ in range(ROUNDS):
        owned = [owner == index for index in range(count)]
        lines = [
            _line(sizes[mine], times[mine]) if mine.sum() > 1 else line
            for mine, line in zip(owned, lines, strict=True)
        ]
        segments = Segments(tuple(sorted(lines, key=lambda line: (line.latency, line.bandwidth))))
        if (loss := _loss(segments, sizes, times)) < least:
            best, least = segments, loss
        owner = np.argmin([line.seconds(sizes) for line in lines], axis=0)
    return best


def _line(sizes: FloatArray, times: FloatArray) -> AlphaBeta:
    """Least squares of relative errors, with no negative start-up and no time that falls with size.

    Sums are rounded once: a processor with another vector width gives the same line.
    """
    one, size = 1 / times, sizes / times
    weight, mixed, power = fsum(one * one), fsum(one * size), fsum(size * size)
    ones, slopes = fsum(one), fsum(size)
    spread = weight * power - mixed * mixed
    slope = (weight * slopes - mixed * ones) / spread if spread > 0 else 0.0
    start = (ones - mixed * slope) / weight
    if start < 0:
        start, slope = 0.0, slopes / power
    if slope < 1 / FASTEST:
        start, slope = ones / weight, 1 / FASTEST
    return AlphaBeta(float(start), float(1 / slope))


def _loss(segments: Segments, sizes: FloatArray, times: FloatArray) -> float:
    return float(np.abs(np.log(segments.seconds(sizes) / times)).mean())


def _resampled(
    best: Segments, sizes: FloatArray, times: FloatArray, generator: np.random.Generator
) -> Segments:
    """Return the lines through rows drawn again, begun from the best split."""
    drawn = np.sort(generator.integers(len(sizes), size=len(sizes)))
    owner = np.argmin([line.seconds(sizes[drawn]) for line in best.lines], axis=0)
    return _turns(sizes[drawn], times[drawn], owner, len(best.lines))


def _spread(best: Segments, again: Sequence[Segments]) -> FittedLines:
    tails = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]

    def interval(index: int, name: str) -> Interval:
        here = getattr(best.lines[index], name)
        low, high = np.quantile([getattr(one.lines[index], name) for one in again] + [here], tails)
        return min(float(low), here), max(float(high), here)

    which = range(len(best.lines))
    return FittedLines(
        best,
        tuple(interval(index, "latency") for index in which),
        tuple(interval(index, "bandwidth") for index in which),
    )
