"""What assumptions of the NestPipe scenarios are worth: each made differently, and simulated."""

from dataclasses import dataclass
from pathlib import Path

from analysis.published import by_id
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

USUAL_COUNT = ["workload.model.causal=false", "workload.model.recompute=none"]
HELD = "unexplained_host_time"
FEWEST = 128
SELDOM = 100


@dataclass(frozen=True)
class Assumptions:
    """The assumptions behind compute (of `nestpipe`) and behind copies of tables (of `grouped`)."""

    nestpipe: Scenario
    grouped: Scenario

    @classmethod
    def of(cls, folder: Path | None = None) -> "Assumptions":
        """Read the scenarios in `folder` (default: the shipped ones)."""
        place = folder or shipped_folder()
        return cls(load(place / "nestpipe/npu.yaml"), load(place / "sharding/two_d_sparse.yaml"))

    @property
    def compute_ms(self) -> float:
        """Compute, ms: the share of the peak on flops of causal attention, recomputation counted."""
        return run_scenario(self.nestpipe).report.compute_ms

    @property
    def usual_compute_ms(self) -> float:
        """Compute, ms, with flops as published shares count them: full attention, no recomputation."""
        return run_scenario(self.nestpipe.with_overrides(USUAL_COUNT)).report.compute_ms

    def averaging_ms(self, workers: int) -> float:
        """Return the time of an averaging of the copies that shows, with the dense all-reduce, ms."""
        return run_scenario(self.grouped.with_workers(workers)).report.exposed_ms["all_reduce"]

    @property
    def step_by_group_ms(self) -> float:
        """The step, ms, if the unexplained growth of the lookup followed the group and not the job."""
        return self.step_partly_by_group_ms(1.0, self.grouped.cluster.ranks)

    def step_partly_by_group_ms(self, share: float, workers: int) -> float:
        """Return the step, ms, if `share` of the unexplained growth followed the group, the rest the job."""
        groups = self.grouped.step.placed.plan.replicas.count
        held = (self.grouped.spec.cluster.unexplained_host_time or 0.0) * (1 - share + share / groups)
        return _step_ms(self.grouped.with_overrides([f"cluster.{HELD}={held!r} s"]).with_workers(workers))

    def step_seldom_averaged_ms(self, workers: int) -> float:
        """Return the step, ms, if copies were averaged after every hundredth step only."""
        settings = [f"sharding.replicas.every={SELDOM}", f"run.batches={4 * SELDOM}"]
        return _step_ms(self.grouped.with_overrides(settings).with_workers(workers))

    def as_text(self) -> dict[str, str]:
        """Return all of them for the validation page, whole milliseconds."""
        most = self.grouped.cluster.ranks
        numbers = {
            "compute": self.compute_ms,
            "usual": self.usual_compute_ms,
            "averaging": self.averaging_ms(most),
            "averaging_few": self.averaging_ms(FEWEST),
            "by_group": self.step_by_group_ms,
        }
        known, few = by_id(), FEWEST
        errors = {
            "seldom": self.step_seldom_averaged_ms(most) / known["T6a"].value,
            "seldom_few": self.step_seldom_averaged_ms(few) / known["T7"].value,
            "half": self.step_partly_by_group_ms(0.5, most) / known["T6a"].value,
            "half_few": self.step_partly_by_group_ms(0.5, few) / known["T7"].value,
        }
        shown = {name: f"{100 * (ratio - 1):+.0f}" for name, ratio in errors.items()}
        return {**shown, **{name: f"{value:,.0f}" for name, value in numbers.items()}}


def _step_ms(scenario: Scenario) -> float:
    return run_scenario(scenario).report.step_ms["mean"]
