"""Sharding plans: which kind holds for which table, how rows travel, and how many copies there are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

from simulator.errors import InputError, did_you_mean
from simulator.sharding.exchange import Exchange, RowExchange
from simulator.sharding.kinds import Kind
from simulator.sharding.places import Shard, place
from simulator.sharding.table_order import in_order
from simulator.sharding.tiers import Remote
from simulator.sharding.world import World
from simulator.workload.tables import EmbeddingTable

if TYPE_CHECKING:
    from simulator.sharding.stacks import Stacks


@dataclass(frozen=True)
class Rule:
    """The tables whose names match one of the patterns `tables` (`*` stands for anything) are `kind`."""

    tables: tuple[str, ...]
    kind: Kind

    def covers(self, table: EmbeddingTable) -> bool:
        """Whether the rule is about `table`."""
        return any(fnmatchcase(table.name, pattern) for pattern in self.tables)


@dataclass(frozen=True)
class Replicas:
    """Two-dimensional sparse parallelism: `count` groups hold a copy of the tables each.

    Rows are exchanged inside a group only; every `every` steps the copies are averaged. `touched`:
    average only the rows used since the last time, not whole tables. `adjacent`: copies of a shard are
    neighbours, so that averaging stays inside hosts. Raises InputError on counts below one.
    """

    count: int = 1
    every: int = 1
    touched: bool = False
    adjacent: bool = False

    def __post_init__(self) -> None:
        """Refuse impossible counts."""
        if self.count < 1 or self.every < 1:
            raise InputError("replicas needs a count and an interval of at least 1")

    @property
    def consistency(self) -> str:
        """`stale` with several copies, else `synchronous`.

        Even copies averaged after every step do not give the synchronous result: weights are averaged
        after each copy's own (nonlinear) optimizer step, not gradients before a common one.
        """
        return "synchronous" if self.count == 1 else "stale"

    @property
    def staleness_steps(self) -> int:
        """How many updates of the other copies a copy may lack: none just after an averaging."""
        return 0 if self.count == 1 else self.every - 1


@dataclass(frozen=True)
class ShardingPlan:
    """`kind` for every table that no rule covers; the first rule that covers a table holds.

    `stacks` says how tables are put together on sparse engines (None: fixed costs are left out).
    """

    kind: Kind
    rules: tuple[Rule, ...] = ()
    exchange: Exchange = field(default_factory=RowExchange)
    replicas: Replicas = field(default_factory=Replicas)
    stacks: "Stacks | None" = None

    def kind_of(self, table: EmbeddingTable) -> Kind:
        """Return how `table` is sharded."""
        return next((rule.kind for rule in self.rules if rule.covers(table)), self.kind)

    def world(self, ranks: int, per_host: int) -> World:
        """Return the replica groups. Raises InputError when they are not equal."""
        return World(ranks, per_host, self.replicas.count, self.replicas.adjacent)


@dataclass(frozen=True, eq=False)
class PlacedPlan:
    """A plan for certain tables on certain ranks: who owns what. Raises InputError on bad rules.

    `in_order` are the tables in an order that neither their names nor the order given decides.
    """

    plan: ShardingPlan
    tables: tuple[EmbeddingTable, ...]
    world: World

    def __post_init__(self) -> None:
        """Refuse rules about tables that do not exist."""
        self._refuse_served_copies()
        names = [table.name for table in self.tables]
        for rule in self.plan.rules:
            for pattern in rule.tables:
                if not any(fnmatchcase(name, pattern) for name in names):
                    near = did_you_mean(pattern, names) if len(names) < 100 else ""
                    raise InputError(f'no table is called "{pattern}"{near}')

    def _refuse_served_copies(self) -> None:
        kinds = {self.plan.kind_of(table) for table in self.tables}
        if self.world.replicas > 1 and any(isinstance(kind.home, Remote) for kind in kinds):
            raise InputError("parameter servers hold one copy of the tables: take replicas: 1")

    @cached_property
    def in_order(self) -> tuple[EmbeddingTable, ...]:
        """The tables in the order in which amounts are added up."""
        return in_order(self.tables, [self.plan.kind_of(table) for table in self.tables])

    @cached_property
    def numbers(self) -> Mapping[EmbeddingTable, int]:
        """The place of each table in that order: what its draws are keyed by."""
        return {table: number for number, table in enumerate(self.in_order)}

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """All shards of one replica group, table by table, in that order."""
        pieces = [piece for table in self.tables for piece in self.plan.kind_of(table).cut(table, self.world)]
        return place(sorted(pieces, key=lambda piece: self.numbers[piece.table]), self.world)

    @cached_property
    def replicated(self) -> tuple[EmbeddingTable, ...]:
        """Tables that every rank holds whole."""
        return tuple(table for table in self.in_order if self.plan.kind_of(table).replicated)

    @cached_property
    def in_place(self) -> bool:
        """Whether all rows that have an owner are used where they live, in its device memory."""
        return all(shard.piece.kind.home.in_place for shard in self.shards)

    @cached_property
    def exchanged(self) -> tuple[EmbeddingTable, ...]:
        """Tables whose rows have an owner."""
        return tuple(table for table in self.in_order if not self.plan.kind_of(table).replicated)


def as_plan(plan: Kind | ShardingPlan) -> ShardingPlan:
    """Return a plan; a kind alone holds for all tables."""
    return plan if isinstance(plan, ShardingPlan) else ShardingPlan(plan)
