"""The outcomes that no other one beats in everything."""

from collections.abc import Sequence

from analysis.plan.outcomes import Outcome


def pareto(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes that none other dominates, by hours; of equal ones the first.

    One dominates another when it is at least as good in every goal and better in one. A goal that is not
    known counts as infinite: it loses against any that is known, and two that are not known are equal.
    """
    ranked = sorted(outcomes, key=lambda one: tuple(_known(goal) for goal in one.goals))
    kept: list[Outcome] = []
    for outcome in ranked:
        if not any(_dominates(other, outcome) for other in kept):
            kept = [other for other in kept if not _dominates(outcome, other)] + [outcome]
    return kept


def rules_out(plan: Outcome, best: Outcome, order: dict[str, int]) -> bool:
    """Whether a plan stands before a candidate that is as good as `best` at most, in everything.

    Of equal ones the first in `order` stands, as in `pareto`.
    """
    if not _dominates(plan, best):
        return False
    alike = all(_known(mine) == _known(other) for mine, other in zip(plan.goals, best.goals, strict=True))
    return not alike or order[plan.candidate.key] < order[best.candidate.key]


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


def _dominates(one: Outcome, other: Outcome) -> bool:
    """Whether `one` is as good in all and better in some, or the same in everything."""
    return all(_known(mine) <= _known(theirs) for mine, theirs in zip(one.goals, other.goals, strict=True))
