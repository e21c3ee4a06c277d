"""From a question to its answer: try, keep what nothing beats, confirm it event by event, advise."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import Any

from analysis.plan.advice import Change, changes, improvements, reasons
from analysis.plan.basis import Basis, basis
from analysis.plan.outcomes import Outcome, outcome_of
from analysis.plan.pareto import pareto
from analysis.plan.question import Question
from analysis.plan.searching import Trials, search
from analysis.sensitivity import Gain
from simulator.errors import InputError

MOST_CONFIRMED = 16
ROUNDS = 4
COUNTED = ("tried", "failed", "refused", "broken", "reasons", "notes")
UNKNOWN = {
    "usd": "no price is known for some options; their cost is unknown and loses against any that is known",
    "kwh": "no power is known for some options; their energy is unknown and loses against any that is known",
}


@dataclass(frozen=True)
class Answered:
    """The answer: plans that nothing beats, fastest first, or what would make the question feasible.

    `chosen` is the place of the plan that `gains` speak of: the cheapest, or the fastest where no
    cost is known. `tried` counts candidates, `failed` those that cannot run, `refused` those that
    break a limit, and `broken` how many break which. `basis` is what the answer rests on.
    """

    name: str
    plans: list[Outcome]
    chosen: int | None
    gains: list[Gain]
    changes: list[Change]
    tried: int
    failed: int
    refused: int
    reasons: list[str]
    notes: list[str]
    broken: dict[str, int]
    basis: Basis

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data."""
        return {
            "name": self.name,
            "feasible": bool(self.plans),
            "basis": self.basis.to_dict(),
            "plans": [plan.to_dict() for plan in self.plans],
            "chosen": self.chosen,
            "gains": [asdict(gain) for gain in self.gains],
            "changes": [{"allow": one.what, "plan": one.outcome.to_dict()} for one in self.changes],
            **{name: getattr(self, name) for name in COUNTED},
        }


def answer(
    question: Question,
    executor: Executor,
    choose: int | None = None,
    watch: Callable[[int, int], None] = lambda done, of: None,
) -> Answered:
    """Return the answer to `question`; `choose` (from 0) picks the plan to improve.

    `watch(done, of)` is called now and then with candidates tried and to be tried. The same question
    gives the same answer. Raises InputError when too many candidates are to be tried, and when there are
    not as many plans as `choose` asks for.
    """
    trials = search(question, executor, watch)
    allowed = [one for one in trials.outcomes if not one.over]
    confirmed = _confirmed(trials, trials.outcomes)
    plans = pareto([one for one in confirmed.values() if not one.over])
    place = _chosen(plans, choose)
    return Answered(
        name=question.name,
        plans=plans,
        chosen=place,
        gains=[] if place is None else improvements(question, plans[place]),
        changes=[] if plans else changes([confirmed.get(one.candidate.key, one) for one in trials.outcomes]),
        tried=len(trials.tried),
        failed=len(trials.failures),
        refused=len(trials.outcomes) - len(allowed),
        reasons=list(reasons(trials.failures)),
        notes=_notes(question, plans),
        broken=_broken(trials.outcomes),
        basis=basis(question),
    )


def _chosen(plans: Sequence[Outcome], choose: int | None) -> int | None:
    """Return the place of the plan to speak of; None without plans."""
    if not plans or choose is None:
        return _cheapest(plans) if plans else None
    if choose >= len(plans):
        there = f"are {len(plans)} plans" if len(plans) > 1 else "is 1 plan"
        raise InputError(f"--choose: there {there}, not {choose + 1}")
    return choose


def _broken(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return how many candidates break which limit, the commonest first; one may break several."""
    counts = Counter(name for one in outcomes for name in dict.fromkeys(name for name, _, _ in one.over))
    return dict(counts.most_common())


def _confirmed(trials: Trials, outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """Run what will be spoken of on the event engine, where stages share resources; return that by key.

    What turns out slower may be beaten then or break a limit, and others take its place: they are run, too,
    for a few rounds. Of more than MOST_CONFIRMED at a time, evenly spread ones are run.
    """
    found: dict[str, Outcome] = {}
    for _ in range(ROUNDS):
        known = [found.get(one.candidate.key, one) for one in outcomes]
        spoken = pareto([one for one in known if not one.over]) or [one.outcome for one in changes(known)]
        fresh = [one.candidate for one in _spread(spoken) if one.candidate.key not in found]
        records = trials.run(fresh, "events") if fresh else []
        for candidate, record in zip(fresh, records, strict=True):
            again = outcome_of(trials.question, candidate, record)
            assert again is not None, "what fits on one engine fits on the other"
            found[candidate.key] = again
    return found


def _spread(plans: Sequence[Outcome]) -> list[Outcome]:
    if len(plans) <= MOST_CONFIRMED:
        return list(plans)
    last = len(plans) - 1
    return [plans[round(place * last / (MOST_CONFIRMED - 1))] for place in range(MOST_CONFIRMED)]


def _cheapest(plans: Sequence[Outcome]) -> int:
    known = [place for place, plan in enumerate(plans) if plan.usd is not None]
    return min(known, key=lambda place: plans[place].usd or 0.0, default=0)


def _notes(question: Question, plans: Sequence[Outcome]) -> list[str]:
    """Say what was assumed and what is not known."""
    found = [text for goal, text in UNKNOWN.items() if any(getattr(plan, goal) is None for plan in plans)]
    if not question.spec.limits.staleness_steps:
        found.append("only synchronous policies are allowed (limits.staleness_steps: 0)")
    if any(plan.record["interval_low_ms"] is None for plan in plans):
        found.append("no interval: the scenario's parameters carry none")
    return found + list(dict.fromkeys(plan.record["notes"] for plan in plans if plan.record["notes"]))
