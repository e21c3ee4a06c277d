"""The outcomes that no other one beats in everything."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from analysis.plan.outcomes import Outcome


def pareto(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes that none other dominates, by hours; of equal ones the first.

    One dominates another when it is at least as good in every goal and better in one. A goal that is not
    known counts as infinite: it loses against any that is known, and two that are not known are equal.
    Takes the time of sorting them.
    """
    front, kept = _Front(), []
    for outcome in sorted(outcomes, key=_goals):
        if not front.reaches(outcome):
            front.add(outcome)
            kept.append(outcome)
    return kept


def not_ruled_out(best: Sequence[Outcome], plans: Sequence[Outcome], order: dict[str, int]) -> list[Outcome]:
    """Return those of candidates at their `best` that no plan stands before, whatever a run of them gives.

    A plan does that is as good in everything; of equal ones the first in `order`, as in `pareto`.
    """
    kept = pareto(sorted(plans, key=lambda plan: order[plan.candidate.key]))
    alike, front, ruled_out = {_goals(plan): order[plan.candidate.key] for plan in kept}, _Front(), set()
    for one in sorted([*kept, *best], key=_goals):  # stable: plans come before their equals
        key, goals = one.candidate.key, _goals(one)
        if order[key] == alike.get(goals):
            front.add(one)
        elif alike[goals] < order[key] if goals in alike else front.reaches(one):
            ruled_out.add(key)
    return [one for one in best if one.candidate.key not in ruled_out]


class _Front:
    """Of outcomes that came in the order of their hours, the least in USD and kWh: by USD, less kWh each."""

    def __init__(self) -> None:
        self._usd: list[float] = []
        self._kwh: list[float] = []

    def reaches(self, outcome: Outcome) -> bool:
        """Whether one of those before is as good in everything."""
        _, usd, kwh = _goals(outcome)
        place = bisect_right(self._usd, usd)
        return place > 0 and self._kwh[place - 1] <= kwh

    def add(self, outcome: Outcome) -> None:
        """Let an outcome follow that none of those before reaches."""
        _, usd, kwh = _goals(outcome)
        first = last = bisect_left(self._usd, usd)
        while last < len(self._usd) and self._kwh[last] >= kwh:
            last += 1
        self._usd[first:last], self._kwh[first:last] = [usd], [kwh]


def best_of_each(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the best outcome in each goal that is known of any, each once; of equal ones the first."""
    found: dict[int, Outcome] = {}
    for place in range(len(outcomes[0].goals) if outcomes else 0):
        best = min(range(len(outcomes)), key=lambda one: _known(outcomes[one].goals[place]))
        if outcomes[best].goals[place] is not None:
            found[best] = outcomes[best]
    return list(found.values())


def _known(goal: float | None) -> float:
    return float("inf") if goal is None else goal


def _goals(outcome: Outcome) -> tuple[float, float, float]:
    hours, usd, kwh = outcome.goals
    return _known(hours), _known(usd), _known(kwh)
