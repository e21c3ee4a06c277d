"""A folder of measured collectives row by row: what can be used, and why the rest cannot.

A fit refuses a folder with a wrong table (`collective_tables`). Who compares predictions with measurements
wants every row listed instead: one foreign table must not hide the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

from simulator.calibration.collective_tables import ROW_COLUMNS, Table, corrupted, empty, read_heads, table_of
from simulator.calibration.csv_table import Line, read_lines
from simulator.errors import InputError

NOISE = "its own notes call the table fit for noise studies only"
WRONG = "the test itself counted wrong results in this row"
EMPTY = "the message is of zero bytes"


@dataclass(frozen=True)
class SurveyedRow:
    """One line of `rows.csv`: `size` in bytes and `seconds`, or not a number and the `problem`."""

    table: str
    line: int
    size: float
    seconds: float
    problem: str = ""


@dataclass(frozen=True)
class Survey:
    """All rows of a folder in their order, the `tables` that can be compared, and what is wrong else.

    `problems` says of a table by its name why none of it is used; `rowless` are tables without a row.
    """

    rows: tuple[SurveyedRow, ...]
    tables: tuple[Table, ...]
    problems: Mapping[str, str]
    rowless: tuple[str, ...]


def survey(folder: Path) -> Survey:
    """Return what `tables.csv` and `rows.csv` in `folder` hold.

    Raises InputError where they cannot be read, lack a column, or name a table twice.
    """
    heads = read_heads(folder / "tables.csv")
    rows = tuple(_row(line) for line in read_lines(folder / "rows.csv", ROW_COLUMNS))
    together: dict[str, list[SurveyedRow]] = {name: [] for name in heads}
    for row in rows:
        together.setdefault(row.table, []).append(row)
    problems = {name: f'tables.csv has no table "{name}"' for name in together if name not in heads}
    tables = []
    for name, head in heads.items():
        found = _table(head, together[name])
        if isinstance(found, str):
            problems[name] = found
        else:
            tables.append(found)
    rowless = tuple(name for name in heads if not together[name])
    return Survey(rows, tuple(tables), problems, rowless)


def _table(head: Line, rows: Sequence[SurveyedRow]) -> Table | str:
    """Return the table, or why it is none."""
    usable = [(row.size, row.seconds) for row in rows if not row.problem]
    try:
        found = table_of(head, usable)
    except InputError as problem:
        return problem.problem
    if found.noise_only:
        return NOISE
    return found if usable else "the table has no usable row"


def _row(line: Line) -> SurveyedRow:
    size, problem = _number(line, "size_bytes")
    time_us, wrong = _number(line, "time_us")
    problem = WRONG if corrupted(line) else EMPTY if empty(line) else problem or wrong
    return SurveyedRow(line.fields["table_id"], line.where.line or 0, size, time_us / 1e6, problem)


def _number(line: Line, column: str) -> tuple[float, str]:
    try:
        return line.number(column), ""
    except InputError as problem:
        return nan, problem.problem
