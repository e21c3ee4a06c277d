"""Rates and finish times of flows that have the links to themselves: pure functions."""

import numpy as np

from simulator.engine.fluid.flows import FlowClasses
from simulator.engine.fluid.problem import Problem, bottleneck_seconds, checked_capacity, checked_tick
from simulator.engine.fluid.solvers import Solver, solver_for
from simulator.quantities import FloatArray


def solve_rates(capacity: FloatArray, flows: FlowClasses, solver: Solver | None = None) -> FloatArray:
    """Return the weighted max-min rate of each member flow, bytes/s, (F,).

    `capacity` (L,) is bytes/s of one link of each class. No flow could go faster (per weight) without
    slowing one that is no faster, and none exceeds its cap; inf for a flow with neither link nor cap.
    """
    problem = Problem.of(checked_capacity(capacity), [flows])
    chosen = solver or solver_for(len(problem.link))
    return chosen.filling(problem).share(np.arange(len(flows), dtype=np.int64)).rate


def finish_times(
    capacity: FloatArray, flows: FlowClasses, tick: float = 0.0, solver: Solver | None = None
) -> FloatArray:
    """Return seconds from start to end of each flow class, (F,), with nothing else on the links.

    With `tick` > 0, a share of the time that the busiest link needs, the ends within one tick of a
    moment are taken together: each flow ends at the time projected for it, and rates change once.
    """
    problem = Problem.of(checked_capacity(capacity), [flows])
    chosen = solver or solver_for(len(problem.link))
    return chosen.lone(problem, bottleneck_seconds(problem.capacity, flows) * checked_tick(tick))
