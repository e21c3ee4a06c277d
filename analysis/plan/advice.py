"""What to do next: which resource to improve for a chosen plan, and what would make a question feasible."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.plan.outcomes import Outcome
from analysis.plan.question import Question
from analysis.sensitivity import Gain, gains
from analysis.sweep.points import Record, at_point
from simulator.scenario.nominal import nominal_bottleneck


@dataclass(frozen=True)
class Change:
    """One way to make a question feasible: what to allow, and the plan that then does it."""

    what: str
    outcome: Outcome


def improvements(question: Question, outcome: Outcome) -> list[Gain]:
    """Return what 10 % more of each physical parameter brings to the chosen plan, most first."""
    scenario = at_point(question.base, outcome.candidate.settings)
    return gains(scenario, nominal_bottleneck(scenario))


def changes(outcomes: Sequence[Outcome]) -> list[Change]:
    """Return the smallest changes of limits under which some plan is allowed, fewest limits first.

    For each set of limits that some plan breaks, the plan that breaks it by the smallest factor.
    """
    nearest: dict[tuple[str, ...], Outcome] = {}
    for outcome in outcomes:
        broken = tuple(sorted({name for name, _, _ in outcome.over}))
        if broken not in nearest or _excess(outcome) < _excess(nearest[broken]):
            nearest[broken] = outcome
    fewest = min((len(broken) for broken in nearest), default=0)
    found = [one for broken, one in nearest.items() if len(broken) == fewest]
    return [Change(_in_words(one), one) for one in sorted(found, key=_excess)]


def _excess(outcome: Outcome) -> float:
    """Return the product of has over allowed; a limit of 0 counts what is over it."""
    product = 1.0
    for _, has, allowed in outcome.over:
        product *= has / allowed if allowed else 1.0 + has
    return product


def _in_words(outcome: Outcome) -> str:
    return " and ".join(f"{has:,.4g} {name} instead of {allowed:,.4g}" for name, has, allowed in outcome.over)


def reasons(failures: Sequence[Record], most: int = 5) -> Iterator[str]:
    """Yield why candidates cannot run, the commonest reasons first, with how many it stops."""
    counts = Counter(str(record["error"]) for record in failures)
    for reason, count in counts.most_common(most):
        yield f"{count:,} x {reason}"
