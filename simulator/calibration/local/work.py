"""What a rank does in a launch: measure the primitives of the grid, then execute the runs."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from simulator.calibration.local.job import Job
from simulator.calibration.local.served import ServedBench
from simulator.calibration.measure.channel import Channel
from simulator.calibration.measure.clock import Point, Stopwatch
from simulator.calibration.measure.pace import Pace, Paced
from simulator.calibration.measure.primitives import Bench, Curve, Task, curves
from simulator.calibration.measure.torch_device import DeviceBench
from simulator.calibration.measure.torch_group import TorchChannel
from simulator.calibration.train.executor import Execution, Executor
from simulator.calibration.train.plans import needs_servers, parts_of
from simulator.calibration.train.rpc_bench import rpc_points
from simulator.calibration.train.runner import Outcome, Runner
from simulator.calibration.train.settings import Settings
from simulator.pipeline import MarkedGraph

SWITCH_S = 5e-4
SECOND_CHANCES = 1  # for runs on a slow machine
HAND_OVERS = 40  # batches of empty stages
WARM_UP = 12  # steps, more than there are batches kept
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
class Round:
    """One round of a job: a point for each task, and runs as plain data."""

    points: list[Point]
    software: list[dict[str, Any]]
    runs: list[dict[str, Any]]


@dataclass(frozen=True)
class Work:
    """A job on one rank; `channels[0]` is for measuring, the others for streams; `sharing` ranks a core."""

    job: Job
    channels: Sequence[Channel]
    sharing: float = 1.0
    _references: dict[str, Outcome] = field(default_factory=dict)

    @cached_property
    def _pace(self) -> Pace:
        return Pace(self.channels[0])

    def done(self) -> dict[str, Any]:
        """Do all of it; return the result as plain data (the same on all ranks but for rank 0's extras)."""
        sys.setswitchinterval(SWITCH_S)
        with _no_pauses():
            rpc = rpc_points(self.job.rpc, self.job.servers) if self.job.rpc else []
            served = self._of_servers()
            self._warm_up()
            rounds = [self._round() for _ in range(self.job.rounds)]
            found = [*curves(self._tasks, [one.points for one in rounds]), *served, *self._of_devices()]
        return {
            "primitives": [self._called(curve).to_dict() for curve in found],
            "rpc": [one.to_dict() for one in rpc],
            "software": [run for one in rounds for run in one.software],
            "runs": [run for one in rounds for run in one.runs],
        }

    def _called(self, curve: Curve) -> Curve:
        """Return a curve under the name of what the channel made of the operation."""
        return replace(curve, operation=self.channels[0].curve_name(curve.operation))

    def _warm_up(self) -> None:
        """Run each shape once for nobody: the first batches are kept in pages that nobody has touched."""
        shapes = {(run.model, run.batch): run for run in self.job.runs if not needs_servers(run)}
        for run in shapes.values() if self.job.grid else ():
            self._run(replace(run, steps=WARM_UP))

    def _round(self) -> Round:
        """Measure all primitives, and execute all runs."""
        points = [task.timed(self._watch) for task in self._tasks]
        software = self._executed(self._nearly_empty()) if self.job.grid else []
        return Round(points, software, self._executed(self.job.runs))

    @cached_property
    def _tasks(self) -> list[Task]:
        grid = self.job.grid
        return [*Bench(self.channels[0], grid).tasks(), self._hand_over()] if grid else []

    @cached_property
    def _watch(self) -> Stopwatch:
        assert self.job.grid is not None
        return Stopwatch(self.channels[0], self.job.grid.budget, self.job.rest, self._pace, self.sharing)

    def _of_servers(self) -> list[Curve]:
        """Measure once, before the runs: every run makes the servers start anew."""
        if self.job.grid is None:
            return []
        return list(ServedBench(self.channels[0], self.job.servers, self.job.runs).curves(self._watch))

    def _of_devices(self) -> list[Curve]:
        channel, grid = self.channels[0], self.job.grid
        if grid is None or not isinstance(channel, TorchChannel):
            return []
        return list(DeviceBench(channel.device, grid).curves())

    def _hand_over(self) -> Task:
        """What it costs to hand a batch from one stage to the next: stages that do nothing."""
        settings = self.job.runs[0] if self.job.runs else Settings()
        runner = Runner(settings, self.channels)
        parts = HAND_OVERS * len(runner.graph.nodes)
        return Task(Curve("hand_over", "stages"), 1.0, lambda turn: idle(runner.graph).run(), parts)

    def _nearly_empty(self) -> list[Settings]:
        """Return runs of so few samples that what is left of a stage is its program: one per policy."""
        policies = [one for one in self.job.runs if not needs_servers(one)] or list(POLICIES)
        shape = policies[0].model
        few = [
            replace(one, model=shape, batch=FEW * parts_of(one), steps=SHORT, keys=None) for one in policies
        ]
        return list({one.title: one for one in few}.values())

    def _executed(self, runs: Sequence[Settings]) -> list[dict[str, Any]]:
        """Execute runs; those that came upon a slow machine are executed again at the end."""
        done = [self._paced(settings) for settings in runs]
        for _ in range(SECOND_CHANCES):
            done = [self._better(one, settings) for one, settings in zip(done, runs, strict=True)]
        return [{**one.found, "pace": one.pace} for one in done]

    def _better(self, one: Paced[dict[str, Any]], settings: Settings) -> Paced[dict[str, Any]]:
        return one if one.steady else min(one, self._paced(settings), key=lambda paced: paced.pace)

    def _paced(self, settings: Settings) -> Paced[dict[str, Any]]:
        return self._pace.around(lambda: self._run(settings))

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
