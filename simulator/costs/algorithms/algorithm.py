"""What all algorithms of collectives are: a plan from who takes part and what they carry."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from simulator.costs.algorithms.ground import Ground, Load
from simulator.costs.phases import Phase, alone
from simulator.errors import InputError


@dataclass(frozen=True)
class Plan:
    """The `phases` of a collective under the `algorithm` of that name."""

    algorithm: str
    phases: tuple[Phase, ...]


class Algorithm(Protocol):
    """One way to do a collective."""

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return the phases on `ground`. Raises InputError where the algorithm is not known on it."""


@dataclass(frozen=True)
class Auto:
    """The fastest of several algorithms for the size and the ranks at hand, nobody else on the links."""

    among: Sequence[Algorithm]

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return the plan that ends first, the first named of equals. Raises InputError if none is known."""
        known, problem = [], InputError("no algorithm is given to choose from")
        for algorithm in self.among:
            try:
                known.append(algorithm.plan(ground, load))
            except InputError as unknown:
                problem = unknown
        if not known:
            raise problem
        return min(known, key=lambda plan: alone(plan.phases, ground.rates))
