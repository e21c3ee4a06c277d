"""Values of a grid that no point can take, found before anything runs: a misspelt key, an unknown name."""

from collections.abc import Iterator, Sequence
from itertools import islice, product

from analysis.sweep.axes import WORKERS, AxisSpec, OneAxisSpec, Setting
from analysis.sweep.grid import Grid
from analysis.sweep.points import at_point
from simulator.errors import InfeasibleError, InputError
from simulator.scenario.document import Document, KeyPath
from simulator.scenario.overrides import path_of

MOST_VALUES, MOST_COMBINATIONS = 100, 200
Settings = tuple[Setting, ...]


def check_values(grid: Grid) -> None:
    """Build one point per value of each axis, beside the first values of the others; nothing is run.

    Raises InputError, with the place in the grid, for a value that is refused beside all values of the
    others. Of a range both ends are built, of a list `MOST_VALUES` at most; numbers of workers are left to
    the points, since which of them fill whole hosts may depend on the rest.
    """
    axes = [list(_values(axis, ("vary", place))) for place, axis in enumerate(grid.spec.vary)]
    settings = [[each for each, _ in values] for values in axes]
    for place, values in enumerate(axes):
        for each, where in values:
            beside = [*settings[:place], [each], *settings[place + 1 :]]
            if problem := _refused_always(grid.base, each, beside):
                raise InputError(problem, grid.document.where(where))


def _values(axis: AxisSpec, here: KeyPath) -> Iterator[tuple[Settings, KeyPath]]:
    """Yield settings of an axis, and where each is written."""
    if isinstance(axis, OneAxisSpec) and axis.range is not None:
        for share in (0.0, 1.0):
            yield ((axis.path, axis.range.at(share)),), (*here, "range")
        return
    written = (*here, "values") if isinstance(axis, OneAxisSpec) else (*here, "together", 0, "values")
    for place in range(min(axis.size, MOST_VALUES)):
        yield axis.settings(place), (*written, place)


def _refused_always(base: Document, value: Settings, beside: Sequence[Sequence[Settings]]) -> str:
    """Return what is wrong with a value beside all values of the other axes; empty where one suits it."""
    problem = _refused(base, value, [one[0] for one in beside])
    if not problem:
        return ""
    rest = list(islice(product(*beside), MOST_COMBINATIONS + 1))
    if len(rest) > MOST_COMBINATIONS or not all(_refused(base, value, one) for one in rest):
        return ""
    return problem


def _refused(base: Document, value: Settings, point: Sequence[Settings]) -> str:
    """Return why a point cannot be built, if `value` is to blame: what is refused stands at its paths.

    Raises InputError for the scenario itself, whatever is set in it.
    """
    sized = tuple(one for settings in point for one in settings if one[0] != WORKERS)
    try:
        scenario = at_point(base, sized)
        _ = scenario.cluster, scenario.policy
    except InfeasibleError:
        return ""
    except InputError as error:
        if error.where.file == base.file:
            raise
        place = path_of(error.where.path or "")
        mine = [path_of(path) for path, _ in value]
        told = f"{error.where.path}: {error.problem}"
        return told if any(_overlap(place, path) for path in mine) else ""
    return ""


def _overlap(one: KeyPath, other: KeyPath) -> bool:
    """Whether one of two places holds the other."""
    return bool(one) and (one[: len(other)] == other or other[: len(one)] == one)
