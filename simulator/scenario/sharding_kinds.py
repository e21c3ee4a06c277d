"""The kinds of sharding that a scenario may name: how tables are cut."""

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field

from simulator.scenario.base import Spec
from simulator.scenario.fields import Count, CountOrZero, Fraction, NonNegativeFloat
from simulator.scenario.tier_spec import TierSpec, tier_of
from simulator.sharding import (
    ColumnWise,
    DataParallel,
    Grid,
    Kind,
    Part,
    Placed,
    RowWise,
    TableRowWise,
    TableWise,
)

Owners = Literal["expected", "drawn"]


class KindSpec(Spec):
    """How tables are cut."""

    @abstractmethod
    def kind_of_sharding(self) -> Kind:
        """Return how tables are cut."""


class RowWiseKind(KindSpec):
    """Rows of every table over all ranks by a hash of their key.

    `tier`: memory that rows live in. `owners`: every owner receives the mean load, or a load drawn
    once per owner from the spread that the hash leaves. `shares`: relative sizes of uneven shards,
    repeated over the ranks.
    """

    kind: Literal["row_wise"]
    tier: TierSpec = "dram"
    owners: Owners = "expected"
    shares: Annotated[tuple[NonNegativeFloat, ...], Field(min_length=1, max_length=100_000)] | None = None

    def kind_of_sharding(self) -> Kind:
        """Return how tables are cut."""
        return RowWise(tier_of(self.tier), self.owners, self.shares)


class TableWiseKind(KindSpec):
    """Every table whole on one rank: `rank`, or the one with least to do."""

    kind: Literal["table_wise"]
    tier: TierSpec = "dram"
    rank: CountOrZero | None = None

    def kind_of_sharding(self) -> Kind:
        """Return how tables are cut."""
        return TableWise(tier_of(self.tier), rank=self.rank)


class ColumnWiseKind(KindSpec):
    """Every table in `shards` parts of equal width, each on one rank."""

    kind: Literal["column_wise"]
    shards: Count
    tier: TierSpec = "dram"

    def kind_of_sharding(self) -> Kind:
        """Return how tables are cut."""
        return ColumnWise(tier_of(self.tier), shards=self.shards)


class TableRowWiseKind(KindSpec):
    """Every table on one host, its rows over the host's ranks: `host`, or the one with least to do."""

    kind: Literal["table_row_wise"]
    tier: TierSpec = "dram"
    owners: Owners = "expected"
    host: CountOrZero | None = None

    def kind_of_sharding(self) -> Kind:
        """Return how tables are cut."""
        return TableRowWise(tier_of(self.tier), self.owners, self.host)


class GridKind(KindSpec):
    """Every table in `shards` parts of equal width, each over the ranks of one host."""

    kind: Literal["grid"]
    shards: Count
    tier: TierSpec = "dram"
    owners: Owners = "expected"

    def kind_of_sharding(self) -> Kind:
        """Return how tables are cut."""
        return Grid(tier_of(self.tier), self.owners, self.shards)


class DataParallelKind(KindSpec):
    """Every rank holds all of every table; gradients are added up over all ranks."""

    kind: Literal["data_parallel"]

    def kind_of_sharding(self) -> Kind:
        """Return how tables are cut."""
        return DataParallel()


class PartSpec(Spec):
    """A piece on one rank, or on `span` neighbours from there: its shares of a table's columns and rows."""

    rank: CountOrZero
    columns: Fraction = 1.0
    rows: Fraction = 1.0
    span: Count = 1


class PlacedKind(KindSpec):
    """Every table in the given pieces, as a planner has decided."""

    kind: Literal["placed"]
    parts: Annotated[tuple[PartSpec, ...], Field(min_length=1, max_length=100_000)]
    tier: TierSpec = "dram"

    def kind_of_sharding(self) -> Kind:
        """Return how tables are cut."""
        parts = tuple(Part(part.rank, part.columns, part.rows, part.span) for part in self.parts)
        return Placed(tier_of(self.tier), parts=parts)


AnyKind = Annotated[
    RowWiseKind
    | TableWiseKind
    | ColumnWiseKind
    | TableRowWiseKind
    | GridKind
    | DataParallelKind
    | PlacedKind,
    Field(discriminator="kind"),
]
