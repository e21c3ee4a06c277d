"""How flows share the network: weighted max-min rates, exact, with nothing known of SimPy.

`FlowClasses` says what crosses which links; `solve_rates` and `finish_times` are pure functions;
`Fluid` is the state machine for a discrete-event engine; `fold` makes a symmetric problem small.
"""

from simulator.engine.fluid.collective import Finished
from simulator.engine.fluid.flows import FlowClasses
from simulator.engine.fluid.fluid import Fluid
from simulator.engine.fluid.folding import Folded, fold
from simulator.engine.fluid.problem import bottleneck_seconds
from simulator.engine.fluid.rates import finish_times, solve_rates
from simulator.engine.fluid.solvers import CompiledSolver, NumpySolver, Solver, numba_is_installed

__all__ = [
    "CompiledSolver",
    "Finished",
    "FlowClasses",
    "Fluid",
    "Folded",
    "NumpySolver",
    "Solver",
    "bottleneck_seconds",
    "finish_times",
    "fold",
    "numba_is_installed",
    "solve_rates",
]
