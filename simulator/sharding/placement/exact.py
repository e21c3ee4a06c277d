"""Placement with a proof, or with a stated gap, within a time limit."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.errors import InputError
from simulator.sharding.placement.cuts import CutRules
from simulator.sharding.placement.exchange import exchanged
from simulator.sharding.placement.greedy import Problem, fewest
from simulator.sharding.placement.placed import PROVEN, ROUNDING, Chips, Placement
from simulator.sharding.placement.shard import Demand, Shard
from simulator.sharding.placement.solver import Item, Limits, solve
from simulator.units import shown

WHOLE_MODEL = 3000  # counts of shards per chip; CP-SAT takes problems of up to so many as one model
NEIGHBOURHOOD = 4  # chips solved together in larger ones
EFFORT = 0.15  # deterministic time of one neighbourhood
LONGEST_SEARCH = 3600  # seconds
PATIENCE = 24  # neighbourhoods without progress before giving up


def optimized(
    demands: Sequence[Demand], chips: Chips, rules: CutRules | None = None, seconds: float = 4.5
) -> Placement:
    """Return the placement with the least busiest chip that is found in about `seconds`.

    Longest-first placements of several finenesses are improved by exchanges; then CP-SAT chooses cuts
    and chips together. A small problem is one model, whose bound becomes the placement's. In a larger
    one the busiest chip is solved anew together with a few others, again and again; `gap` then says
    how far the result is from the bound at most. Raises InputError without OR-tools and for a time
    beyond an hour, InfeasibleError when the tables do not fit.
    """
    if not 0 < seconds <= LONGEST_SEARCH:  # so written, it refuses what is no number too
        raise InputError(f"a search takes more than 0 s and at most {LONGEST_SEARCH} s, not {shown(seconds)}")
    deadline = time.monotonic() + seconds
    problem = Problem(demands, chips, rules or CutRules())
    start = fewest([exchanged(placement) for placement in problem.starts()], 1 + PROVEN)
    search = _Search(problem, start, deadline)
    return search.as_one_model() if search.size <= WHOLE_MODEL else search.by_neighbourhoods()


@dataclass
class _Search:
    """The best placement so far and what may be changed about it until the `deadline`."""

    problem: Problem
    best: Placement
    deadline: float

    def __post_init__(self) -> None:
        demands, rules = self.problem.demands, self.problem.rules
        choices = rules.choices(demands, self.best.chips.count)
        self.choices = {
            demand.table: [choice.pieces for choice in table]
            for demand, table in zip(demands, choices, strict=True)
        }

    @property
    def size(self) -> int:
        """Return the variables of the whole problem, about."""
        return sum(map(len, self.choices.values())) * self.best.chips.count

    @property
    def left(self) -> float:
        """Return the seconds left."""
        return self.deadline - time.monotonic()

    def as_one_model(self) -> Placement:
        """Solve everything at once, unless there is nothing left to gain."""
        chips = list(range(self.best.chips.count))
        answer = (
            None if self.best.proven else solve(self._items(chips), self._limits(chips, self.best.bound, 1e3))
        )
        bound = max(answer.bound, self.best.bound) if answer else self.best.bound
        best = replace(self.best, bound=bound, method="cp-sat")
        found = replace(best, shards=answer.shards, chip_of=answer.chip_of) if answer else best
        return min(best, found, key=lambda placement: placement.busiest)

    def by_neighbourhoods(self) -> Placement:
        """Improve the busiest chip with others until the gap is closed, time is up or nothing helps."""
        idle, groups = 0, self._neighbourhoods()
        while not self.best.proven and self.left > 0 and idle < PATIENCE:
            idle = 0 if self._improve(next(groups)) else idle + 1
        return replace(self.best, method="cp-sat neighbourhoods")

    def _neighbourhoods(self) -> Iterator[list[int]]:
        """Yield the busiest chip with the idlest ones, then with others in turn, always from new loads."""
        turn = 0
        while True:
            *others, busiest = np.argsort(self.best.loads, kind="stable").tolist()
            first = turn * (NEIGHBOURHOOD - 1) % len(others)
            yield sorted([busiest, *(others[first:] + others[:first])[: NEIGHBOURHOOD - 1]])
            turn += 1

    def _improve(self, chips: list[int]) -> bool:
        """Solve some chips anew; return whether the busiest of them has less to do now."""
        floor = float(self.best.loads[chips].mean())  # cutting anew could undercut it, by what cuts cost
        answer = solve(self._items(chips), self._limits(chips, floor, EFFORT))
        if answer is None:
            return False
        kept = [pair for pair in self._pairs() if pair[1] not in chips]
        placed = [*kept, *zip(answer.shards, (chips[chip] for chip in answer.chip_of), strict=True)]
        shards, chip_of = zip(*placed, strict=True)
        found = replace(self.best, shards=shards, chip_of=chip_of)
        better = bool(found.loads[chips].max() < self.best.loads[chips].max() * (1 - ROUNDING))
        self.best = found if better else self.best
        return better

    def _pairs(self) -> Iterator[tuple[Shard, int]]:
        return zip(self.best.shards, self.best.chip_of, strict=True)

    def _items(self, chips: list[int]) -> list[Item]:
        """Return what lies on `chips`: tables wholly there with all their cuts, other pieces as they are."""
        by_table: dict[str, list[tuple[Shard, int]]] = {}
        for shard, chip in self._pairs():
            by_table.setdefault(shard.table, []).append((shard, chip))
        place = {chip: n for n, chip in enumerate(chips)}
        items: list[Item] = []
        for table, pieces in by_table.items():
            inside = [(shard, place[chip]) for shard, chip in pieces if chip in place]
            items += (
                self._free(table, inside, len(chips)) if len(inside) == len(pieces) else map(_fixed, inside)
            )
        return items

    def _free(self, table: str, pieces: list[tuple[Shard, int]], chips: int) -> list[Item]:
        """Return a table that may be cut anew into at most one piece per chip; or as it is."""
        ordered = sorted(pieces, key=lambda piece: (piece[0].rows.start, piece[0].columns.start))
        now = tuple(shard for shard, _ in ordered)
        choices = [choice for choice in self.choices[table] if len(choice) <= chips or choice == now]
        return [Item(tuple(choices), choices.index(now), tuple(chip for _, chip in ordered))]

    def _limits(self, chips: list[int], floor: float, effort: float) -> Limits:
        return Limits(len(chips), self.best.chips.memory, floor, self.left, effort)


def _fixed(piece: tuple[Shard, int]) -> Item:
    shard, chip = piece
    return Item(((shard,),), 0, (chip,))
