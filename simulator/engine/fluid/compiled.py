"""The same filling compiled by numba, link by link.

Import this module only where numba is installed. Every function works on the arrays of `Problem`;
a flow is unfrozen while its rate is negative.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from simulator.engine.fluid.filling import TIE
from simulator.engine.fluid.flows import LinkArray
from simulator.engine.fluid.problem import Problem
from simulator.quantities import FloatArray, IntArray

BoolArray = NDArray[np.bool_]

Function = TypeVar("Function", bound=Callable[..., object])

STALE = 64.0  # a load that fell by this factor is added up again, or rounding would show in what is left


def compiled(function: Function) -> Function:
    """Compile on first use; machine code is kept on disk where there is a place for it."""
    try:
        return cast(Function, numba.njit(cache=True, error_model="numpy")(function))
    except RuntimeError:  # nowhere to keep it
        return cast(Function, numba.njit(error_model="numpy")(function))


class Columns(NamedTuple):
    """The flows on each link: entries `starts[l]:starts[l+1]` of `flow`, and what each loads it with."""

    starts: IntArray
    flow: LinkArray
    share: FloatArray


class Links(NamedTuple):
    """What filling knows of each link.

    The unfrozen load, that load when last added up, the use by frozen flows, the unfrozen flows, and
    whether the link bounds a flow.
    """

    load: FloatArray
    summed: FloatArray
    used: FloatArray
    left: IntArray
    tight: BoolArray


@compiled
def columns_of(problem: Problem, active: IntArray) -> Columns:
    """Return the flows on each link, in the order of `active`."""
    starts = np.zeros(len(problem.capacity) + 1, dtype=np.int64)
    for flow in active:
        for entry in range(problem.starts[flow], problem.starts[flow + 1]):
            starts[problem.link[entry] + 1] += 1
    starts = np.cumsum(starts)
    columns = Columns(starts, np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1]))
    _fill_columns(problem, active, columns)
    return columns


@compiled
def _fill_columns(problem: Problem, active: IntArray, columns: Columns) -> None:
    place = columns.starts[:-1].copy()
    for flow in active:
        for entry in range(problem.starts[flow], problem.starts[flow + 1]):
            link = problem.link[entry]
            columns.flow[place[link]] = flow
            columns.share[place[link]] = problem.share[entry]
            place[link] += 1


@compiled
def fill(problem: Problem, columns: Columns, active: IntArray, rate: FloatArray) -> BoolArray:
    """Write the rates of the `active` flows into `rate`, 0 for all others; return the tight links.

    Offered levels only rise, so the heap may hold old ones: a link whose offer has risen goes back.
    """
    links, next_cap = _loads(problem, active, rate), 0
    heap = [(_offered(problem, links, link), link) for link in range(len(links.left)) if links.left[link]]
    heapify(heap)
    while len(heap):
        level, link = heappop(heap)
        if links.left[link] == 0:
            continue
        if links.load[link] * STALE < links.summed[link]:
            _sum_again(problem, columns, links, (link, rate))
        offer = _offered(problem, links, link)
        next_cap, stopped = _stop_capped(problem, links, (min(level, offer), next_cap), rate)
        if stopped or offer > level * (1 + TIE):
            heappush(heap, (_offered(problem, links, link), link))
        else:
            _freeze_column(problem, columns, links, (link, offer, rate))
    _stop_capped(problem, links, (np.inf, next_cap), rate)
    _release(active, rate)
    return links.tight


@compiled
def _loads(problem: Problem, active: IntArray, rate: FloatArray) -> Links:
    """Mark the active flows as unfrozen and add up what they load each link with."""
    count = len(problem.capacity)
    load, left = np.zeros(count), np.zeros(count, dtype=np.int64)
    for flow in active:
        rate[flow] = -1.0
        for entry in range(problem.starts[flow], problem.starts[flow + 1]):
            load[problem.link[entry]] += problem.share[entry]
            left[problem.link[entry]] += 1
    return Links(load, load.copy(), np.zeros(count), left, np.zeros(count, dtype=np.bool_))


@compiled
def _offered(problem: Problem, links: Links, link: int) -> float:
    offer: float = max(problem.capacity[link] - links.used[link], 0.0) / links.load[link]
    return offer


@compiled
def _sum_again(problem: Problem, columns: Columns, links: Links, place: tuple[int, FloatArray]) -> None:
    """Add up load and use of a link afresh."""
    link, rate = place
    load = used = 0.0
    for entry in range(columns.starts[link], columns.starts[link + 1]):
        flow = columns.flow[entry]
        if rate[flow] < 0:
            load += columns.share[entry]
        else:
            used += columns.share[entry] * (rate[flow] / problem.weight[flow])
    links.load[link] = links.summed[link] = load
    links.used[link] = used


@compiled
def _stop_capped(problem: Problem, links: Links, at: tuple[float, int], rate: FloatArray) -> tuple[int, int]:
    """Freeze all flows whose cap binds at or below the level; return the next cap and their number."""
    level, position = at
    stopped = 0
    while position < len(problem.capped) and problem.ceiling[problem.capped[position]] <= level:
        flow = problem.capped[position]
        if rate[flow] < 0:
            _freeze(problem, links, (flow, problem.ceiling[flow]), rate)
            stopped += 1
        position += 1
    return position, stopped


@compiled
def _freeze_column(
    problem: Problem, columns: Columns, links: Links, at: tuple[int, float, FloatArray]
) -> None:
    """Freeze what is left on a full link."""
    link, level, rate = at
    links.tight[link] = True
    for entry in range(columns.starts[link], columns.starts[link + 1]):
        if rate[columns.flow[entry]] < 0:
            _freeze(problem, links, (columns.flow[entry], level), rate)


@compiled
def _freeze(problem: Problem, links: Links, at: tuple[int, float], rate: FloatArray) -> None:
    flow, level = at
    rate[flow] = problem.weight[flow] * level
    for entry in range(problem.starts[flow], problem.starts[flow + 1]):
        link = problem.link[entry]
        links.load[link] -= problem.share[entry]
        links.used[link] += problem.share[entry] * level
        links.left[link] -= 1


@compiled
def _release(active: IntArray, rate: FloatArray) -> None:
    """Flows that cross no link and have no cap take no time."""
    for flow in active:
        if rate[flow] < 0:
            rate[flow] = np.inf
