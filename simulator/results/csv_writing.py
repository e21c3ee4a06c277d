"""Writing CSV: the one way in which all tables are written, safe to open in a spreadsheet.

A spreadsheet runs a cell that begins like a formula. Text that does is written with an apostrophe before it,
which a spreadsheet takes as "this is text"; numbers stay as they are.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from simulator.errors import printable

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
APOSTROPHE = "'"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], stream: TextIO) -> None:
    """Write flat records under a header; None and what a record lacks become empty fields."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([inert(name) for name in columns])
    for row in rows:
        writer.writerow([inert(row.get(name)) for name in columns])


def inert(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula; one that is broken has line feeds alone.

    Other control characters, which a terminal would obey, are escaped.
    """
    if not isinstance(cell, str):
        return cell
    text = CONTROL.sub(_escaped, cell.replace("\r\n", "\n").replace("\r", "\n"))
    return f"{APOSTROPHE}{text}" if _is_formula(text) else text


def _escaped(character: re.Match[str]) -> str:
    return printable(character[0])


def meant(cell: str) -> str:
    """Return the text that `inert` has made this cell of."""
    return cell[1:] if cell.startswith(APOSTROPHE) and _is_formula(cell[1:]) else cell


def _is_formula(text: str) -> bool:
    if not text.startswith(FORMULA_STARTS):
        return False
    try:
        float(text)
        return False
    except ValueError:
        return len(text) > 1
