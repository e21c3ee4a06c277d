"""What to do next: which resource to improve for a chosen plan, and what would make a question feasible."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from analysis.plan.outcomes import Limit, Outcome
from analysis.plan.question import Question
from analysis.sensitivity import Gain, gains
from analysis.sweep.points import Record, at_point


@dataclass(frozen=True)
class Change:
    """One way to make a question feasible: what to allow, and the plan that then does it.

    Where the plan breaks a limit on what is not known of it, `known` is false: it may do already.
    """

    what: str
    outcome: Outcome

    @property
    def known(self) -> bool:
        """Whether all that its limits are about is known."""
        return _is_known(self.outcome)


def improvements(question: Question, outcome: Outcome) -> list[Gain]:
    """Return what 10 % more of each physical parameter brings to the chosen plan, most first."""
    return gains(at_point(question.base, outcome.candidate.settings))


def changes(outcomes: Sequence[Outcome]) -> list[Change]:
    """Return the smallest changes of limits under which some plan is allowed, fewest limits first.

    For each set of limits that some plan breaks, the plan that breaks it by the smallest factor; plans of
    which something limited is not known stand last. Outcomes that break nothing are none of its business.
    """
    broken = [one for one in outcomes if one.over]
    known, unknown = ([one for one in broken if _is_known(one) is whether] for whether in (True, False))
    return [Change(_in_words(one), one) for one in (*_nearest(known), *_nearest(unknown))]


def _is_known(outcome: Outcome) -> bool:
    return all(limit.has is not None for limit in outcome.over)


def _nearest(outcomes: Sequence[Outcome]) -> list[Outcome]:
    nearest: dict[tuple[str, ...], Outcome] = {}
    for one in outcomes:
        broken = tuple(sorted({limit.name for limit in one.over}))
        if broken not in nearest or _excess(one) < _excess(nearest[broken]):
            nearest[broken] = one
    fewest = min((len(broken) for broken in nearest), default=0)
    return sorted((one for broken, one in nearest.items() if len(broken) == fewest), key=_excess)


def _excess(outcome: Outcome) -> float:
    """Return the product of what the limits are exceeded by."""
    return prod(limit.excess for limit in outcome.over)


def _in_words(outcome: Outcome) -> str:
    return " and ".join(map(_limit_in_words, outcome.over))


def _limit_in_words(limit: Limit) -> str:
    allowed = _amount(limit.allowed)
    if limit.has is None:
        return f"{limit.name} not known (`money` of the option), at most {allowed} allowed"
    return f"{_amount(limit.has)} {limit.name} instead of {allowed}"


def _amount(value: float) -> str:
    """Return a number with as many digits as tell it from a limit that it just misses."""
    return f"{value:,.0f}" if abs(value) >= 1e6 else f"{value:,.6g}"


def reasons(failures: Sequence[Record], most: int = 5) -> Iterator[str]:
    """Yield why candidates cannot run, the commonest reasons first, with how many it stops."""
    counts = Counter(str(record["error"]) for record in failures)
    for reason, count in counts.most_common(most):
        yield f"{count:,} x {reason}"
