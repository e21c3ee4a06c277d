"""The outcomes that no other one beats in everything."""

from collections.abc import Sequence

from analysis.plan.outcomes import Outcome


def pareto(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes that none other dominates, by hours; of equal ones the first.

    One dominates another when it is at least as good in every goal that both know and better in one.
    """
    ranked = sorted(outcomes, key=lambda one: tuple(_known(goal) for goal in one.goals))
    kept: list[Outcome] = []
    for outcome in ranked:
        if not any(_dominates(other, outcome) for other in kept):
            kept = [other for other in kept if not _dominates(outcome, other)] + [outcome]
    return kept


def _known(goal: float | None) -> float:
    return float("inf") if goal is None else goal


def _dominates(one: Outcome, other: Outcome) -> bool:
    """Whether `one` is as good in all and better in some, or the same in everything."""
    return all(_known(mine) <= _known(theirs) for mine, theirs in zip(one.goals, other.goals, strict=True))
