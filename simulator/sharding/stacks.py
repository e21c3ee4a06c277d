"""Stacks of tables on sparse engines, and batches that are too large for one go: fixed costs, as amounts.

Tables of one width are stacked and handled together; a sparse engine starts once per stack, and so does
each exchange. A chip sends another one at most so many ids at a time; a batch that has more is
split by a hash of its ids into minibatches, which are done one after the other. Both are counts of
starts and of exchanges in a stage: no row moves more often for them.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from simulator.errors import InfeasibleError, InputError
from simulator.quantities import AllToAllWork, InTurn, PartsWork, RowWork, Together, Work
from simulator.sharding.plan import ShardingPlan
from simulator.sharding.traffic import Traffic

MOST_MINIBATCHES = 64  # buckets that ids are hashed into (jax-tpu-embedding)


@dataclass(frozen=True)
class Stacks:
    """Tables in `count` equal stacks; at most `ids_per_partition` ids of a stack from chip to chip at a time.

    No limit if None. Raises InputError on counts below one.
    """

    count: int
    ids_per_partition: int | None = None

    def __post_init__(self) -> None:
        """Refuse impossible counts."""
        if self.count < 1 or (self.ids_per_partition or 1) < 1:
            raise InputError("stacks needs a count and a limit of ids of at least 1")

    def rounds(self, traffic: Traffic) -> int:
        """Return how often each stage starts: once per stack and minibatch.

        Raises InfeasibleError when the fullest pair of chips has too many ids for all minibatches.
        """
        return self.count * self.minibatches(traffic)

    def minibatches(self, traffic: Traffic) -> int:
        """Return into how many minibatches a batch is split (see `rounds`)."""
        if self.ids_per_partition is None:
            return 1
        ids = float(np.max(traffic.requests)) / traffic.world.members / self.count
        found = max(1, math.ceil(ids / self.ids_per_partition))
        if found > MOST_MINIBATCHES:
            raise InfeasibleError(
                f"a chip asks another for {ids:,.0f} ids of a stack, {found} times the limit of "
                f"{self.ids_per_partition:,}; a batch is split into at most {MOST_MINIBATCHES} minibatches"
            )
        return found


def with_starts(work: Work, count: int) -> Work:
    """Return `work` started `count` times: the same rows and bytes, more starts of engine and network."""
    if isinstance(work, InTurn | Together):
        return replace(work, parts=tuple(with_starts(part, count) for part in work.parts))
    if isinstance(work, RowWork) and work.tier == "hbm":
        return replace(work, launches=float(count))
    if isinstance(work, AllToAllWork | PartsWork):
        return replace(work, rounds=count)
    return work


def started(work: Work, traffic: Traffic) -> Work:
    """Return `work` as the plan of `traffic` stacks its tables; unchanged where it does not."""
    return work if traffic.placed.plan.stacks is None else with_starts(work, starts(traffic))


def starts(traffic: Traffic) -> int:
    """Return how often a stage starts: once per stack and minibatch, once where tables are not stacked.

    Raises InfeasibleError when a batch cannot be split finely enough.
    """
    stacks = traffic.placed.plan.stacks
    return 1 if stacks is None else stacks.rounds(traffic)


def check_stacks(plan: ShardingPlan, tables: int) -> None:
    """Raise InputError where there are more stacks than tables."""
    if plan.stacks is not None and plan.stacks.count > tables:
        raise InputError(
            f"stacks.count is {plan.stacks.count:,}, but there are only {tables:,} tables to stack"
        )
