"""From a measured row to a scenario that should take as long."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from analysis.training.families import Framework, framework, software
from analysis.training.machines import cluster, known
from analysis.training.plans import sharding
from analysis.training.shapes import workload
from analysis.training.tables import Measured, Row
from simulator.errors import RecscaleError
from simulator.scenario import Run, Scenario, run_scenario
from simulator.scenario.document import Document
from simulator.scenario.software_catalog import gather_efficiency, profile_data

BATCHES, WARM_UP = 14, 6


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

    @property
    def chips(self) -> str:
        """The family of accelerators that share a gather efficiency. Raises InputError for an unknown one."""
        return known(self.row)[2]

    @cached_property
    def document(self) -> Document:
        """The scenario as a file would hold it. Raises InputError where something is not known."""
        row = self.row
        work = workload(row, self.measured.configs)
        machine = cluster(row)
        data = {
            "name": row.case_id,
            "cluster": machine,
            "workload": work,
            "sharding": sharding(row, work["tables"], self.measured),
            "policy": {"kind": self.framework.policy},
            "run": {"batches": BATCHES, "warm_up": WARM_UP},
            "software": self._software(),
        }
        return Document(data, {}, row.case_id)

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
    def why_not(self) -> str | None:
        """Why nothing can be said of the row; None where something can."""
        if self.row.step_ms is None:
            return "the source gives no step time"
        try:
            _ = self.run
        except RecscaleError as error:
            return error.problem
        return None

    def with_software(self, **changed: Any) -> "Case":
        """Return the case with other values in its software part."""
        return replace(self, changed={**(self.changed or {}), **changed})
