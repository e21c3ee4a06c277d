"""The parameter table in the statistics that TorchRec's planner logs: a plan without explicit shards."""

import re
from collections.abc import Iterator

from simulator.errors import InputError, Where
from simulator.sharding.placement.cuts import blocks
from simulator.sharding.placement.shard import Span
from simulator.sharding.placement.torchrec.plan import (
    MOST_RANKS,
    TorchRecPlan,
    TorchRecShard,
    TorchRecTable,
    whole,
)

ABBREVIATIONS = {
    "DP": "data_parallel",
    "TW": "table_wise",
    "CW": "column_wise",
    "RW": "row_wise",
    "TWRW": "table_row_wise",
    "TWCW": "table_column_wise",
    "GS": "grid_shard",
}
FQN, SHARDING, KERNEL, WIDTH, ROWS, RANKS = (
    "FQN",
    "Sharding",
    "Compute Kernel",
    "Emb Dim (CW Dim)",
    "Hash Size",
    "Ranks",
)
_LINE = re.compile(r"^[^#]*#\s(.*?)\s*#\s*$")
_WIDTH = re.compile(r"(\d+)(?:\s*\((\d+)\))?$")


def is_statistics(text: str) -> bool:
    """Return whether a line of `text` heads the planner's parameter table."""
    return any({FQN, SHARDING, RANKS} <= set(_cells(line)) for line in text.splitlines())


def from_statistics(text: str) -> TorchRecPlan:
    """Return the plan that the planner's log shows, prefixes of a logger in front or not.

    The log names a table's ranks in ascending order and not which shard is where, so shards are taken
    to lie on them in that order; of equal shards that makes no difference. Raises InputError with the
    line for what cannot be read.
    """
    return TorchRecPlan(tuple(_tables(text)))


def _cells(line: str) -> list[str]:
    boxed = _LINE.match(line)
    return re.split(r"\s{2,}", (boxed[1] if boxed else line).strip())


def _tables(text: str) -> Iterator[TorchRecTable]:
    header: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        cells = _cells(line)
        if {FQN, SHARDING, RANKS} <= set(cells):
            header = cells
        elif header and cells == [""]:
            header = []
        elif header and not set("".join(cells)) <= {"-", " "}:
            yield _table(_row(header, cells, number), number)


def _row(header: list[str], cells: list[str], line: int) -> dict[str, str]:
    if len(cells) != len(header):
        raise InputError(f"expected {len(header)} columns, found {len(cells)}", Where(line=line))
    return dict(zip(header, cells, strict=True))


def _table(row: dict[str, str], line: int) -> TorchRecTable:
    try:
        module, _, name = row[FQN].rpartition(".")
        sharding = ABBREVIATIONS[row[SHARDING]]
        ranks = tuple(_ranks(row[RANKS]))
        shards = tuple(_shards(sharding, row, ranks)) if sharding != "data_parallel" else ()
        return TorchRecTable(module, name, sharding, row.get(KERNEL, "fused"), ranks, shards)
    except KeyError as error:
        raise InputError(f"the parameter table lacks or does not know {error}", Where(line=line)) from None
    except (InputError, ValueError) as error:
        raise InputError(str(error), Where(line=line)) from None


def _ranks(text: str) -> Iterator[int]:
    """Yield the ranks of `0,2,5-7`."""
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        first_rank, last_rank = (whole(end.strip(), most=MOST_RANKS) for end in (first, last or first))
        yield from range(first_rank, last_rank + 1)


def _shards(sharding: str, row: dict[str, str], ranks: tuple[int, ...]) -> Iterator[TorchRecShard]:
    """Yield the shards: columns by the printed width, rows in equal blocks over the ranks of each."""
    found = _WIDTH.match(row[WIDTH])
    if found is None:
        raise InputError(f'"{row[WIDTH]}" is no width such as 128 or 128 (32)')
    width, part = whole(found[1], least=1), whole(found[2] or found[1], least=1)
    columns = -(-width // part)
    rows = len(ranks) // columns
    if (
        rows < 1
        or rows * columns != len(ranks)
        or (rows > 1 and "row" not in sharding and sharding != "grid_shard")
    ):
        raise InputError(f"{len(ranks)} ranks do not hold {columns} column shards of {sharding}")
    spots = [
        (block, Span(n * part, min(part, width - n * part)))
        for n in range(columns)
        for block in blocks(whole(row[ROWS], least=1), rows)
    ]
    for (block, span), rank in zip(spots, ranks, strict=True):
        yield TorchRecShard(block, span, rank)
