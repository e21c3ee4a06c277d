"""What a change of a scenario does to its step, on the engine that `run` uses.

Random spread of durations is left out, so that two steps differ by what was changed alone.
"""

import pickle
from dataclasses import dataclass, field
from functools import cached_property

from analysis.scaled import Scaled
from simulator.engine.contention import Contention
from simulator.engine.durations import Durations
from simulator.engine.events import run_events
from simulator.quantities import IntArray
from simulator.results.memory import Memory
from simulator.scenario import Run, Scenario
from simulator.scenario.bounds import STILL, cycles_of, every_rank
from simulator.scenario.memory import checked_memory
from simulator.scenario.simulate import check_window, classed


@dataclass(frozen=True, eq=False)
class Case:
    """`scenario` with something changed, ready to run: how long stages take, and what they share."""

    scenario: Scenario
    scaled: Scaled
    durations: Durations

    @cached_property
    def contention(self) -> Contention | None:
        """What stages share; None where the scenario lets them share nothing."""
        settings, graph = self.scenario.spec.run, self.scenario.graph
        if not settings.contention:
            return None
        works = [self.scaled.change(node.stage.work) for node in graph.nodes]
        return Contention.of(graph, self.scaled.costs, settings.weigh(), works)

    @cached_property
    def key(self) -> bytes:
        """What decides the step: of cases with the same, one is run."""
        shared = self.contention
        needs = shared and [(kind.by_node, kind.flows, kind.parts, kind.ends) for kind in shared.kinds]
        told = shared and (needs, shared.phases, sorted(shared.rates.items()))
        return pickle.dumps((self.nominal_ns.tolist(), self.durations.column_of.tolist(), told))

    @property
    def nominal_ns(self) -> IntArray:
        """How long each stage takes when nothing is shared, (nodes, columns)."""
        return self.durations.nominal_ns

    def takes_as_long_as(self, other: "Case") -> bool:
        """Whether every stage takes as long on every rank."""
        alike = self.nominal_ns.shape == other.nominal_ns.shape
        return alike and bool((self.nominal_ns == other.nominal_ns).all())

    def is_slower_than(self, other: "Case") -> bool:
        """Whether some stage takes longer on some rank, and none takes less time."""
        alike = self.nominal_ns.shape == other.nominal_ns.shape
        longer = alike and bool((self.nominal_ns >= other.nominal_ns).all())
        return longer and not self.takes_as_long_as(other)


@dataclass(frozen=True, eq=False)
class Effects:
    """Steps of `scenario` with something changed, each case run once."""

    scenario: Scenario
    _known: dict[bytes, float] = field(default_factory=dict)

    @cached_property
    def base(self) -> Case:
        """The scenario as it is."""
        return self.case(Scaled(self.scenario.costs))

    @cached_property
    def step_ns(self) -> float:
        """The mean step of the scenario as it is, ns."""
        check_window(self.scenario)
        return self.step_of(self.base)

    @property
    def size(self) -> int:
        """How many instances of stages a run has, over all columns: what it costs grows with that."""
        return int(self.base.durations.ns.size)

    def case(self, scaled: Scaled) -> Case:
        """Return the scenario with a parameter changed. Raises RecscaleError where that is not possible."""
        every = every_rank(self.scenario, cycles_of(self.scenario), STILL, scaled)
        return Case(self.scenario, scaled, classed(self.scenario, every))

    def step_of(self, case: Case) -> float:
        """Return the mean step of a case, ns."""
        if case.key not in self._known:
            self._known[case.key] = self._run(case)
        return self._known[case.key]

    def _run(self, case: Case) -> float:
        folded = self.scenario.spec.run.fold != "off"
        timeline = run_events(self.scenario.graph, case.durations, folded, case.contention)
        return float(Run(self.scenario, timeline, case.durations, self._memory).step_ns.mean())

    @cached_property
    def _memory(self) -> Memory:
        return checked_memory(self.scenario)
