"""Predictions beside measurements: a row for each distinct run and for each fetch of a recording."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.calibration.local.predicting import LocalMachine
from simulator.calibration.local.rpc_fit import fit_rpc, held_out_of
from simulator.calibration.measure.pace import STEADY
from simulator.calibration.measure.rpc import RpcGrid, RpcPoint
from simulator.calibration.train.settings import Settings
from simulator.errors import InputError

FIRST, LAST = 5, 3  # steps of a run that are left out: its pipeline fills and drains


@dataclass(frozen=True)
class ComparedRun:
    """A run and what was predicted for it: mean steps in seconds, and gains over the serialized run."""

    recording: str
    settings: Settings
    measured: float
    predicted: float
    measured_gain: float | None = None
    predicted_gain: float | None = None

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured - 1.0

    @property
    def overlapped(self) -> bool:
        """Whether the policy has more in flight than one stage."""
        return self.settings.policy != "serialized"


def compared_runs(name: str, recording: Mapping[str, Any]) -> list[ComparedRun]:
    """Return every distinct run of a recording, its repeats taken together, with the prediction beside it.

    Raises InputError when a run needs a primitive that the recording does not have, or has too few steps.
    """
    machine = LocalMachine.of(dict(recording))
    rows = [
        ComparedRun(name, settings, measured, float(np.mean(machine.step_seconds(settings))))
        for settings, measured in _measured(recording["runs"])
    ]
    return [_with_gain(row, rows) for row in rows]


def _measured(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Settings, float]]:
    """Yield the distinct settings and the median over their runs of the mean step.

    Steps of a pipeline may be long and short in turns: their mean is what training takes. Runs at a slow
    pace of the machine count only where there is no other.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    first: dict[str, Settings] = {}
    for run in runs:
        settings = Settings.of(run["settings"])
        first.setdefault(repr(settings), settings)
        found.setdefault(repr(settings), []).append((run.get("pace") or 1.0, _mean_step(run)))
    for name, settings in first.items():
        steady = [mean for pace, mean in found[name] if pace <= STEADY]
        yield settings, float(np.median(steady or [mean for _, mean in found[name]]))


def _mean_step(run: Mapping[str, Any]) -> float:
    steps = run["step_s"]
    if len(steps) <= FIRST + LAST:
        raise InputError(
            f'a run of "{run["settings"]["policy"]}" has {len(steps)} steps; the first {FIRST} and the last'
            f" {LAST} are left out, so that nothing is left to compare"
        )
    return float(np.mean(steps[FIRST:-LAST]))


def _with_gain(row: ComparedRun, rows: Sequence[ComparedRun]) -> ComparedRun:
    shape = (row.settings.model, row.settings.batch, row.settings.optimizer)
    for other in rows:
        alike = (other.settings.model, other.settings.batch, other.settings.optimizer) == shape
        if alike and not other.overlapped:
            gains = other.measured / row.measured, other.predicted / row.predicted
            return ComparedRun(row.recording, row.settings, row.measured, row.predicted, *gains)
    return row


@dataclass(frozen=True)
class ComparedCalls:
    """A fetch over RPC and what was predicted for it, seconds; held out of the fit or not."""

    mode: str
    tables: int
    keys: int
    measured: float
    predicted: float
    held_out: bool

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured - 1.0


def compared_calls(recording: Mapping[str, Any]) -> list[ComparedCalls]:
    """Return every fetch of a recording beside its prediction; those not held out are fitted on."""
    points = [RpcPoint.of(point) for point in recording["rpc"]]
    fitted = fit_rpc(points, held_out_of(RpcGrid()))
    return [
        ComparedCalls(c.point.mode, c.point.tables, c.point.keys, c.point.seconds, c.predicted, c.held_out)
        for c in fitted.cases
    ]
