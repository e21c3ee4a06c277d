"""The `sharding` part of a scenario: how tables are cut, how rows travel, and how many copies there are."""

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from simulator.errors import InputError
from simulator.scenario.base import Spec
from simulator.scenario.fields import Count, Flag, Number
from simulator.scenario.sharding_kinds import (
    AnyKind,
    ColumnWiseKind,
    DataParallelKind,
    GridKind,
    KindSpec,
    RowWiseKind,
    TableRowWiseKind,
    TableWiseKind,
)
from simulator.sharding import (
    Exchange,
    Kind,
    PooledExchange,
    Replicas,
    RowExchange,
    Rule,
    ShardingPlan,
    Stacks,
)

EXCHANGES: dict[str, Exchange] = {"rows": RowExchange(), "pooled": PooledExchange()}


class ReplicasSpec(Spec):
    """Two-dimensional sparse parallelism: `count` copies of all tables, averaged `every` so many steps.

    `rows`: average all rows, or those `touched` since the last time. `adjacent`: copies of a shard are
    neighbours, or else the ranks that share a copy are.
    """

    count: Count
    every: Annotated[int, Number(1, 256, whole=True)] = 1
    rows: Literal["all", "touched"] = "all"
    adjacent: Flag = False

    def build(self) -> Replicas:
        """Return the replicas."""
        return Replicas(self.count, self.every, self.rows == "touched", self.adjacent)


class StacksSpec(Spec):
    """How tables are put together on sparse engines: each stage starts once per stack and minibatch.

    A batch with more than `ids_per_partition` ids of a stack from one chip to another is split.
    """

    count: Count
    ids_per_partition: Count | None = None

    def build(self) -> Stacks:
        """Return the stacks."""
        return Stacks(self.count, self.ids_per_partition)


class _Kind(Spec):
    """How tables are cut."""

    @abstractmethod
    def kind_of_sharding(self) -> Kind:
        """Return how tables are cut."""


def _number_or_mapping(value: object) -> str:
    """Tell how replicas are written, so that a mistake is told for that way of writing alone."""
    return "mapping" if isinstance(value, dict | ReplicasSpec) else "number"


CountOrReplicas = Annotated[
    Annotated[Count, Tag("number")] | Annotated[ReplicasSpec, Tag("mapping")],
    Discriminator(_number_or_mapping),
]


class _Plan(Spec):
    """What holds for all tables of a plan.

    `exchange`: every distinct row travels once, or one sum per sample and table. `replicas`: copies of
    all tables, each shared by an equal part of the ranks.
    """

    exchange: Literal["rows", "pooled"] = "rows"
    replicas: CountOrReplicas = 1
    stacks: StacksSpec | None = None

    def build(self, keys_per_sample: float = 1.0) -> ShardingPlan:
        """Return the plan for a model that reads so many rows of a table per sample.

        Raises InputError when the model cannot do with sums of rows.
        """
        if self.exchange == "pooled" and keys_per_sample > 1:
            raise InputError("a sequence model reads the row of each position; take exchange: rows")
        kind, rules = self.kinds()
        given = self.replicas
        replicas = given.build() if isinstance(given, ReplicasSpec) else Replicas(given)
        stacks = self.stacks.build() if self.stacks else None
        return ShardingPlan(kind, rules, EXCHANGES[self.exchange], replicas, stacks)

    @abstractmethod
    def kinds(self) -> tuple[Kind, tuple[Rule, ...]]:
        """Return how tables are cut, and the exceptions."""


class _OneKind(KindSpec, _Plan):
    """The same kind for all tables."""

    def kinds(self) -> tuple[Kind, tuple[Rule, ...]]:
        """Return the kind, without exceptions."""
        return self.kind_of_sharding(), ()


class RowWiseSpec(RowWiseKind, _OneKind):
    """All tables row-wise."""


class TableWiseSpec(TableWiseKind, _OneKind):
    """All tables table-wise."""


class ColumnWiseSpec(ColumnWiseKind, _OneKind):
    """All tables column-wise."""


class TableRowWiseSpec(TableRowWiseKind, _OneKind):
    """All tables table-row-wise."""


class GridSpec(GridKind, _OneKind):
    """All tables on a grid."""


class DataParallelSpec(DataParallelKind, _OneKind):
    """All tables on all ranks."""


class RuleSpec(Spec):
    """Tables by name (`*` stands for anything), and how they are sharded."""

    tables: Annotated[tuple[str, ...], Field(min_length=1, max_length=10_000)]
    sharding: AnyKind


class MixtureSpec(_Plan):
    """Tables sharded in different ways: the first rule that names a table holds, else `default`."""

    kind: Literal["mixture"]
    default: AnyKind
    rules: Annotated[tuple[RuleSpec, ...], Field(min_length=1, max_length=10_000)]

    def kinds(self) -> tuple[Kind, tuple[Rule, ...]]:
        """Return the default kind and the rules."""
        rules = tuple(Rule(rule.tables, rule.sharding.kind_of_sharding()) for rule in self.rules)
        return self.default.kind_of_sharding(), rules


ShardingSpec = Annotated[
    RowWiseSpec
    | TableWiseSpec
    | ColumnWiseSpec
    | TableRowWiseSpec
    | GridSpec
    | DataParallelSpec
    | MixtureSpec,
    Field(discriminator="kind"),
]
