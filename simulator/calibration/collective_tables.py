"""Tables of measured collectives, read and checked: `tables.csv` and `rows.csv` in one folder.

`tables.csv` has one line per table, `rows.csv` one per message size, both as nccl-tests names things.
Columns that are not needed here are ignored.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.calibration import collective_words as words
from simulator.calibration.csv_table import Line, read_lines
from simulator.costs.curves import BUS_FACTORS, LogLog, Measured, Scale
from simulator.errors import InputError, Where, did_you_mean
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
    heads = read_heads(folder / "tables.csv")
    rows = _rows(folder / "rows.csv", heads)
    found = tuple(table_of(line, rows.get(name, [])) for name, line in heads.items())
    usable = tuple(table for table in found if len(set(table.sizes)) >= FEWEST_ROWS)
    if not usable:
        raise InputError("no table has two sizes or more", Where(str(folder)))
    return usable


def read_heads(file: Path) -> dict[str, Line]:
    """Return the lines of `tables.csv` by the name of the table.

    Raises InputError for a file that cannot be read, a missing column, and a table without or with a
    repeated name.
    """
    heads: dict[str, Line] = {}
    for line in read_lines(file, TABLE_COLUMNS):
        name = line.fields["table_id"]
        if not name or name in heads:
            raise line.error(f"table_id: {shown(name)} is {'given twice' if name else 'no name'}")
        heads[name] = line
    return heads


def corrupted(line: Line) -> bool:
    """Whether the test counted wrong results in a row."""
    return line.text("wrong") not in ("", "0", "0.0", "N/A")


def empty(line: Line) -> bool:
    """Whether a row is about zero bytes, which nccl-tests prints when a size rounds to nothing."""
    return line.text("size_bytes") in ("0", "0.0")


def _rows(file: Path, heads: Mapping[str, Line]) -> dict[str, list[tuple[float, float]]]:
    rows: dict[str, list[tuple[float, float]]] = {}
    for line in read_lines(file, ROW_COLUMNS):
        name = line.fields["table_id"]
        if name not in heads:
            raise line.error(f"tables.csv has no table {shown(name)}")
        if not corrupted(line) and not empty(line):
            rows.setdefault(name, []).append((line.number("size_bytes"), line.number("time_us") / 1e6))
    return rows


def table_of(line: Line, rows: Sequence[tuple[float, float]]) -> Table:
    """Return the table of one line of `tables.csv` with its rows of (bytes, seconds).

    Raises InputError for an unknown collective and for ranks that do not fill their nodes evenly.
    """
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


def _cluster(line: Line) -> str:
    """Return the group without its scale: a group is one cluster at one scale."""
    group = line.fields["group"].replace("_", " ")
    bare = " ".join(_SCALE_IN_NAME.sub(" ", group).split())
    bare = bare.removesuffix(f" {line.fields['n_ranks']}")
    return bare.replace(" ", "_") or line.fields["group"]


def _operation(line: Line) -> str:
    name = line.fields["collective"].lower().replace("-", "_")
    if name not in OPERATIONS:
        raise line.error(f"collective: {shown(name)} is unknown{did_you_mean(name, OPERATIONS)}")
    return OPERATIONS[name]


def _scale(line: Line) -> Scale:
    try:
        return Scale(line.count("n_ranks"), line.count("n_nodes"))
    except InputError as problem:
        raise line.error(problem.problem) from None
