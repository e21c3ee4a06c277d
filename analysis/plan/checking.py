"""Whether what a planning question offers can be built at all, before anything is tried."""

from collections.abc import Iterator

from analysis.plan.candidates import Choice, Space
from analysis.plan.question import HardwareSpec, Question
from analysis.sweep.axes import WORKERS
from simulator.errors import InfeasibleError, InputError, Where
from simulator.scenario.document import KeyPath
from simulator.scenario.overrides import path_of

LISTS = {"policy": "policies", "sharding": "sharding", "workload.batch": "batch"}


def check_options(question: Question) -> None:
    """Build each option once: clusters with their sizes, policies, shardings, batches. Nothing is run.

    Raises InputError with the place in the question: for settings that the question itself replaces, a
    cluster that cannot be built, a size that it does not come in, and for a policy, a sharding or a batch
    that is refused on every hardware. What some hardware takes and other does not is for the search.
    """
    space = Space(question)
    for place, option in enumerate(question.spec.hardware):
        _check_settings(question, place, option)
        try:
            cluster = space.first(option).cluster
        except InputError as error:
            if error.where.file != option.name:  # the scenario itself is wrong
                raise
            raise InputError(error.problem, _where(question, place, error)) from error
        for size, workers in enumerate(option.workers):
            try:
                cluster.with_workers(workers)
            except InputError as error:
                where = question.document.where(("hardware", place, "workers", size))
                raise InputError(error.problem, where) from error
    for part, place, rest in _parts(space):
        _check_part(space, part, place, rest)


def _check_settings(question: Question, place: int, option: HardwareSpec) -> None:
    """Refuse settings of an option that every candidate replaces: they would change nothing."""
    replaced = {"policy": "policies", WORKERS: "workers", "cluster.hosts": "workers"}
    spec = question.spec
    replaced |= {"sharding": "sharding"} if spec.sharding else {}
    replaced |= {"workload.batch": "batch"} if spec.batch else {}
    for setting in option.settings:
        for part, key in replaced.items():
            steps = path_of(part)
            if path_of(setting)[: len(steps)] == steps:
                where = question.document.where(("hardware", place, "settings", setting))
                raise InputError(f"is replaced by `{key}` of the question: leave it out", where)


def _parts(space: Space) -> Iterator[tuple[str, int, Choice]]:
    """Yield each policy, sharding and batch with its place in its list, beside the first of all else."""
    spec, (_, *first) = space.question.spec, [axis[0] for axis in space.axes]
    for place, policy in space.placed_policies():
        yield "policy", place, (policy, *first[1:])
    for place, sharding in enumerate(spec.sharding):
        yield "sharding", place, (first[0], sharding, first[2])
    for place, batch in enumerate(spec.batch):
        yield "workload.batch", place, (*first[:2], batch)


def _check_part(space: Space, part: str, place: int, rest: Choice) -> None:
    """Refuse a part that no hardware takes, for what it is itself."""
    found: list[InputError] = []
    for option in space.question.spec.hardware:
        error = _refused(space, option, rest)
        steps, at = path_of(part), path_of((error.where.path if error else None) or "")
        if error is None or at[: len(steps)] != steps:
            return
        found.append(error)
    path = path_of(found[0].where.path or "")[len(path_of(part)) :]
    where = space.question.document.where((LISTS[part], place, *path))
    raise InputError(found[0].problem, where) from found[0]


def _refused(space: Space, option: HardwareSpec, rest: Choice) -> InputError | None:
    """Return why the scenario with these parts cannot be built on an option."""
    try:
        scenario = space.built(option, rest)
        _ = scenario.cluster, scenario.policy
        keys = scenario.spec.workload.model.keys_per_sample
        scenario.at("sharding", lambda: scenario.spec.sharding.build(keys))
    except InfeasibleError:
        return None
    except InputError as error:
        return error
    return None


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
