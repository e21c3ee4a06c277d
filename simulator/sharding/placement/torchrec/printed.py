"""The printed form of a TorchRec plan: per module a table of parameters and a table of shards."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from simulator.errors import InputError, Where
from simulator.sharding.placement.shard import Span
from simulator.sharding.placement.torchrec.plan import TorchRecPlan, TorchRecShard, TorchRecTable, whole
from simulator.sharding.placement.torchrec.serialized import parsed_placement

PARAMETERS = ["param", "sharding type", "compute kernel", "ranks"]
SHARDS = ["param", "shard offsets", "shard sizes", "placement"]
_RULE = re.compile(r"[\s|+:-]*-[\s|+:-]*$")


def is_printed(text: str) -> bool:
    """Return whether a line of `text` heads a table of parameters."""
    return any(_cells(line) == PARAMETERS for line in text.splitlines())


def from_printed(text: str) -> TorchRecPlan:
    """Return the plan that TorchRec printed, with the `tabulate` package or without.

    Raises InputError with the line for what cannot be read.
    """
    reading = _Reading()
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            reading.take(line)
        except (InputError, ValueError) as error:
            problem = error.problem if isinstance(error, InputError) else str(error)
            raise InputError(problem, Where(line=number)) from None
    return TorchRecPlan(tuple(reading.tables()))


def _cells(line: str) -> list[str]:
    """Return the cells of a line: split at bars, or at two or more spaces."""
    parts = line.strip().strip("|").split("|") if "|" in line else re.split(r"\s{2,}", line.strip())
    return [part.strip() for part in parts]


@dataclass
class _Reading:
    """What was read so far: where lines belong, parameters, and shards by parameter."""

    module: str = ""
    header: list[str] = field(default_factory=list)
    parameters: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    shards: dict[tuple[str, str], list[TorchRecShard]] = field(default_factory=dict)

    def take(self, line: str) -> None:
        """Take in one line; those outside the two tables say nothing."""
        cells = _cells(line)
        if line.strip().startswith("module:"):
            self.module, self.header = line.split("module:", 1)[1].strip(), []
        elif cells in (PARAMETERS, SHARDS):
            self.header = cells
        elif not line.strip():
            self.header = []
        elif self.header and not _RULE.match(line):
            self._row(cells)

    def _row(self, cells: list[str]) -> None:
        if len(cells) != len(self.header):
            raise InputError(
                f"expected {len(self.header)} columns ({', '.join(self.header)}), found {len(cells)}"
            )
        key = (self.module, cells[0])
        if self.header == PARAMETERS:
            self.parameters[key] = cells
            return
        (row, column), (rows, columns) = _numbers(cells[1], 2), _numbers(cells[2], 2)
        rank, device = parsed_placement(cells[3])
        shard = TorchRecShard(Span(row, rows), Span(column, columns), rank, device)
        self.shards.setdefault(key, []).append(shard)

    def tables(self) -> Iterator[TorchRecTable]:
        """Yield the tables in the order of their parameters."""
        for key, (name, sharding, kernel, ranks) in self.parameters.items():
            shards = tuple(self.shards.get(key, ()))
            listed = tuple(_numbers(ranks)) if ranks != "None" else tuple(shard.rank for shard in shards)
            yield TorchRecTable(key[0], name, sharding, kernel, listed, shards)


def _numbers(text: str, count: int | None = None) -> list[int]:
    """Return the whole numbers of a list such as `[0, 4096]`. Raises InputError for anything else."""
    if not re.fullmatch(r"\[\s*(\d+(\s*,\s*\d+)*)?\s*\]", text):
        raise InputError(f'"{text}" is no list of whole numbers')
    numbers = [whole(number) for number in re.findall(r"\d+", text)]
    if count is not None and len(numbers) != count:
        raise InputError(f'"{text}" should have {count} numbers')
    return numbers


def to_printed(plan: TorchRecPlan) -> str:
    """Return the plan as TorchRec prints it."""
    modules: dict[str, list[TorchRecTable]] = {}
    for table in plan.tables:
        modules.setdefault(table.module, []).append(table)
    return "\n\n".join(_module(name, tables) for name, tables in modules.items()) + "\n"


def _module(name: str, tables: Sequence[TorchRecTable]) -> str:
    parameters = [[table.name, table.sharding, table.kernel, str(list(table.ranks))] for table in tables]
    shards = [
        [
            table.name,
            str([shard.rows.start, shard.columns.start]),
            str([shard.rows.size, shard.columns.size]),
            shard.placement,
        ]
        for table in tables
        for shard in table.shards
    ]
    return f"module: {name}\n\n{_aligned(PARAMETERS, parameters)}\n\n{_aligned(SHARDS, shards)}"


def _aligned(header: list[str], rows: list[list[str]]) -> str:
    # tabulate leaves two spaces more than a header needs
    widths = [max(len(name) + 2, *(len(row[n]) for row in rows), 0) for n, name in enumerate(header)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
