"""Longest first: the largest piece goes to the chip that has least to do and room for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from simulator.errors import InfeasibleError, InputError
from simulator.sharding.placement.cuts import WHOLE_TABLES, Choice, CutRules
from simulator.sharding.placement.exchange import exchanged
from simulator.sharding.placement.placed import ROUNDING, Chips, Placement, lower_bound
from simulator.sharding.placement.shard import Demand, Shard
from simulator.sharding.placement.shortage import table_too_large, tables_too_large

# Tables are cut until no piece is longer than so many even shares.
FINENESS = (float("inf"), 1.0, 0.5, 0.25)
NEAR = 1.01  # a cutting this close to the best is taken if it makes fewer pieces


def greedy(demands: Sequence[Demand], chips: Chips, rules: CutRules = WHOLE_TABLES) -> Placement:
    """Return the tables placed longest first (Graham 1969), then exchanged, cut as far as `rules` allow.

    Without memory limits the busiest of N chips has at most 4/3 - 1/(3 N) of the least possible for
    the pieces; exchanges usually come within a thousandth. A table is cut when it fits no chip whole, or
    when it is longer than a few fractions of an even share; of those fractions the one that makes fewest
    pieces wins, if it comes within 1 % of the best. Raises InputError without tables or for two of one
    name, InfeasibleError when they do not fit.
    """
    return fewest([exchanged(start) for start in Problem(demands, chips, rules).starts()])


def fewest(placements: Sequence[Placement], near: float = NEAR) -> Placement:
    """Return the first placement, of those in order of their pieces, at most `near` times the best."""
    best = min(placement.busiest for placement in placements)
    return next(placement for placement in placements if placement.busiest <= near * best)


@dataclass(frozen=True)
class Problem:
    """Tables to place on chips under rules. Raises InputError without tables or for two of one name."""

    demands: Sequence[Demand]
    chips: Chips
    rules: CutRules

    def __post_init__(self) -> None:
        """Refuse nothing to place, and names that mean two tables."""
        if not self.demands:
            raise InputError("there is no table to place")
        names = sorted(demand.table for demand in self.demands)
        twice = next((name for name, other in pairwise(names) if name == other), None)
        if twice is not None:
            raise InputError(f'two tables are called "{twice}"')

    def starts(self) -> list[Placement]:
        """Return a longest-first placement for each fineness of cuts, fewest pieces first, at least one.

        Raises InfeasibleError when the tables do not fit.
        """
        choices = self.rules.choices(self.demands, self.chips.count)
        bound = lower_bound(choices, self.chips)
        cuttings = dict.fromkeys(self._cut(choices, fineness) for fineness in FINENESS)
        placed = [_placed(pieces, self.chips, bound) for pieces in sorted(cuttings, key=len)]
        fitting = [placement for placement in placed if placement is not None]
        if not fitting:
            raise InfeasibleError(tables_too_large(self.demands, self.chips))
        return fitting

    def _cut(self, choices: Sequence[Sequence[Choice]], fineness: float) -> tuple[Shard, ...]:
        """Return the pieces of all tables, none longer than `fineness` even shares if possible."""
        share = fineness * sum(demand.load for demand in self.demands) / self.chips.count
        pieces: list[Shard] = []
        for demand, table in zip(self.demands, choices, strict=True):
            fitting = [choice for choice in table if choice.largest <= self.chips.memory * (1 + ROUNDING)]
            if not fitting:
                least = min(choice.largest for choice in table)
                raise InfeasibleError(table_too_large(demand, least, self.chips))
            pieces += min(fitting, key=_cost(share)).pieces
        return tuple(pieces)


def _cost(longest: float) -> Callable[[Choice], tuple[float, float, int]]:
    """Return what to avoid in a choice: pieces too long, then load added by cutting, then pieces."""

    def cost(choice: Choice) -> tuple[float, float, int]:
        # Nine digits: sums of pieces differ from the whole by rounding, which is no cost.
        return max(choice.longest - longest, 0.0), float(f"{choice.total:.9g}"), len(choice.pieces)

    return cost


def _placed(pieces: Sequence[Shard], chips: Chips, bound: float) -> Placement | None:
    """Return the pieces placed longest first, or largest first where that leaves no room, or None."""
    for order in (_longest, _largest):
        shards = tuple(sorted(pieces, key=order, reverse=True))
        chip_of = _in_order(shards, chips)
        if chip_of is not None:
            return Placement(chips, shards, chip_of, bound, "greedy")
    return None


def _longest(shard: Shard) -> tuple[float, float]:
    return shard.load, shard.memory


def _largest(shard: Shard) -> tuple[float, float]:
    return shard.memory, shard.load


def _in_order(shards: Sequence[Shard], chips: Chips) -> tuple[int, ...] | None:
    """Return the chip of each shard: the least loaded with room, the first of equals; None without room."""
    loads, room = np.zeros(chips.count), np.full(chips.count, chips.memory * (1 + ROUNDING))
    placed: list[int] = []
    for shard in shards:
        chip = int(np.argmin(np.where(room >= shard.memory, loads, np.inf)))
        if room[chip] < shard.memory:
            return None
        loads[chip] += shard.load
        room[chip] -= shard.memory
        placed.append(chip)
    return tuple(placed)
