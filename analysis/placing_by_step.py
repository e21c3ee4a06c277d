"""Placements chosen by the step that a run predicts with them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from analysis.placed_steps import Candidate, PlacedSteps
from analysis.placing import Placing, PlacingProblem, placed
from analysis.planning import PlacingRequest, allowed_cuts, planner
from analysis.sharding_parts import placed_part, written
from analysis.table_times import TableTimes
from simulator.errors import InfeasibleError
from simulator.scenario import Scenario, run_scenario
from simulator.sharding.placement import Chips, CutRules, Demand, Placement, judged
from simulator.sharding.placement.cuts import NARROWEST
from simulator.sharding.placement.placed import lower_bound

FINER = (32, 8)  # columns of the narrowest piece, beside what TorchRec's planner allows
NEAR = 1.002  # a placement whose step comes this close to the best is taken if it has fewer pieces


def placed_by_step(scenario: Scenario, request: PlacingRequest) -> Placing:
    """Return the placement with the shortest predicted step among a few finalists.

    They have the least busiest chip by bytes on the network, or by the time of its rows (`TableTimes`) with
    pieces of several widths; each is run by the engine that `run` uses, and so is the scenario as it
    stands. By a log (`request.keys`) bytes alone decide: a run knows no other keys than the scenario's.
    Raises what `placed` does.
    """
    if request.keys is not None:
        return placed(scenario, request)
    return _Finals(PlacingProblem(scenario), request).best()


@dataclass(frozen=True, eq=False)
class _Final:
    """A placement with loads in bytes, the same with loads in seconds, and what it was made for."""

    placing: Placing
    linear: Placement
    objective: str
    narrowest: int

    def run(self) -> float:
        """Return its step in ms."""
        part = written(placed_part(self.placing), "placed")
        return _step_ms(self.placing.scenario.with_overrides([f"sharding={part}"]))


@dataclass(frozen=True, eq=False)
class _Finals:
    """The finalists of a problem."""

    problem: PlacingProblem
    request: PlacingRequest

    def best(self) -> Placing:
        """Return the finalist with the shortest step, of those that fit."""
        before = _step_or_none(self.problem.scenario)
        runs = [(final, final.run()) for final in self._distinct()]
        runs.sort(key=lambda one: len(one[0].placing.placement.shards))
        shortest = min(step for _, step in runs)
        final, after = next(one for one in runs if one[1] <= NEAR * shortest)
        tried = tuple(
            Candidate(one.objective, one.narrowest, len(one.placing.placement.shards), step)
            for one, step in runs
        )
        return replace(final.placing, steps=PlacedSteps(before, after, final.linear, tried))

    def _distinct(self) -> list[_Final]:
        """Return finalists that differ. Raises the first one's InfeasibleError where none fits."""
        found: dict[object, _Final] = {}
        refused: list[InfeasibleError] = []
        for objective, narrowest in self._kinds():
            try:
                final = self._final(objective, narrowest)
            except InfeasibleError as error:  # finer cuts may fit all the same
                refused.append(error)
                continue
            placement = final.placing.placement
            pieces = [
                (s.table, s.rows, s.columns, c)
                for s, c in zip(placement.shards, placement.chip_of, strict=True)
            ]
            found.setdefault(tuple(sorted(pieces, key=repr)), final)
        if not found:
            raise refused[-1]
        return list(found.values())

    def _kinds(self) -> Iterator[tuple[str, int]]:
        yield "bytes", NARROWEST
        for narrowest in (NARROWEST,) if self.request.whole else (NARROWEST, *FINER):
            yield "seconds", narrowest

    def _final(self, objective: str, narrowest: int) -> _Final:
        """Return the placement that minimises one objective, with loads and bounds by both."""
        problem, chips = self.problem, Chips(self.problem.members, self.problem.room)
        in_bytes, in_seconds = self._demands
        aim, other = (in_bytes, in_seconds) if objective == "bytes" else (in_seconds, in_bytes)
        cuts = (problem.exchange_sums, narrowest)
        seconds = self.request.seconds / (2 + len(FINER))
        made = planner(replace(self.request, seconds=seconds), *cuts)(aim, chips)
        rules = allowed_cuts(self.request, aim, chips, cuts)
        also = replace(judged(made, other), bound=_bound(rules, other, chips))
        placement, linear = (made, also) if objective == "bytes" else (also, made)
        return _Final(Placing(problem.scenario, problem.memory, placement), linear, objective, narrowest)

    @cached_property
    def _demands(self) -> tuple[tuple[Demand, ...], tuple[Demand, ...]]:
        """Return what tables ask for in bytes, and in seconds."""
        tables = self.problem.tables
        in_bytes = self.problem.demands(tables)
        return in_bytes, TableTimes(self.problem.scenario).demands(in_bytes, tables)


def _bound(rules: CutRules, demands: Sequence[Demand], chips: Chips) -> float:
    return lower_bound(rules.choices(demands, chips.count), chips)


def _step_ms(scenario: Scenario) -> float:
    return float(run_scenario(scenario).report.step_ms["mean"])


def _step_or_none(scenario: Scenario) -> float | None:
    """Return the step, or None where the scenario does not fit."""
    try:
        return _step_ms(scenario)
    except InfeasibleError:
        return None
