"""Several sets of flows on the same links, prepared for solving; what was solved is remembered.

Rates depend on which flows are there and not on how far they are. Training repeats itself: the same
collectives meet batch after batch, so the same few sets of flows are asked for again and again.
"""

from collections.abc import Sequence

import numpy as np

from simulator.engine.fluid.filling import Shares
from simulator.engine.fluid.flows import FlowClasses
from simulator.engine.fluid.problem import Problem
from simulator.engine.fluid.solvers import Solver, solver_for
from simulator.quantities import FloatArray, IntArray

FEW = 4096  # classes up to which it is worth to remember
REMEMBERED = 50_000  # rates remembered for one combination of sets
COMBINATIONS = 64


class Joined:
    """The flows of `parts` one after the other on links of `capacity`; part i starts at `offsets[i]`."""

    def __init__(self, capacity: FloatArray, parts: Sequence[FlowClasses], solver: Solver | None) -> None:
        """Prepare to solve; `solver` None takes the quicker one."""
        self.parts = tuple(parts)
        self.problem = Problem.of(capacity, parts)
        self._filling = (solver or solver_for(len(self.problem.link))).filling(self.problem)
        self.offsets: IntArray = np.cumsum([0, *(len(flows) for flows in parts)])
        self._known: dict[bytes, Shares] = {}

    def share(self, active: IntArray) -> Shares:
        """Return the shares of the `active` flows (ids, ascending); not to be written to."""
        if len(self.problem.weight) > FEW:
            return self._filling.share(active)
        key = active.tobytes()
        if key not in self._known:
            if (len(self._known) + 1) * len(self.problem.weight) > REMEMBERED:
                self._known.clear()
            self._known[key] = self._filling.share(active)
        return self._known[key]

    def holds(self, shares: Shares, ended: IntArray, active: IntArray) -> bool:
        """Return whether `shares` stay right for the `active` flows when `ended` are gone."""
        return self._filling.holds(shares, ended, active)


class Joiner:
    """Joins sets of flows, and remembers the latest combinations."""

    def __init__(self, capacity: FloatArray, solver: Solver | None) -> None:
        """Nothing is joined yet."""
        self.capacity = capacity
        self._solver = solver
        self._known: dict[tuple[int, ...], Joined] = {}

    def join(self, parts: Sequence[FlowClasses]) -> Joined:
        """Return `parts` joined. A `Joined` keeps its parts alive, so their ids stay theirs."""
        if sum(len(flows) for flows in parts) > FEW:
            return Joined(self.capacity, parts, self._solver)
        key = tuple(id(flows) for flows in parts)
        if key not in self._known:
            if len(self._known) >= COMBINATIONS:
                self._known.clear()
            self._known[key] = Joined(self.capacity, parts, self._solver)
        return self._known[key]
