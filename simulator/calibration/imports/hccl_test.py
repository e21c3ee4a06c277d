"""The output of hccl_test (Ascend): columns between bars, named in a header, in any order."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from simulator.calibration.imports.collective_rows import (
    MOST_ROWS,
    Facts,
    Found,
    Log,
    Row,
    is_operation,
    whole,
)
from simulator.calibration.imports.opening import lines
from simulator.errors import InputError, Where
from simulator.units import shown

WHAT = "the output of hccl_test"
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PROGRAM = re.compile(r"([a-z_]+?)_test\b")
_RANKS = re.compile(r"mpirun\b.*?\s-n[p]?\s+(\d+)")
_PER_NODE = re.compile(r"_test\b.*?\s-p\s+(\d+)")
_SIZE, _TIME, _CHECK = "data_size", "time", "check_result"
ORDER = (_SIZE, _TIME, "alg_bandwidth", _CHECK)
MICROSECONDS = {"us": 1.0, "ms": 1e3, "s": 1e6}  # in one unit of a column of times


def read_hccl_test(path: str) -> Log:
    """Return the tables of a log. Raises InputError when there is none, or it is no text."""
    reader = _Reader(path)
    for number, text in lines(Path(path), WHAT):
        reader.take(number, _ESCAPES.sub("", text))
    return reader.log()


class _Reader:
    """Goes through a log line by line."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._facts = Facts()
        self._tables: list[Found] = []
        self._rows: list[Row] = []
        self._columns: Sequence[str] = ORDER
        self._start = Where(path)
        self._damaged, self._unit = 0, 1.0

    def take(self, number: int, text: str) -> None:
        """Read one line."""
        cells = [cell.strip() for cell in text.split("|")]
        if len(cells) > 1 and _SIZE in text:
            self._close()
            self._columns, self._start = [_column(cell) for cell in cells], Where(self._path, number)
            self._unit = _unit(cells, self._start)
        elif len(cells) > 1 and re.search(r"\d$", self._cell(cells, _SIZE)):
            self._row(cells, Where(self._path, number))
        else:
            self._said(text, Where(self._path, number))

    def log(self) -> Log:
        """Return what was found."""
        self._close()
        if not self._tables:
            raise InputError(
                f"has no row of measurements: it is not {WHAT}, or was cut short", Where(self._path)
            )
        cut = f"{self._damaged} damaged lines were left out"
        return Log(tuple(self._tables), (cut,) if self._damaged else ())

    def _cell(self, cells: list[str], column: str) -> str:
        return dict(zip(self._columns, cells, strict=False)).get(column, "")

    def _row(self, cells: list[str], where: Where) -> None:
        size = self._cell(cells, _SIZE).split()[-1]
        if size.isdecimal():
            whole(size, where)
        found = _row_of(dict(zip(self._columns, cells, strict=False)), self._unit)
        if found is None:
            self._damaged += 1
            return
        self._rows.append(found)
        if len(self._rows) > MOST_ROWS:
            raise InputError(f"more than {MOST_ROWS:,} rows", Where(self._path))

    def _said(self, text: str, where: Where) -> None:
        programs = (found[1].strip("_") for found in _PROGRAM.finditer(text))
        program = next((name for name in programs if is_operation(name)), None)
        if program is None:
            return
        self._close()
        ranks, per_node = _RANKS.search(text), _PER_NODE.search(text)
        count = whole(ranks[1], where) if ranks else None
        each = whole(per_node[1], where) if per_node else 0
        nodes = max(1, count // each) if count and each else None
        self._facts = Facts(program, count, nodes, library="HCCL")

    def _close(self) -> None:
        if self._rows:
            facts = self._facts.filled(Facts(library="HCCL"))
            self._tables.append(Found(facts, tuple(self._rows), self._start))
        self._rows = []


def _column(cell: str) -> str:
    """Return the name of a column without unit and colon; releases spell the time `aveg` or `avg`."""
    name = cell.split("(")[0].strip(" :")
    return _TIME if name.endswith("_time") else name.split()[-1] if name else name


def _unit(cells: Sequence[str], where: Where) -> float:
    """Return the microseconds in one unit of the column of times. Raises InputError for an unknown unit."""
    for cell in cells:
        unit = re.search(r"\(([^)]*)\)", cell)
        if _column(cell) == _TIME and unit:
            name = unit[1].strip().lower()
            if name not in MICROSECONDS:
                raise InputError(f"times in {shown(name)}: {', '.join(MICROSECONDS)} are read", where)
            return MICROSECONDS[name]
    return 1.0


def _row_of(cells: Mapping[str, str], unit: float) -> Row | None:
    """Return a row, its time in columns of `unit` microseconds; None for a line that was cut.

    `failed` counts as one wrong element.
    """
    try:
        size, time = int(cells[_SIZE].split()[-1]), float(cells[_TIME]) * unit
        checked = cells[_CHECK].split()[0].lower()
    except (KeyError, ValueError, IndexError):
        return None
    return (
        Row(size, time, {"success": "0", "failed": "1"}.get(checked, "")) if size > 0 and time > 0 else None
    )
