"""CSV files of measurements: one reader for all, with places, limits, and marks of a spreadsheet borne with.

A file is UTF-8, with or without a byte-order mark; its first line names the columns. Cells are stripped, and
what cannot be printed in them is escaped. Blank lines are passed over.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TextIO

from simulator.errors import InputError, Where, did_you_mean, printable, regular_file
from simulator.results.csv_writing import meant
from simulator.units import shown

MOST_BYTES = 256 << 20
MOST_ROWS = 200_000


@dataclass(frozen=True)
class Line:
    """One line of a CSV file: its place (the first line, where quoted cells span several) and its cells.

    A cell that the line lacks is empty.
    """

    where: Where
    fields: Mapping[str, str]

    def error(self, problem: str) -> InputError:
        """Return an error with the place of the line."""
        return InputError(problem, self.where)

    def text(self, column: str) -> str:
        """Return a cell; empty where the file has no such column."""
        return self.fields.get(column, "")

    def number(self, column: str) -> float:
        """Return a positive finite number. Raises InputError for anything else."""
        value = number(self.text(column))
        if value is None or value <= 0:
            raise self.error(f"{column}: a positive number is needed, not {shown(self.text(column))}")
        return value

    def count(self, column: str) -> int:
        """Return a whole number from 1. Raises InputError for anything else."""
        value = self.number(column)
        if value != int(value):
            raise self.error(f"{column}: a whole number is needed, not {shown(self.text(column))}")
        return int(value)


def number(text: str) -> float | None:
    """Return the finite number that a cell holds; None where it holds none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def read_lines(
    path: Path, needed: Sequence[str] = (), most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES
) -> list[Line]:
    """Return the lines of the CSV file `path`, which must have the columns `needed`.

    Raises InputError, in one line with file and line, for a file that is not there, not regular, not UTF-8
    or too large, for missing or repeated columns, and for a line with more cells than the header.
    """
    if regular_file(path).stat().st_size > most_bytes:
        raise InputError(f"is larger than {most_bytes:,} bytes", Where(str(path)))
    try:
        with path.open(encoding="utf-8-sig", newline="") as opened:
            return list(_lines(opened, path, needed, most_rows))
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror}", Where(str(path))) from None
    except UnicodeDecodeError:
        raise InputError("is not a text file in UTF-8", Where(str(path))) from None


def _lines(opened: TextIO, path: Path, needed: Sequence[str], most_rows: int) -> Iterator[Line]:
    rows = _rows(opened, path)
    _, head = next(rows, (1, []))
    names = [printable(name.strip()) for name in head]
    _check(names, needed, path)
    for place, (line, cells) in enumerate(rows):
        where = Where(str(path), line)
        if place >= most_rows:
            raise InputError(f"has more than {most_rows:,} rows", Where(str(path)))
        if any(cell.strip() for cell in cells[len(names) :]):
            raise InputError(f"has {len(cells)} cells, the header {len(names)}", where)
        told = [printable(meant(cell.strip())) for cell in cells[: len(names)]]
        yield Line(where, dict(zip(names, told + [""] * (len(names) - len(told)), strict=True)))


def _rows(opened: TextIO, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line at which a row starts, from 1, and its cells; rows without anything are left out."""
    reader = csv.reader(opened)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as problem:
            raise InputError(f"is not a CSV file: {problem}", Where(str(path), start)) from None
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield start, cells


def _check(names: Sequence[str], needed: Sequence[str], path: Path) -> None:
    where = Where(str(path), 1)
    if missing := [name for name in needed if name not in names]:
        near = did_you_mean(missing[0], [name for name in names if name]) if len(missing) == 1 else ""
        raise InputError(f"the table has no column {', '.join(missing)}{near}", where)
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        raise InputError(f"the table has two columns {', '.join(twice)}", where)
