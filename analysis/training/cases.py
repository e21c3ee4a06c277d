"""From a measured row to a scenario that should take as long."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from analysis.training import shapes
from analysis.training.families import Framework, framework, software
from analysis.training.lent import Planned, planned
from analysis.training.machines import Machine, cluster, known
from analysis.training.plans import CACHED, Part, placed, sharding
from analysis.training.rows import Measured, Row
from simulator.errors import RecscaleError
from simulator.scenario import Run, Scenario, run_scenario
from simulator.scenario.beyond import beyond_measurements
from simulator.scenario.document import Document
from simulator.scenario.software_catalog import gather_efficiency, profile_data

BATCHES, WARM_UP = 14, 6
PLANNED = "mlperf_dlrm_dcnv2"  # the model whose logs print plans


@dataclass(frozen=True, eq=False)
class Case:
    """A row with the scenario that it becomes. `changed` are fields of its software part."""

    row: Row
    measured: Measured
    changed: dict[str, Any] | None = None

    @cached_property
    def framework(self) -> Framework:
        """The framework. Raises InputError where it is not known."""
        return framework(self.row)

    @cached_property
    def machine(self) -> Machine:
        """The machine. Raises InputError for an unknown one."""
        return known(self.row)

    @property
    def chips(self) -> str:
        """The family of accelerators that share a gather efficiency. Raises InputError for an unknown one."""
        return self.machine.chips

    @cached_property
    def workload(self) -> Part:
        """The `workload` part of the scenario. Raises InputError where the model is not known."""
        return shapes.workload(self.row, self.measured.configs)

    @cached_property
    def plan(self) -> Planned | None:
        """The plan of a model whose tables a planner placed; None for others."""
        if self.row.model != PLANNED:
            return None
        return planned(self.row, self.workload["tables"], self.measured)

    @cached_property
    def document(self) -> Document:
        """The scenario as a file would hold it. Raises InputError where something is not known."""
        data = {
            "name": self.row.case_id,
            "cluster": cluster(self.row),
            "workload": self.workload,
            "sharding": self._sharding(self.workload["tables"]),
            "policy": {"kind": self.framework.policy},
            "run": {"batches": BATCHES, "warm_up": WARM_UP},
            "software": self._software(),
        }
        return Document(data, {}, self.row.case_id)

    def _sharding(self, tables: Sequence[Part]) -> Part:
        if self.plan is not None:
            return placed(self.plan.plan, self.plan.copied, self.row.accelerators)
        return sharding(self.row, tables, shapes.cached(self.measured.configs) or CACHED)

    def _software(self) -> dict[str, Any]:
        gathers = gather_efficiency(self.chips)
        profile = {**profile_data(self.framework.family), "gather_efficiency": gathers}
        return {**profile, **software(self.row), **(self.changed or {})}

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario. Raises InputError where something is not known."""
        return Scenario.of(self.document)

    @cached_property
    def run(self) -> Run:
        """The simulated scenario. Raises InputError or InfeasibleError."""
        return run_scenario(self.scenario)

    @property
    def step_ms(self) -> float:
        """The simulated step, ms. Raises InputError or InfeasibleError."""
        return float(self.run.breakdown.step_ns) / 1e6

    @property
    def unlike(self) -> list[str]:
        """In which ways the case lies outside of what was fitted and measured. Raises as `run` does."""
        return beyond_measurements(self.run)

    @property
    def notes(self) -> list[str]:
        """What was assumed of the row, of a case that can be simulated."""
        optimizer = str(self.workload["optimizer"])
        found = [*self.row.notes, *self.framework.notes, *self.machine.notes]
        found += shapes.notes(self.row, self.measured.configs, optimizer)
        return [*found, *filter(None, (self.plan.note if self.plan else "",))]

    @property
    def why_not(self) -> str | None:
        """Why nothing can be said of the row; None where something can."""
        if self.row.step_ms is None:
            return self.row.problem or "the source gives no step time"
        try:
            _ = self.run
        except RecscaleError as error:
            return error.problem
        return None

    def with_software(self, **changed: Any) -> "Case":
        """Return the case with other values in its software part."""
        return replace(self, changed={**(self.changed or {}), **changed})
