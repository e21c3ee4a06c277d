"""What a fit would have said about measurements that were kept from it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.calibration.collective_lending import lent
from simulator.calibration.collective_systems import system
from simulator.calibration.collective_tables import Table, measured
from simulator.costs.curves import LogLog, SizeCurve
from simulator.errors import InputError
from simulator.quantities import FloatArray, statistics

FEWEST_SIZES = 6  # of a table whose every second size still makes a curve
FEWEST_KNOWN = 2  # sizes that make a curve
FURTHEST = 4  # times the nodes of the largest known scale
Fitter = Callable[[FloatArray, FloatArray], SizeCurve]


@dataclass(frozen=True)
class HeldOut:
    """One table that was partly or wholly unknown to the fit.

    `known_nodes` are those of the largest scale known (of the table itself when other sizes of it
    were). `sizes` (bytes), `measured` and `predicted` (s) have one entry per row held out;
    `predicted` is None, with the reason in `refused`, where the fit says nothing. With a `lender` the
    network is that of another cluster, scaled.
    """

    table: Table
    known_nodes: int
    sizes: tuple[float, ...]
    measured: tuple[float, ...]
    predicted: tuple[float, ...] | None
    refused: str = ""
    lender: str = ""

    @property
    def errors(self) -> FloatArray:
        """Predicted over measured, less 1; shape (rows,), empty when refused."""
        if self.predicted is None:
            return np.empty(0)
        return np.asarray(np.array(self.predicted) / np.array(self.measured) - 1)


def median_and_p90(cases: Iterable[HeldOut]) -> tuple[float, float, int]:
    """Return the median and the 90th percentile of |error| over all rows, and how many rows there are."""
    return statistics.median_and_p90(np.concatenate([np.empty(0), *(case.errors for case in cases)]))


def interpolated(sizes: FloatArray, times: FloatArray) -> SizeCurve:
    """Return the curve that fits use: straight lines between points in log-log axes."""
    return LogLog(tuple(sizes), tuple(times))


def every_second_size(
    tables: Iterable[Table], fitter: Fitter = interpolated, first: int = 0
) -> Iterator[HeldOut]:
    """Yield each table of six sizes or more: those from `first` in steps of two known, the rest held out."""
    for table in tables:
        points = measured([table]).curve
        if not isinstance(points, LogLog) or len(points.sizes) < FEWEST_SIZES:
            continue
        sizes, times = np.array(points.sizes), np.array(points.times)
        known = np.arange(len(sizes)) % 2 == first
        predicted = fitter(sizes[known], times[known]).seconds(sizes[~known])
        hidden = tuple(sizes[~known].tolist()), tuple(times[~known].tolist())
        yield HeldOut(table, table.scale.nodes, *hidden, predicted=tuple(predicted.tolist()))


def larger_scales(tables: Sequence[Table], furthest: float = FURTHEST) -> Iterator[HeldOut]:
    """Yield each table once for each largest known scale of its cluster, up to `furthest` times fewer nodes.

    Known are all tables of the same cluster and operation with at most so many nodes.
    """
    for alike in _together(tables):
        for most in sorted({table.scale.nodes for table in alike}):
            beyond = [table for table in alike if most < table.scale.nodes <= furthest * most]
            known = [table for table in alike if table.scale.nodes <= most]
            known += lent(known, tables, _cards(alike))
            yield from (_predicted(table, known, most) for table in beyond)


def scales_between(tables: Sequence[Table]) -> Iterator[HeldOut]:
    """Yield each table that lies between two other scales of its cluster, all its own scale unknown."""
    for alike in _together(tables):
        nodes = sorted({table.scale.nodes for table in alike if table.scale.nodes > 1})
        for hidden in nodes[1:-1]:
            known = [table for table in alike if table.scale.nodes != hidden]
            yield from (_predicted(one, known, nodes[-1]) for one in alike if one.scale.nodes == hidden)


def from_to(tables: Sequence[Table], most: int, least: int) -> Iterator[HeldOut]:
    """Yield the tables with at least `least` nodes, predicted from those with at most `most`."""
    for alike in _together(tables):
        known = [table for table in alike if table.scale.nodes <= most]
        beyond = [table for table in alike if table.scale.nodes >= least]
        if known:
            largest = max(one.scale.nodes for one in known)
            known += lent(known, tables, _cards(alike))
            yield from (_predicted(table, known, largest) for table in beyond)


def at_scale(table: Table, tables: Sequence[Table], most: int) -> HeldOut:
    """Return `table` as foretold from all `tables` of its cluster and operation with at most `most` nodes."""
    alike = [one for one in tables if (one.cluster, one.operation) == (table.cluster, table.operation)]
    known = [one for one in alike if one.scale.nodes <= most]
    return _predicted(table, (*known, *lent(known, tables, _cards(alike))), most)


def _cards(tables: Iterable[Table]) -> float | None:
    """Return the rate of the cluster's network cards: what it is made of is known before it is tested."""
    return next((table.card_rate for table in tables if table.card_rate), None)


def _together(tables: Iterable[Table]) -> list[list[Table]]:
    together: dict[tuple[str, str], list[Table]] = {}
    for table in tables:
        together.setdefault((table.cluster, table.operation), []).append(table)
    return [together[key] for key in sorted(together)]


def _predicted(table: Table, known: Sequence[Table], most: int) -> HeldOut:
    sizes = np.array(table.sizes)
    try:
        curve = system(known, table.setting).curve
        found = np.asarray(curve.seconds(sizes, table.scale.ranks, table.scale.nodes))
    except InputError as problem:
        return HeldOut(table, most, table.sizes, table.times, None, problem.problem)
    lender = next((one.lender for one in known if one.lender), "")
    return HeldOut(table, most, table.sizes, table.times, tuple(found.tolist()), lender=lender)
