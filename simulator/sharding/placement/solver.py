"""Placement as constraints: OR-tools' CP-SAT chooses cuts and chips, the busiest chip's load being least."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from simulator.errors import InputError
from simulator.sharding.placement.shard import Shard

LOAD_UNITS = 2**24  # whole numbers in which loads are counted, up to the busiest chip known
MEMORY_UNITS = 2**40  # and memory, up to that of a chip


@dataclass(frozen=True)
class Item:
    """Something to place: `choices` are ways to cut it, each with the chips it was on, if it was."""

    choices: tuple[tuple[Shard, ...], ...]
    now: int
    chips: tuple[int, ...]


@dataclass(frozen=True)
class Limits:
    """A chip's `memory` in bytes (of `chips` chips), a `floor` no load can undercut, and `seconds` to solve.

    `effort` is CP-SAT's deterministic time: where it stops the search before the clock does, the
    answer is the same on any machine.
    """

    chips: int
    memory: float
    floor: float
    seconds: float
    effort: float


@dataclass(frozen=True)
class Answer:
    """The shards with their chips, the load of the busiest that CP-SAT counts, and its proven bound."""

    shards: tuple[Shard, ...]
    chip_of: tuple[int, ...]
    bound: float


def _cp_model() -> Any:
    """Return OR-tools' CP-SAT. Raises InputError where it is not installed."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise InputError(
            'placement by constraints needs the extra "planner": pip install "recscale[planner]"'
        ) from None
    return cp_model


def solve(items: Sequence[Item], limits: Limits) -> Answer | None:
    """Return the best placement of `items` found, or None when none was found in time.

    Shards alike within an item are counted per chip rather than told apart, which leaves fewer
    variables and no symmetry between them. Raises InputError without OR-tools.
    """
    return _Model(_cp_model(), items, limits).answer()


@dataclass(frozen=True)
class _Count:
    """How many of some shards alike lie on each chip: one variable per chip."""

    shards: tuple[Shard, ...]
    on_chip: tuple[Any, ...]


class _Model:
    """Variables, constraints and hint of one placement problem."""

    def __init__(self, library: Any, items: Sequence[Item], limits: Limits) -> None:
        self.library, self.limits = library, limits
        self.model = library.CpModel()
        self.counts: list[_Count] = []
        self.unit = _busiest(items, limits.chips) / LOAD_UNITS or 1.0
        for item in items:
            self._add(item)
        self._bind()

    def _add(self, item: Item) -> None:
        """Choose exactly one cut, and a chip for each of its pieces."""
        chosen = [self.model.new_bool_var("") for _ in item.choices]
        self.model.add_exactly_one(chosen)
        for number, (picked, pieces) in enumerate(zip(chosen, item.choices, strict=True)):
            current = number == item.now
            self.model.add_hint(picked, current)
            places = zip(pieces, item.chips if current else [-1] * len(pieces), strict=True)
            ordered = sorted(places, key=lambda place: (place[0].load, place[0].memory))
            for _, alike in groupby(ordered, key=lambda place: (place[0].load, place[0].memory)):
                self._count(picked, list(alike))

    def _count(self, picked: Any, places: list[tuple[Shard, int]]) -> None:
        here = [chip for _, chip in places]
        on_chip = tuple(self.model.new_int_var(0, len(places), "") for _ in range(self.limits.chips))
        for chip, variable in enumerate(on_chip):
            self.model.add_hint(variable, here.count(chip))
        self.model.add(sum(on_chip) == len(places) * picked)
        self.counts.append(_Count(tuple(shard for shard, _ in places), on_chip))

    def _bind(self) -> None:
        """Bound every chip's load by the busiest and its memory by what there is; minimise the busiest."""
        most = 2 * LOAD_UNITS
        busiest = self.model.new_int_var(min(int(self.limits.floor / self.unit), most), most, "")
        loads = [round(count.shards[0].load / self.unit) for count in self.counts]
        sizes = [int(count.shards[0].memory / self.limits.memory * MEMORY_UNITS) for count in self.counts]
        for chip in range(self.limits.chips):
            variables = [count.on_chip[chip] for count in self.counts]
            self.model.add(self._total(variables, loads) <= busiest)
            if any(sizes):
                self.model.add(self._total(variables, sizes) <= MEMORY_UNITS)
        self.model.minimize(busiest)

    def _total(self, variables: list[Any], weights: list[int]) -> Any:
        return self.library.LinearExpr.weighted_sum(variables, weights)

    def answer(self) -> Answer | None:
        """Solve, and read the placement off; None when nothing was found in time."""
        solver = self.library.CpSolver()
        solver.parameters.max_time_in_seconds = max(self.limits.seconds, 0.01)
        solver.parameters.max_deterministic_time = self.limits.effort
        solver.parameters.num_workers = 8
        solver.parameters.interleave_search = True
        solver.parameters.relative_gap_limit = 5e-5
        status = _solved(solver, self.model)
        if status not in (self.library.OPTIMAL, self.library.FEASIBLE):
            return None
        placed = [(shard, chip) for count in self.counts for shard, chip in _spread(count, solver)]
        shards, chip_of = zip(*placed, strict=True)
        # Rounding to units moves a chip's load by half a unit per shard at most.
        bound = (solver.best_objective_bound - len(placed) / 2) * self.unit
        return Answer(shards, chip_of, bound)


def _solved(solver: Any, model: Any) -> Any:
    """Return the status of the search, made in a thread of its own so that an interrupt can end it.

    CP-SAT's own handler would take the interrupt for the end of the time and answer as if nothing was.
    """
    solver.parameters.catch_sigint_signal = False
    with ThreadPoolExecutor(1) as pool:
        search = pool.submit(solver.solve, model)
        try:
            return search.result()
        except KeyboardInterrupt:
            solver.stop_search()
            raise


def _spread(count: _Count, solver: Any) -> list[tuple[Shard, int]]:
    """Return the shards of one kind with their chips."""
    chips = [chip for chip, variable in enumerate(count.on_chip) for _ in range(solver.value(variable))]
    return list(zip(count.shards, chips, strict=True)) if chips else []


def _busiest(items: Sequence[Item], chips: int) -> float:
    """Return the load of the busiest chip as the items lie now."""
    loads = [0.0] * chips
    for item in items:
        for shard, chip in zip(item.choices[item.now], item.chips, strict=True):
            loads[chip] += shard.load
    return max(loads)
