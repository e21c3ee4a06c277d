"""What a rank does in a launch: measure the primitives of the grid, then execute the runs."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simulator.calibration.local.job import Job
from simulator.calibration.measure.channel import Channel
from simulator.calibration.measure.clock import Point, Stopwatch
from simulator.calibration.measure.primitives import Bench, Curve
from simulator.calibration.measure.torch_device import DeviceBench
from simulator.calibration.measure.torch_group import TorchChannel
from simulator.calibration.train.executor import Execution, Executor
from simulator.calibration.train.plans import needs_servers, parts_of
from simulator.calibration.train.rpc_bench import rpc_points
from simulator.calibration.train.runner import Outcome, Runner
from simulator.calibration.train.settings import Settings
from simulator.pipeline import MarkedGraph

SWITCH_S = 5e-4
HAND_OVERS = 40  # batches of empty stages
FEW, SHORT = 2, 24  # samples of a micro-batch, and steps, of runs that show what the program itself costs
PARTS = {"micro_batches": 4}
POLICIES = (
    Settings("serialized"),
    Settings("stale_prefetch"),
    Settings("dual_buffer"),
    Settings("frozen_window", PARTS),
    Settings("nestpipe", PARTS),
)


@dataclass(frozen=True)
class Work:
    """A job on one rank; `channels[0]` is for measuring, the others for streams."""

    job: Job
    channels: Sequence[Channel]
    _references: dict[str, Outcome] = field(default_factory=dict)

    def done(self) -> dict[str, Any]:
        """Do all of it; return the result as plain data (the same on all ranks but for rank 0's extras)."""
        sys.setswitchinterval(SWITCH_S)
        with _no_pauses():
            curves = [curve.to_dict() for curve in self._curves()] if self.job.grid else []
            rpc = (
                [one.to_dict() for one in rpc_points(self.job.rpc, self.job.servers)] if self.job.rpc else []
            )
            software = [self._run(one) for one in self._nearly_empty()] if self.job.grid else []
            runs = [self._run(settings) for settings in self.job.runs]
        return {"primitives": curves, "rpc": rpc, "software": software, "runs": runs}

    def _curves(self) -> Iterator[Curve]:
        assert self.job.grid is not None
        bench = Bench(Stopwatch(self.channels[0], self.job.grid.budget, self.job.rest), self.job.grid)
        yield from bench.local()
        yield from bench.collectives()
        yield self._hand_over()
        if isinstance(self.channels[0], TorchChannel):
            yield from DeviceBench(self.channels[0].device, self.job.grid).curves()

    def _hand_over(self) -> Curve:
        """Measure what it costs to hand a batch from one stage to the next: stages that do nothing."""
        settings = self.job.runs[0] if self.job.runs else Settings()
        runner = Runner(settings, self.channels)

        def empty(turn: int) -> None:
            idle(runner.graph).run()

        point = self.channels and Stopwatch(self.channels[0], 0.1).compute(1.0, empty)
        assert isinstance(point, Point)
        each = point.seconds / (HAND_OVERS * len(runner.graph.nodes))
        used = Point(1.0, each, point.p90_over_p50, each, point.repeats)
        return Curve("hand_over", "stages", (used,))

    def _nearly_empty(self) -> list[Settings]:
        """Return runs of so few samples that what is left of a stage is its program: one per policy."""
        policies = [one for one in self.job.runs if not needs_servers(one)] or list(POLICIES)
        shape = policies[0].model
        few = [
            replace(one, model=shape, batch=FEW * parts_of(one), steps=SHORT, keys=None) for one in policies
        ]
        return list({one.title: one for one in few}.values())

    def _run(self, settings: Settings) -> dict[str, Any]:
        runner = Runner(settings, self.channels[1:], self.job.servers)
        self.channels[0].barrier()
        execution = runner.execute()
        outcome = runner.outcome()
        runner.close()
        reference = self._references.setdefault(_without_policy(settings), outcome)
        return {
            "settings": settings.to_dict(),
            **self._timing(execution),
            "loss": self._mean_loss(outcome),
            "against_first": self._worst(outcome.against(reference)),
        }

    def _timing(self, execution: Execution) -> dict[str, Any]:
        """Steps between completed updates of the slowest rank, and each stage's median on rank 0."""
        everybody = np.stack(self.channels[0].all_gather(execution.update_ns))
        steps = np.diff(everybody.max(axis=0)) / 1e9
        return {"step_s": steps.tolist(), "stage_s": execution.stage_s, "stage_cpu_s": execution.stage_cpu_s}

    def _mean_loss(self, outcome: Outcome) -> list[float]:
        return list(np.mean(self.channels[0].all_gather(np.array(outcome.loss)), axis=0).tolist())

    def _worst(self, differences: dict[str, float]) -> dict[str, float]:
        values = np.array(list(differences.values()))
        worst = np.max(self.channels[0].all_gather(values), axis=0)
        return dict(zip(differences, worst.tolist(), strict=True))


def idle(graph: MarkedGraph) -> Executor:
    """Return an executor whose stages do nothing."""
    return Executor(graph, {node.name: lambda batch: None for node in graph.nodes}, HAND_OVERS)


def _without_policy(settings: Settings) -> str:
    """Return what runs must have in common to be compared."""
    data = settings.to_dict()
    return repr([(name, data[name]) for name in sorted(data) if name not in ("policy", "parameters")])


@contextmanager
def _no_pauses() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
