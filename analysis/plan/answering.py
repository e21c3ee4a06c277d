"""From a question to its answer: try, decide event by event or by proof, keep what nothing beats, advise."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import Any

from analysis.plan.advice import Change, changes, improvements, reasons
from analysis.plan.basis import Basis, basis, without_prices
from analysis.plan.candidates import Space
from analysis.plan.confirming import confirm
from analysis.plan.outcomes import Outcome
from analysis.plan.pareto import pareto
from analysis.plan.question import Question
from analysis.plan.searching import search
from analysis.sensitivity import Gain
from analysis.sweep.points import FAILED, WRONG, Record
from simulator.errors import InputError

COUNTED = ("tried", "failed", "wrong", "defects", "undecided", "refused", "broken", "reasons", "notes")
UNKNOWN = {
    "usd": "no price is known for some options; their cost is unknown and loses against any that is known",
    "kwh": "no power is known for some options; their energy is unknown and loses against any that is known",
}


@dataclass(frozen=True)
class Answered:
    """The answer: plans that nothing beats, fastest first, or what would make the question feasible.

    `chosen` is the place of the plan that `gains` speak of: the cheapest, or the fastest where no
    cost is known. `tried` counts candidates, `failed` those that cannot run, of which `wrong` are refused
    as input and `defects` failed for what is no fault of theirs; `refused` those that break a limit, when
    run or at their very best, and `broken` how many break which; `undecided` those that may be plans or the
    smaller change yet. `basis` is what the answer rests on.
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
    wrong: int = 0
    defects: int = 0
    undecided: int = 0

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
    undecided = confirm(trials)
    confirmed, decided = trials.known, [*trials.known, *trials.best]
    plans = pareto([one for one in confirmed if not one.over])
    place, failures = _chosen(plans, choose), trials.failures
    untried = Space(question).size - len(trials.tried) if question.spec.search else 0
    return Answered(
        name=question.name,
        plans=plans,
        chosen=place,
        gains=[] if place is None else improvements(question, plans[place]),
        changes=[] if plans else changes(confirmed),
        tried=len(trials.tried),
        failed=len(failures),
        refused=sum(bool(one.over) for one in decided),
        reasons=list(reasons(failures)),
        notes=[*_incomplete(undecided, untried, failures), *_notes(question, plans)],
        broken=_broken(decided),
        basis=basis(question),
        wrong=_count(failures, WRONG),
        defects=_count(failures, FAILED),
        undecided=undecided,
    )


def _count(failures: Sequence[Record], status: str) -> int:
    return sum(record["status"] == status for record in failures)


def _incomplete(undecided: int, untried: int, failures: Sequence[Record]) -> Iterator[str]:
    """Say what keeps the plans from being all that there are."""
    if undecided:
        yield (
            f"{undecided:,} candidates were not decided: neither run event by event nor proven to be worse "
            "than a plan that was; fewer options decide all"
        )
    if untried:
        yield f"{untried:,} candidates were not tried (`search`): nothing is said of them"
    if defects := _count(failures, FAILED):
        yield f"{defects:,} candidates failed for no fault of theirs: plans may be missing"


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
    counts = Counter(name for one in outcomes for name in dict.fromkeys(limit.name for limit in one.over))
    return dict(counts.most_common())


def _cheapest(plans: Sequence[Outcome]) -> int:
    known = [place for place, plan in enumerate(plans) if plan.usd is not None]
    return min(known, key=lambda place: plans[place].usd or 0.0, default=0)


def _notes(question: Question, plans: Sequence[Outcome]) -> list[str]:
    """Say what was assumed and what is not known."""
    found = [text for goal, text in UNKNOWN.items() if any(getattr(plan, goal) is None for plan in plans)]
    if not question.spec.limits.staleness_steps:
        found.append("only synchronous policies are allowed (limits.staleness_steps: 0)")
    if any(plan.record["interval_low_ms"] is None for plan in plans):
        found.append("no interval was asked for (run.interval in the scenario)")
    return found + [note for note in dict.fromkeys(without_prices(p.record["notes"]) for p in plans) if note]
