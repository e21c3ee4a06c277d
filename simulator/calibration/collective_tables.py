"""Tables of measured collectives, read and checked: `tables.csv` and `rows.csv` in one folder.

`tables.csv` has one line per table, `rows.csv` one per message size, both as nccl-tests names things.
Columns that are not needed here are ignored.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from csv import DictReader
from csv import Error as CsvError
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from simulator.calibration import collective_words as words
from simulator.costs.curves import BUS_FACTORS, LogLog, Measured, Scale
from simulator.errors import InputError, Where, did_you_mean, printable, regular_file
from simulator.units import shown

TABLE_COLUMNS = ("table_id", "group", "collective", "accel", "n_ranks", "n_nodes")
CARD_RATE = "nic_gbps_per_gpu"
OPTIONAL_COLUMNS = ("library", "notes", "source", "path", "commit", "licence", "network", CARD_RATE)
ROW_COLUMNS = ("table_id", "size_bytes", "time_us")
OPERATIONS: Mapping[str, str] = {name: name for name in BUS_FACTORS} | {
    "alltoall": "all_to_all",
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "sendrecv": "point_to_point",
}
OPEN_LICENCES = ("Apache-2.0", "MIT", "MIT-0", "UPL-1.0", "BSD-3-Clause", "CC-BY-4.0")
FEWEST_ROWS = 2  # of a table that can be drawn
_SCALE_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(?:\d+n\d+g|\d+n|\d+g)(?![A-Za-z0-9])")


@dataclass(frozen=True)
class Setting:
    """What a table was run with: library release and the environment that its notes name."""

    library: str
    environment: str

    def __str__(self) -> str:
        """Return both in words."""
        return " ".join(part for part in (self.library, self.environment) if part) or "unnamed"


@dataclass(frozen=True)
class Table:
    """One operation by message size, on one cluster at one scale: `sizes` in bytes, `times` in seconds.

    Repeats of a size in one table are kept; rows in which the test found wrong results are not.
    `card_rate` is that of the network cards, bytes/s per rank, where it is known. A table with a
    `lender` was measured on that cluster and scaled.
    """

    name: str
    cluster: str
    setting: Setting
    operation: str
    scale: Scale
    sizes: tuple[float, ...]
    times: tuple[float, ...]
    accelerator: str = ""
    network: str = ""
    source: str = "the folder of tables that was fitted"
    licence: str = ""
    date: str = "not stated"
    noise_only: bool = False
    card_rate: float | None = None
    lender: str = ""

    @property
    def open_licence(self) -> bool:
        """Whether the licence of the source lets the numbers themselves be passed on."""
        return self.licence in OPEN_LICENCES


def measured(tables: Sequence[Table]) -> Measured:
    """Return the curve through all points of `tables`, alike in scale: log means where sizes repeat.

    Raises InputError if they have fewer than two sizes together.
    """
    from numpy import exp, log, mean

    points: dict[float, list[float]] = {}
    for table in tables:
        for size, time in zip(table.sizes, table.times, strict=True):
            points.setdefault(size, []).append(time)
    sizes = tuple(sorted(points))
    times = tuple(float(exp(mean(log(points[size])))) for size in sizes)
    lender = next((table.lender for table in tables if table.lender), "")
    return Measured(tables[0].scale, LogLog(sizes, times), sizes[0], sizes[-1], lender)


def read_tables(folder: Path) -> tuple[Table, ...]:
    """Return the tables of `folder` that have at least two sizes, in the order of `tables.csv`.

    Raises InputError, in one line with file and line, for a missing file or column, a number that
    is none, an unknown collective, ranks that do not fill their nodes evenly, a repeated table, or
    rows of a table that `tables.csv` does not have.
    """
    heads = _heads(folder / "tables.csv")
    rows = _rows(folder / "rows.csv", heads)
    found = tuple(_table(line, rows.get(name, [])) for name, line in heads.items())
    usable = tuple(table for table in found if len(set(table.sizes)) >= FEWEST_ROWS)
    if not usable:
        raise InputError("no table has two sizes or more", Where(str(folder)))
    return usable


@dataclass(frozen=True)
class _Line:
    """One line of a CSV file, whose fields are asked for by name."""

    where: Where
    fields: Mapping[str, str]

    def error(self, problem: str) -> InputError:
        return InputError(problem, self.where)

    def number(self, column: str) -> float:
        """Return a positive finite number."""
        text = self.fields[column]
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not (isfinite(value) and value > 0):
            raise self.error(f"{column}: a positive number is needed, not {shown(text)}")
        return value

    def count(self, column: str) -> int:
        """Return a whole number from 1."""
        value = self.number(column)
        if value != int(value):
            raise self.error(f"{column}: a whole number is needed, not {shown(self.fields[column])}")
        return int(value)

    @property
    def corrupted(self) -> bool:
        """Whether the test counted wrong results in this row."""
        return self.fields.get("wrong", "") not in ("", "0", "0.0", "N/A")

    @property
    def empty(self) -> bool:
        """Whether the row is about zero bytes, which nccl-tests prints when a size rounds to nothing."""
        return self.fields["size_bytes"] in ("0", "0.0")


def _lines(file: Path, needed: Iterable[str]) -> list[_Line]:
    try:
        with regular_file(file).open(encoding="utf-8-sig", newline="") as opened:
            reader = DictReader(opened, restval="")
            missing = [column for column in needed if column not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"missing columns: {', '.join(missing)}", Where(str(file), 1))
            return [_Line(Where(str(file), reader.line_num), _clean(fields)) for fields in reader]
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror}", Where(str(file))) from None
    except CsvError as problem:
        raise InputError(f"is not a CSV file: {problem}", Where(str(file))) from None
    except UnicodeDecodeError:
        raise InputError("is not a text file in UTF-8", Where(str(file))) from None


def _clean(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: printable(text.strip()) for name, text in fields.items() if isinstance(text, str)}


def _heads(file: Path) -> dict[str, _Line]:
    heads: dict[str, _Line] = {}
    for line in _lines(file, TABLE_COLUMNS):
        name = line.fields["table_id"]
        if not name or name in heads:
            raise line.error(f"table_id: {shown(name)} is {'given twice' if name else 'no name'}")
        heads[name] = line
    return heads


def _rows(file: Path, heads: Mapping[str, _Line]) -> dict[str, list[tuple[float, float]]]:
    rows: dict[str, list[tuple[float, float]]] = {}
    for line in _lines(file, ROW_COLUMNS):
        name = line.fields["table_id"]
        if name not in heads:
            raise line.error(f"tables.csv has no table {shown(name)}")
        if not line.corrupted and not line.empty:
            rows.setdefault(name, []).append((line.number("size_bytes"), line.number("time_us") / 1e6))
    return rows


def _table(line: _Line, rows: list[tuple[float, float]]) -> Table:
    told = {name: line.fields.get(name, "") for name in OPTIONAL_COLUMNS}
    ordered = sorted(rows)
    return Table(
        name=line.fields["table_id"],
        cluster=_cluster(line),
        setting=Setting(told["library"], words.environment(told["notes"])),
        operation=_operation(line),
        scale=_scale(line),
        sizes=tuple(size for size, _ in ordered),
        times=tuple(time for _, time in ordered),
        accelerator=line.fields["accel"],
        network=told["network"],
        source=words.source(told),
        licence=told["licence"],
        date=words.date(told["path"]),
        noise_only="noise studies only" in told["notes"],
        card_rate=words.card_rate(told[CARD_RATE]),
    )


def _cluster(line: _Line) -> str:
    """Return the group without its scale: a group is one cluster at one scale."""
    group = line.fields["group"].replace("_", " ")
    bare = " ".join(_SCALE_IN_NAME.sub(" ", group).split())
    bare = bare.removesuffix(f" {line.fields['n_ranks']}")
    return bare.replace(" ", "_") or line.fields["group"]


def _operation(line: _Line) -> str:
    name = line.fields["collective"].lower().replace("-", "_")
    if name not in OPERATIONS:
        raise line.error(f"collective: {shown(name)} is unknown{did_you_mean(name, OPERATIONS)}")
    return OPERATIONS[name]


def _scale(line: _Line) -> Scale:
    try:
        return Scale(line.count("n_ranks"), line.count("n_nodes"))
    except InputError as problem:
        raise line.error(problem.problem) from None
