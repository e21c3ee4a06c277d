"""A TorchRec sharding plan as values: modules, their tables, and the shards of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from simulator.errors import InputError, did_you_mean
from simulator.sharding.placement.placed import Chips, Placement
from simulator.sharding.placement.shard import Demand, Shard, Span, piece
from simulator.units import shown

# TorchRec's names and abbreviations, and our word for the cut.
KINDS = {
    "table_wise": "table",
    "column_wise": "column",
    "row_wise": "row",
    "table_row_wise": "table_row",
    "table_column_wise": "table_column",
    "grid_shard": "grid",
    "data_parallel": "replica",
}
REPLICATED = "data_parallel"
MOST = 2**53  # whole numbers below are exact in every reader of JSON
MOST_RANKS = 2**20


def known_sharding(name: str) -> str:
    """Return the sharding type `name`; raise InputError when TorchRec has none of that name."""
    if name not in KINDS:
        raise InputError(f'unknown sharding type "{name}"{did_you_mean(name, KINDS)}')
    return name


def whole(value: object, least: int = 0, most: int = MOST) -> int:
    """Return a whole number from `least` to below `most`, written in digits or not. Raises InputError."""
    text = value if isinstance(value, str) and value.isascii() and value.isdigit() else ""
    number = int(text) if 0 < len(text) <= 16 else value
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number < most:
        raise InputError(f"a whole number from {least} to {most - 1} is needed, not {shown(value)}")
    return number


@dataclass(frozen=True)
class TorchRecShard:
    """`rows` and `columns` of a table on `rank`; `device` is the device's index in its host.

    Raises InputError for a shard without rows or columns, and for numbers that no table has.
    """

    rows: Span
    columns: Span
    rank: int
    device: str = "cuda:0"

    def __post_init__(self) -> None:
        """Refuse impossible numbers."""
        whole(self.rank, most=MOST_RANKS)
        for span in (self.rows, self.columns):
            whole(span.start)
            whole(span.size, least=1)

    @property
    def placement(self) -> str:
        """Return the placement as TorchRec writes it."""
        return f"rank:{self.rank}/{self.device}"


@dataclass(frozen=True)
class TorchRecTable:
    """One parameter of a plan. `sharding` is TorchRec's name; data-parallel tables have ranks, no shards.

    Raises InputError for an unknown sharding type, for a sharded table without shards, and for names
    that are no text.
    """

    module: str
    name: str
    sharding: str
    kernel: str
    ranks: tuple[int, ...]
    shards: tuple[TorchRecShard, ...] = ()

    def __post_init__(self) -> None:
        """Refuse unknown types, and shards that are missing."""
        known_sharding(self.sharding)
        for name in (self.module, self.name, self.kernel):
            if any("\ud800" <= letter <= "\udfff" for letter in name):
                raise InputError(f"the name {shown(name)} holds half a character and cannot be written")
        for rank in self.ranks:
            whole(rank, most=MOST_RANKS)
        if not self.shards and self.sharding != REPLICATED:
            raise InputError(f'table "{self.name}" is {self.sharding} and has no shards')

    @property
    def size(self) -> tuple[int, int] | None:
        """Return (rows, columns) of the whole table; None for a data-parallel one, which does not say."""
        if not self.shards:
            return None
        rows = max(shard.rows.start + shard.rows.size for shard in self.shards)
        return rows, max(shard.columns.start + shard.columns.size for shard in self.shards)


@dataclass(frozen=True)
class TorchRecPlan:
    """The tables of a plan, in its order. Raises InputError without tables, or for two of one name."""

    tables: tuple[TorchRecTable, ...]

    def __post_init__(self) -> None:
        """Refuse an empty plan."""
        if not self.tables:
            raise InputError("the sharding plan has no tables")
        names = sorted((table.module, table.name) for table in self.tables)
        twice = next((a for a, b in pairwise(names) if a == b), None)
        if twice is not None:
            raise InputError(f'the sharding plan has two tables "{twice[1]}" in module "{twice[0]}"')

    @property
    def ranks(self) -> int:
        """Return the number of ranks, as far as the plan shows: one more than the highest it names."""
        return 1 + max(rank for table in self.tables for rank in (*table.ranks, 0))

    def placement(self, demands: Sequence[Demand], chips: Chips | None = None) -> Placement:
        """Return the plan with the loads of `demands`, to be judged or compared (bound zero).

        A data-parallel table costs each rank its share of the keys and the memory of the whole. Raises
        InputError for a table without demand, or of another size than its demand says.
        """
        known = {demand.table: demand for demand in demands}
        placed: list[tuple[Shard, int]] = []
        for table in self.tables:
            demand = known.get(table.name)
            if demand is None:
                raise InputError(f'nothing is known of table "{table.name}"{did_you_mean(table.name, known)}')
            placed += _placed(table, demand, range(self.ranks))
        shards, chip_of = zip(*placed, strict=True)
        return Placement(chips or Chips(self.ranks), shards, chip_of, 0.0, "torchrec")

    @classmethod
    def of(
        cls, placement: Placement, per_host: int, module: str = "", kernel: str = "fused"
    ) -> "TorchRecPlan":
        """Return a placement as a plan, for hosts of `per_host` devices.

        Row pieces that are one host's, one each and in order, become table-row-wise. Raises InputError
        when `per_host` does not divide the chips.
        """
        if per_host < 1 or placement.chips.count % per_host:
            raise InputError(f"{placement.chips.count} chips do not fill hosts of {per_host}")
        pairs = sorted(zip(placement.shards, placement.chip_of, strict=True), key=_in_table)
        tables = [
            _exported(name, list(pieces), per_host)
            for name, pieces in groupby(pairs, key=lambda p: p[0].table)
        ]
        return cls(tuple(replace(table, module=module, kernel=kernel) for table in tables))

    def unusual(self) -> tuple[str, ...]:
        """Return the row-wise tables that do not lie on all ranks in order, one block each.

        TorchRec's own row-wise sharding always does; such tables need a row-wise placement by hand.
        """
        rows = [table for table in self.tables if table.sharding == "row_wise"]
        return tuple(table.name for table in rows if list(table.ranks) != list(range(self.ranks)))


def _placed(table: TorchRecTable, demand: Demand, ranks: Sequence[int]) -> list[tuple[Shard, int]]:
    if table.size not in (None, (demand.rows, demand.dimension)):
        raise InputError(
            f'table "{table.name}" is {table.size} in the plan, {demand.rows, demand.dimension} in the model'
        )
    kind = KINDS[table.sharding]
    if table.sharding == REPLICATED:
        copy = piece(demand, kind, Span(0, demand.rows), Span(0, demand.dimension), copies=len(ranks))
        return [(copy, rank) for rank in ranks]
    return [(piece(demand, kind, shard.rows, shard.columns), shard.rank) for shard in table.shards]


def _in_table(pair: tuple[Shard, int]) -> tuple[str, int, int]:
    shard, _ = pair
    return shard.table, shard.rows.start, shard.columns.start


def _exported(name: str, pieces: list[tuple[Shard, int]], per_host: int) -> TorchRecTable:
    kind = pieces[0][0].kind
    ranks = tuple(chip for _, chip in pieces)
    sharding = next((theirs for theirs, ours in KINDS.items() if ours == kind), kind)
    if kind == "row" and _one_host(ranks, per_host):
        sharding = "table_row_wise"
    if sharding == REPLICATED:
        return TorchRecTable("", name, sharding, "dense", ranks)
    shards = tuple(
        TorchRecShard(shard.rows, shard.columns, chip, f"cuda:{chip % per_host}") for shard, chip in pieces
    )
    return TorchRecTable("", name, sharding, "fused", ranks, shards)


def _one_host(ranks: tuple[int, ...], per_host: int) -> bool:
    first = ranks[0]
    return first % per_host == 0 and ranks == tuple(range(first, first + per_host))
