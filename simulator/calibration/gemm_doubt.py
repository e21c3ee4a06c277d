"""How sure the numbers of a law of matrix products are: intervals, and what was held out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from simulator.calibration.gemm_fit import SEARCHED, Fitted, at_ends, fit_law, fit_tables, unseen
from simulator.calibration.gemm_held_out import held_out, median_and_p90, other_half, random_half
from simulator.calibration.gemm_table import GemmTable
from simulator.costs.gemm import GemmTime, TileLaw
from simulator.quantities.statistics import COVERAGE

RESAMPLES = 60
FEWEST = 10  # rows of a table of which halves are hidden from each other

Interval = tuple[float, float]


@dataclass(frozen=True)
class FittedGemm:
    """What was fitted to a table: law and residual, with what is doubtful of it.

    `intervals` are the middle 80 % of laws fitted to shapes drawn again, by name of the number, and all
    values that the measurements cannot tell apart from it; those in `at_bound` were decided by the ends of
    the search, or by nothing. `errors` are the median and the 90th percentile of |error| of `rows` predicted
    from the other half of the device's shapes; None where there are too few.
    """

    table: GemmTable
    time: GemmTime
    intervals: Mapping[str, Interval]
    at_bound: tuple[str, ...]
    errors: tuple[float, float] | None
    rows: int


def fit_with_doubts(tables: Sequence[GemmTable], resamples: int = RESAMPLES) -> tuple[FittedGemm, ...]:
    """Return the fit of each table, in their order."""
    fitted = fit_tables(tables)
    errors = _errors(tables)
    return tuple(
        _doubted(table, fitted[table.device], errors.get((table.device, table.formats)), resamples)
        for table in tables
    )


def _doubted(
    table: GemmTable, laws: Fitted, errors: tuple[float, float] | None, resamples: int
) -> FittedGemm:
    time = laws[table.formats]
    rows = len(table.rows) if errors else 0
    bounds = tuple(dict.fromkeys((*at_ends(table, time.law), *unseen(table, time.law))))
    return FittedGemm(table, time, intervals(table, time.law, resamples), bounds, errors, rows)


def intervals(table: GemmTable, law: TileLaw, resamples: int = RESAMPLES) -> dict[str, Interval]:
    """Return the middle `COVERAGE` of laws fitted to rows drawn again, the law's own numbers inside."""
    rng = np.random.default_rng(crc32(f"{table.device} {table.formats}".encode()))
    drawn = (rng.integers(len(table.rows), size=len(table.rows)) for _ in range(resamples))
    again = [fit_law(_rows(table, chosen), law) for chosen in drawn]
    found, alike = {}, unseen(table, law)
    for name in SEARCHED:
        own = float(getattr(law, name))
        tails = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
        low, high = np.quantile([getattr(one, name) for one in again] or [own], tails).tolist()
        least, most = alike.get(name, (own, own))
        found[name] = (min(low, own, least), max(high, own, most))
    return found


def _rows(table: GemmTable, chosen: "np.typing.NDArray[np.int64]") -> GemmTable:
    return GemmTable(table.device, table.formats, table.rows[chosen], table.seconds[chosen])


def _errors(tables: Sequence[GemmTable]) -> dict[tuple[str, str], tuple[float, float]]:
    usable = [table for table in tables if len(table.rows) >= FEWEST]
    cases = [case for half in (random_half(0), other_half(0)) for case in held_out(usable, half)]
    names = dict.fromkeys((case.device, case.formats) for case in cases if case.predicted is not None)
    return {
        name: median_and_p90([case for case in cases if (case.device, case.formats) == name])
        for name in names
    }
