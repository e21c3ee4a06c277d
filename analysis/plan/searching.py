"""Trying candidates: all of them side by side, or those that Optuna's sampler picks."""

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field
from typing import Any

from analysis.plan.candidates import Candidate, Space
from analysis.plan.outcomes import Outcome, outcome_of
from analysis.plan.question import Question, SearchSpec
from analysis.sweep.points import DONE, FAILED, Record, Task, failure, run_task
from analysis.sweep.running import LOST
from simulator.errors import InputError

PER_TASK = 8


@dataclass
class Trials:
    """What was tried: candidates and their records by key, each candidate once.

    `confirmed` holds the outcomes of those that were run event by event, too, by key.
    """

    question: Question
    executor: Executor
    watch: Callable[[int, int], None]
    tried: dict[str, tuple[Candidate, Record]] = field(default_factory=dict)
    confirmed: dict[str, Outcome] = field(default_factory=dict)

    def run(self, candidates: Sequence[Candidate], engine: str, per_task: int = PER_TASK) -> list[Record]:
        """Return the records of `candidates`, run side by side on `engine`.

        What was with a process that died is run again alone; what kills it then, too, has failed.
        """
        space, base = Space(self.question), self.question.base
        points = [space.point(candidate, engine) for candidate in candidates]
        starts = range(0, len(points), per_task)
        tasks = [Task(base, engine, tuple(points[start : start + per_task])) for start in starts]
        found: list[Record] = []
        for task, future in [(task, self.executor.submit(run_task, task)) for task in tasks]:
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
        try:
            return self.executor.submit(run_task, task).result()
        except BrokenExecutor:
            return [failure(task.points[0], FAILED, LOST)]

    def _in_all(self, now: int) -> int:
        search = self.question.spec.search
        return max(search.trials if search else 0, len(self.tried) + now)

    def try_all(self, candidates: Sequence[Candidate]) -> None:
        """Try those that were not tried yet."""
        fresh = list({one.key: one for one in candidates if one.key not in self.tried}.values())
        for candidate, record in zip(fresh, self.run(fresh, "vector"), strict=True):
            self.tried[candidate.key] = candidate, record

    def confirm(self, candidates: Sequence[Candidate]) -> None:
        """Run candidates event by event; one that cannot run so joins the failures."""
        for candidate, record in zip(candidates, self.run(candidates, "events", 1), strict=True):
            outcome = outcome_of(self.question, candidate, record)
            if outcome is None:
                self.tried[candidate.key] = candidate, record
            else:
                self.confirmed[candidate.key] = outcome

    @property
    def known(self) -> list[Outcome]:
        """The outcomes of all that can run, as confirmed where they were."""
        found = (
            self.confirmed.get(key) or outcome_of(self.question, *one) for key, one in self.tried.items()
        )
        return [outcome for outcome in found if outcome is not None]

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
    """Return hours and dollars for the sampler, or that the candidate failed."""
    from optuna.trial import TrialState

    outcome = outcome_of(trials.question, *trials.tried[candidate.key])
    if outcome is None or outcome.over:
        return None, TrialState.FAIL
    return [outcome.hours, outcome.hours if outcome.usd is None else outcome.usd], TrialState.COMPLETE
