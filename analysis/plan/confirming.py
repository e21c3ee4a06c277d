"""Confirming event by event what an answer is going to say, until it says nothing that was not confirmed."""

from collections.abc import Sequence

from analysis.plan.advice import changes
from analysis.plan.outcomes import Outcome
from analysis.plan.pareto import best_of_each, pareto
from analysis.plan.searching import Trials

AT_ONCE = 16
MOST_CONFIRMED = 256


def confirm(trials: Trials) -> int:
    """Run what will be spoken of on the event engine, where stages share resources; `trials` keeps it.

    What turns out slower may be beaten then or break a limit, and others take its place: they are run, too,
    until the plans that nothing beats are all confirmed. No answer is "no" before every candidate that keeps
    the limits without sharing was confirmed to break one. After `MOST_CONFIRMED` runs, once there is a plan,
    only the best in each goal are run. Returns how many plans are left that were not confirmed, and so are
    not told.
    """
    while fresh := _wanted(trials):
        trials.confirm([one.candidate for one in _spread(fresh)])
    return len(_unconfirmed(trials, pareto(_allowed(trials.known))))


def _wanted(trials: Trials) -> list[Outcome]:
    """Return what is to be confirmed next: plans, or what would make the question feasible."""
    known, enough = trials.known, len(trials.confirmed) >= MOST_CONFIRMED
    front = pareto(_allowed(known))
    if not front:
        return [] if enough else _unconfirmed(trials, [one.outcome for one in changes(known)])
    if enough and any(not one.over for one in trials.confirmed.values()):
        front = best_of_each(front)
    return _unconfirmed(trials, front)


def _allowed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if not one.over]


def _unconfirmed(trials: Trials, outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if one.candidate.key not in trials.confirmed]


def _spread(plans: Sequence[Outcome]) -> list[Outcome]:
    """Return the best in each goal, and evenly spread ones besides, when there are too many for one round."""
    if len(plans) <= AT_ONCE:
        return list(plans)
    last = len(plans) - 1
    spread = [plans[round(place * last / (AT_ONCE - 1))] for place in range(AT_ONCE)]
    return list({one.candidate.key: one for one in (*best_of_each(plans), *spread)}.values())
