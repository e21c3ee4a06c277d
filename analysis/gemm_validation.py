"""Matrix products of a folder and their predictions, each by what has not seen it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from simulator.calibration.gemm_held_out import (
    HeldOutProduct,
    held_out,
    largest,
    median_and_p90,
    other_half,
    predicted,
    random_half,
)
from simulator.calibration.gemm_table import GemmTable, known_formats, read_gemm_tables
from simulator.costs.gemm import BoolArray
from simulator.costs.gemm_catalog import measured_law

__all__ = [
    "HeldOutProduct",
    "cross_fitted",
    "held_out",
    "largest",
    "median_and_p90",
    "other_half",
    "random_half",
    "tables_in",
]

FEWEST = 40  # rows of a table that make two halves worth fitting
HALF = "the law was fitted to the other half of the table's shapes"
LEARNED = "a shape that the shipped law was learned from"
TOO_FEW = f"fewer than {FEWEST} rows of a device and formats that no law is shipped for"
SECOND = "a second row of this device, these formats and this shape"
UNKNOWN = "the widths of these number formats are not known"


def cross_fitted(tables: Sequence[GemmTable]) -> list[HeldOutProduct]:
    """Return a prediction for every row: from the shipped laws where these have not seen it, else from half.

    The shapes that the shipped laws were learned from are fitted again, each half to the other; too few of
    them for that are of role `fit`. What nothing can be said of is listed with the reason, and so is a
    second row of the same device, formats and shape: nobody knows which of them is meant.
    """
    tables, repeated = _once(tables)
    strange = [table for table in tables if not known_formats(table.formats)]
    known = [table for table in tables if known_formats(table.formats)]
    apart = [(table, _seen(table)) for table in known]
    again = [table.part(mask) for table, mask in apart]
    halves = [table for table in again if len(table.rows) >= FEWEST]
    found = [_noted(_nothing(table), UNKNOWN) for table in strange]
    found += [_shipped(table.part(np.logical_not(mask))) for table, mask in apart if not mask.all()]
    found += [_noted(held_out(halves, half), HALF) for half in (random_half(0), other_half(0))]
    found += [_few(table) for table in again if 0 < len(table.rows) < FEWEST]
    found += [_noted(_nothing(table), SECOND) for table in repeated]
    return [case for cases in found for case in cases]


def _once(tables: Sequence[GemmTable]) -> tuple[list[GemmTable], list[GemmTable]]:
    """Return the tables with the first row of each shape only, and those of the rows that repeat one."""
    first, repeated = [], []
    seen: set[tuple[str, str, tuple[float, ...]]] = set()
    for table in tables:
        new = np.ones(len(table.rows), dtype=bool)
        for place, row in enumerate(table.rows.tolist()):
            key = (table.device, table.formats, tuple(row))
            new[place] = key not in seen
            seen.add(key)
        first += [table.part(new)] if new.any() else []
        repeated += [] if new.all() else [table.part(np.logical_not(new))]
    return first, repeated


def _noted(cases: Sequence[HeldOutProduct], note: str) -> list[HeldOutProduct]:
    return [replace(case, note=note if case.role != "none" or not case.note else case.note) for case in cases]


def _nothing(table: GemmTable) -> list[HeldOutProduct]:
    return predicted(table, None)


def _shipped(table: GemmTable) -> list[HeldOutProduct]:
    return predicted(table, measured_law(table.device, table.formats))


def _few(table: GemmTable) -> list[HeldOutProduct]:
    """Return rows too few to be halved: from the shipped law that was learned from them, or nothing."""
    if measured_law(table.device, table.formats) is None:
        return _noted(_nothing(table), TOO_FEW)
    return [replace(case, role="fit", note=LEARNED) for case in _shipped(table)]


def _seen(table: GemmTable) -> BoolArray:
    """Return which rows the shipped laws have seen; all, where no law is shipped for the table."""
    shipped = measured_law(table.device, table.formats)
    if shipped is None or shipped.residual is None:
        return np.ones(len(table.rows), dtype=bool)
    points = {tuple(point) for point in np.round(2**shipped.residual.points).tolist()}
    return np.array([tuple(row) in points for row in table.rows.tolist()], dtype=bool)


def tables_in(folder: Path) -> tuple[GemmTable, ...]:
    """Return the tables `gemm*.csv` in `folder`/kernels; none when there is no such file."""
    files = sorted((folder / "kernels").glob("gemm*.csv"))
    return tuple(table for file in files for table in read_gemm_tables(file))
