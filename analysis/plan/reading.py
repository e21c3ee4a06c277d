"""Reading a planning question: the file, the scenario that it names, and what each option makes of that."""

from pathlib import Path

from analysis.asked import read_asked, read_base
from analysis.plan.candidates import Space
from analysis.plan.question import HardwareSpec, Question, QuestionSpec
from simulator.errors import InputError, Where
from simulator.scenario.document import KeyPath
from simulator.scenario.overrides import path_of

LISTS = {"policy": "policies", "sharding": "sharding", "workload.batch": "batch"}


def read_question(path: Path) -> Question:
    """Read and check the question at `path`, the scenario it names, and each hardware option.

    Raises InputError with file, line and path for anything wrong with any of them.
    """
    spec, document = read_asked(path, QuestionSpec, "question")
    question = Question(spec, document, read_base(path, spec, document))
    _check_options(question)
    return question


def _check_options(question: Question) -> None:
    """Build the cluster of every option. Raises InputError with the place in the question."""
    space = Space(question)
    for place, option in enumerate(question.spec.hardware):
        try:
            _ = space.first(option).cluster
        except InputError as error:
            if error.where.file != option.name:  # the scenario itself is wrong
                raise
            raise InputError(error.problem, _where(question, place, error)) from error


def _where(question: Question, place: int, error: InputError) -> Where:
    """Return the place in the question of what is wrong with the scenario made of an option."""
    option, path = question.spec.hardware[place], path_of(error.where.path or "")
    here: KeyPath = ("hardware", place)
    for setting in option.settings:
        ours = path_of(setting)
        if path and (path[: len(ours)] == ours or ours[: len(path)] == path):
            return question.document.where((*here, "settings", setting))
    if path[:1] == ("cluster",) and option.cluster is not None:
        return question.document.where((*here, *path, *_named(option, path, error.problem)))
    for part, key in LISTS.items():
        if path[: len(path_of(part))] == path_of(part) and question.document.data.get(key):
            return question.document.where((key, 0, *path[len(path_of(part)) :]))
    return question.document.where(here)


def _named(option: HardwareSpec, path: KeyPath, problem: str) -> KeyPath:
    """Return the key of the cluster whose value a problem with the whole cluster speaks of, if any."""
    if len(path) > 1 or option.cluster is None:
        return ()
    named = (
        key for key, value in option.cluster.items() if isinstance(value, str) and f'"{value}"' in problem
    )
    return tuple(key for key, _ in zip(named, range(1), strict=False))
