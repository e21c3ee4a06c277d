"""Trying candidates: all of them side by side, or those that Optuna's sampler picks."""

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field
from typing import Any

from analysis.plan.candidates import Candidate, Space
from analysis.plan.expecting import at_best, expect_task
from analysis.plan.outcomes import Outcome, outcome_of
from analysis.plan.question import Question, SearchSpec
from analysis.sweep.points import DONE, FAILED, Record, Task, failure, run_task
from analysis.sweep.running import LOST
from simulator.errors import InputError

PER_TASK = 8


@dataclass
class Trials:
    """What was tried: candidates and what is expected of them by key, each candidate once.

    `confirmed` holds the outcomes of those that were run event by event, by key.
    """

    question: Question
    executor: Executor
    watch: Callable[[int, int], None]
    tried: dict[str, tuple[Candidate, Record]] = field(default_factory=dict)
    confirmed: dict[str, Outcome] = field(default_factory=dict)
    _worked_out: dict[tuple[str, bool], Outcome | None] = field(default_factory=dict)

    def run(self, candidates: Sequence[Candidate], events: bool, per_task: int = PER_TASK) -> list[Record]:
        """Return the records of `candidates`, side by side: run event by event, or what is expected of them.

        What was with a process that died is run again alone; what kills it then, too, has failed.
        """
        space, base = Space(self.question), self.question.base
        engine, work = ("events", run_task) if events else ("vector", expect_task)
        points = [space.point(candidate, engine) for candidate in candidates]
        starts = range(0, len(points), per_task)
        tasks = [Task(base, engine, tuple(points[start : start + per_task])) for start in starts]
        found: list[Record] = []
        for task, future in [(task, self.executor.submit(work, task)) for task in tasks]:
            found += self._came_back(task, future)
            self.watch(len(self.tried) + len(found), self._in_all(len(points)))
        return found

    def _came_back(self, task: Task, future: "Future[list[Record]]") -> list[Record]:
        try:
            return future.result()
        except BrokenExecutor:
            alone = [Task(task.base, task.engine, (point,)) for point in task.points]
            return [record for one in alone for record in self._alone(one)]

    def _alone(self, task: Task) -> list[Record]:
        work = run_task if task.engine == "events" else expect_task
        try:
            return self.executor.submit(work, task).result()
        except BrokenExecutor:
            return [failure(task.points[0], FAILED, LOST)]

    def _in_all(self, now: int) -> int:
        search = self.question.spec.search
        return max(search.trials if search else 0, len(self.tried) + now)

    def try_all(self, candidates: Sequence[Candidate]) -> None:
        """Try those that were not tried yet."""
        fresh = list({one.key: one for one in candidates if one.key not in self.tried}.values())
        for candidate, record in zip(fresh, self.run(fresh, events=False), strict=True):
            self.tried[candidate.key] = candidate, record

    def confirm(self, candidates: Sequence[Candidate]) -> None:
        """Run candidates event by event; one that cannot run so joins the failures."""
        for candidate, record in zip(candidates, self.run(candidates, events=True, per_task=1), strict=True):
            outcome = outcome_of(self.question, candidate, record)
            if outcome is None:
                self.tried[candidate.key] = candidate, record
            else:
                self.confirmed[candidate.key] = outcome

    @property
    def known(self) -> list[Outcome]:
        """What was confirmed, in the order in which candidates were tried."""
        return [self.confirmed[key] for key in self.tried if key in self.confirmed]

    @property
    def expected(self) -> list[Outcome]:
        """What is expected of the other candidates that may run: an estimate, to be believed of none."""
        return [found for one in self._open if (found := self._outcome(*one, at_its_best=False))]

    @property
    def best(self) -> list[Outcome]:
        """The same candidates at the best that they can be: no run gives less of anything that counts."""
        return [found for one in self._open if (found := self._outcome(*one, at_its_best=True))]

    def _outcome(self, candidate: Candidate, record: Record, at_its_best: bool) -> Outcome | None:
        """Return what is expected of an open candidate, or the best of it: worked out once, as it stays."""
        which = candidate.key, at_its_best
        if which not in self._worked_out:
            told = at_best(record) if at_its_best else record
            self._worked_out[which] = outcome_of(self.question, candidate, told)
        return self._worked_out[which]

    @property
    def order(self) -> dict[str, int]:
        """The place of each candidate in the order in which they were tried."""
        return {key: place for place, key in enumerate(self.tried)}

    @property
    def _open(self) -> list[tuple[Candidate, Record]]:
        return [
            one for key, one in self.tried.items() if key not in self.confirmed and one[1]["status"] == DONE
        ]

    @property
    def failures(self) -> list[Record]:
        """The records of all that cannot."""
        return [record for _, record in self.tried.values() if record["status"] != DONE]


def search(question: Question, executor: Executor, watch: Callable[[int, int], None]) -> Trials:
    """Try the candidates of `question`. Raises InputError when a search needs what is not installed."""
    trials = Trials(question, executor, watch)
    if question.spec.search is None:
        trials.try_all(Space(question).every())
    else:
        _sampled(trials, question.spec.search)
    return trials


def _sampled(trials: Trials, settings: SearchSpec) -> None:
    """Let Optuna choose, in rounds of fixed size so that the answer does not depend on the machine."""
    study, space = _study(settings), Space(trials.question)
    left = settings.trials
    while left > 0:
        asked = [study.ask() for _ in range(min(PER_TASK, left))]
        candidates = [_choice(space, trial) for trial in asked]
        trials.try_all(candidates)
        for trial, candidate in zip(asked, candidates, strict=True):
            study.tell(trial, *_told(trials, candidate))
        left -= len(asked)


def _study(settings: SearchSpec) -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError('a search needs the extra "planner": pip install "recscale[planner]"') from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=settings.seed, n_startup_trials=2 * PER_TASK)
    return optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)


def _choice(space: Space, trial: Any) -> Candidate:
    return space.at(
        tuple(
            axis[trial.suggest_int(f"axis {place}", 0, len(axis) - 1)]
            for place, axis in enumerate(space.axes)
        )
    )


def _told(trials: Trials, candidate: Candidate) -> tuple[list[float] | None, Any]:
    """Return estimated hours and dollars to guide the sampler, or that the candidate cannot be a plan."""
    from optuna.trial import TrialState

    _, record = trials.tried[candidate.key]
    outcome = outcome_of(trials.question, candidate, record)
    best = outcome and outcome_of(trials.question, candidate, at_best(record))
    if outcome is None or best is None or best.over:
        return None, TrialState.FAIL
    return [outcome.hours, outcome.hours if outcome.usd is None else outcome.usd], TrialState.COMPLETE
