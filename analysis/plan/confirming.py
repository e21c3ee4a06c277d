"""Deciding candidates: each is run event by event, or proven to be worse than one that was, or over a limit.

Branch and bound. Estimates say what to run first and rule out nothing; what is ruled out is ruled out by the
best that a candidate can be (`Trials.best`), which no run undercuts.
"""

from collections.abc import Sequence
from typing import Protocol

from analysis.plan.advice import changes
from analysis.plan.candidates import Candidate
from analysis.plan.outcomes import Outcome
from analysis.plan.pareto import best_of_each, not_ruled_out, pareto

AT_ONCE = 16
IN_VAIN = 8  # after this many runs without a plan, one more is run at once: so rounds stay few
MOST_CONFIRMED = 256


class Deciding(Protocol):
    """Candidates of which some are confirmed; see `Trials`."""

    @property
    def known(self) -> Sequence[Outcome]:
        """What was confirmed, in the order in which candidates were tried."""

    @property
    def expected(self) -> Sequence[Outcome]:
        """What is expected of the others, in the same order."""

    @property
    def best(self) -> Sequence[Outcome]:
        """The best that each of the others can be, in the same order."""

    @property
    def order(self) -> dict[str, int]:
        """The place of each candidate in that order."""

    def confirm(self, candidates: Sequence[Candidate]) -> None:
        """Run candidates event by event."""


def confirm(trials: Deciding) -> int:
    """Decide all candidates of `trials`, as far as that takes no more than `MOST_CONFIRMED` runs.

    There is no such limit before there is a plan: no answer is "no" before every candidate was confirmed or
    proven to break one. Returns how many were not decided: they may be plans, or the smaller change.
    """
    while fresh := _wanted(trials):
        trials.confirm([one.candidate for one in fresh])
    return len(_undecided(trials))


def _wanted(trials: Deciding) -> list[Outcome]:
    """Return what is to be confirmed next, the most promising first."""
    undecided, ran = _undecided(trials), len(trials.known)
    planned, few = any(not one.over for one in trials.known), ran < MOST_CONFIRMED
    if planned:
        return _spread(_promising(trials, undecided), AT_ONCE) if few else []
    possible = undecided if few else [one for one in undecided if not one.over]
    promising = _spread(_promising(trials, possible), max(AT_ONCE, ran // IN_VAIN))
    return list({one.candidate.key: one for one in (*promising, *possible[: ran // IN_VAIN])}.values())


def _undecided(trials: Deciding) -> list[Outcome]:
    """Return the best of all that may be a plan yet; without any plan, what may be the smaller change."""
    plans, best = [one for one in trials.known if not one.over], trials.best
    possible = [one for one in best if not one.over]
    if plans:
        return not_ruled_out(possible, plans, trials.order)
    if possible:
        return possible
    open_, named = {one.candidate.key for one in best}, changes([*trials.known, *best])
    return [one.outcome for one in named if one.outcome.candidate.key in open_]


def _promising(trials: Deciding, undecided: Sequence[Outcome]) -> list[Outcome]:
    """Return those that nothing is expected to beat; where others are, those that may be the best."""
    keys = {one.candidate.key for one in undecided}
    allowed = [one for one in (*trials.known, *trials.expected) if not one.over]
    expected = [one for one in pareto(allowed) if one.candidate.key in keys]
    return expected or pareto(undecided)


def _spread(plans: Sequence[Outcome], most: int) -> list[Outcome]:
    """Return the best in each goal, and evenly spread ones besides, when there are too many for one round."""
    if len(plans) <= most:
        return list(plans)
    last = len(plans) - 1
    spread = [plans[round(place * last / (most - 1))] for place in range(most)]
    return list({one.candidate.key: one for one in (*best_of_each(plans), *spread)}.values())
