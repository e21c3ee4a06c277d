"""The course of a lone collective in one loop, compiled by numba. Import it only where numba is installed."""

import numpy as np

from simulator.engine.fluid.compiled import BoolArray, columns_of, compiled, fill
from simulator.engine.fluid.problem import NEARLY, Problem
from simulator.quantities import FloatArray, IntArray


@compiled
def lone(problem: Problem, tick: float) -> FloatArray:
    """Return the seconds after which each flow ends when all start at once and nothing else comes."""
    left, finish, rate = problem.size.copy(), np.zeros(len(problem.size)), np.zeros(len(problem.size))
    active = np.arange(len(problem.size))
    columns, listed, now = columns_of(problem, active), len(active), 0.0
    tight = fill(problem, columns, active, rate)
    while len(active):
        until = _soonest(left, rate, active) + 2 * tick
        span = _middle(problem, (left, rate), active, until) if tick > 0 else until
        ended, active = _pass_time(problem, (left, rate, finish), active, (now, span, until))
        now += span
        if 2 * len(active) < listed:
            columns, listed = columns_of(problem, active), len(active)
        if not holds(problem, tight, ended, active):
            tight = fill(problem, columns, active, rate)
    return finish


@compiled
def holds(problem: Problem, tight: BoolArray, ended: IntArray, active: IntArray) -> bool:
    """Return whether the `active` flows may keep their rates; see `NumpyFilling.holds`."""
    touched, any_touched = np.zeros(len(tight), dtype=np.bool_), False
    for flow in ended:
        for entry in range(problem.starts[flow], problem.starts[flow + 1]):
            if tight[problem.link[entry]]:
                touched[problem.link[entry]] = any_touched = True
    return not (any_touched and _crosses(problem, touched, active))


@compiled
def _crosses(problem: Problem, marked: BoolArray, flows: IntArray) -> bool:
    for flow in flows:
        for entry in range(problem.starts[flow], problem.starts[flow + 1]):
            if marked[problem.link[entry]]:
                return True
    return False


@compiled
def _soonest(left: FloatArray, rate: FloatArray, active: IntArray) -> float:
    soonest = np.inf
    for flow in active:
        soonest = min(soonest, left[flow] / rate[flow])
    return soonest


@compiled
def _middle(problem: Problem, flows: tuple[FloatArray, FloatArray], active: IntArray, until: float) -> float:
    """Return the mean end of the flows that end by then, weighted by rate."""
    left, rate = flows
    total, weighted, soonest = 0.0, 0.0, np.inf
    for flow in active:
        due = left[flow] / rate[flow]
        if due - NEARLY * problem.size[flow] / rate[flow] <= until:
            total, weighted, soonest = total + rate[flow], weighted + rate[flow] * due, min(soonest, due)
    return weighted / total if total < np.inf else soonest


@compiled
def _pass_time(
    problem: Problem,
    flows: tuple[FloatArray, FloatArray, FloatArray],
    active: IntArray,
    clock: tuple[float, float, float],
) -> tuple[IntArray, IntArray]:
    """Let `span` seconds pass; end the flows that are due by `until` at their own time.

    Return those that ended and those that go on.
    """
    left, rate, finish = flows
    now, span, until = clock
    ended, going = np.empty_like(active), np.empty_like(active)
    gone = kept = 0
    for flow in active:
        due = left[flow] / rate[flow]
        if due - NEARLY * problem.size[flow] / rate[flow] <= until:
            finish[flow], rate[flow] = now + due, 0.0
            ended[gone] = flow
            gone += 1
        else:
            left[flow] -= rate[flow] * span
            going[kept] = flow
            kept += 1
    return ended[:gone], going[:kept]
