"""Measured cases that were recorded by programs: training on local machines, and profiled steps.

`local_runs/*.json` are files of `recscale calibrate measure --record`; below `traces`, a folder with an `et`
and a `kineto` folder is one job that was profiled, and other profiles say what the host takes per launch.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from analysis.trace_steps import TracedStep, per_launch
from analysis.validated import Validated
from simulator.errors import InputError, RecscaleError
from simulator.scenario import run_scenario

DEVICES = {"V100": "v100", "A100": "a100_80", "H100": "h100", "H200": "h200", "B200": "b200"}


def local_runs(folder: Path) -> list[Validated]:
    """Return the recorded training runs and calls, predicted from the primitives recorded with them."""
    from simulator.calibration.local.schema import read_measurement

    paths = sorted((folder / "local_runs").glob("*.json"))
    return [case for path in paths for case in _recorded(path.stem, read_measurement(path))]


def _recorded(name: str, recording: dict[str, object]) -> Iterator[Validated]:
    from simulator.calibration.local.comparison import compared_calls, compared_runs

    for run in compared_runs(name, recording) if recording["runs"] else []:
        kind = "overlapped" if run.overlapped else "serialized"
        told = f"{name} {run.settings.policy}, batch {run.settings.batch}, {run.settings.model}"
        yield _case(told, f"local runs, {kind}", run.measured, run.predicted)
    for call in compared_calls(recording) if recording["rpc"] else []:
        told = f"{name} {call.mode}, {call.tables} tables x {call.keys} keys"
        role = "predict" if call.held_out else "fit"
        yield _case(told, f"calls, {call.mode}", call.measured, call.predicted, role)


def _case(name: str, group: str, measured: float, predicted: float, role: str = "predict") -> Validated:
    case = Validated(name, "local", group, name, measured * 1e3, role)
    return case.with_prediction(predicted * 1e3, (None, None))


def profiled(folder: Path) -> list[Validated]:
    """Return the profiled steps, predicted from their execution traces and the launches of other jobs."""
    place = folder / "traces"
    jobs = sorted(path.parent for path in place.rglob("et") if (path.parent / "kineto").is_dir())
    if not jobs:
        return []
    paths = sorted(place.rglob("*.json*"))
    others = [path for path in paths if not any(path.is_relative_to(job) for job in jobs)]
    launches = list(_launches(others))
    return [_profiled(job, launches) for job in jobs]


def _launches(paths: list[Path]) -> Iterator[float]:
    """Yield seconds per launch of each profile of a job that trains with embedding tables."""
    from simulator.calibration.imports.kineto import read_traces

    for path in paths:
        try:
            traces = read_traces([str(path)])
        except RecscaleError:  # a trace of another kind
            continue
        if any("embedding" in one.name for one in traces.ranks[0].table.class_times()):
            yield per_launch(traces)


def _profiled(job: Path, launches: list[float]) -> Validated:
    from simulator.calibration.imports.kineto import read_traces

    traces = read_traces([str(path) for path in sorted((job / "kineto").iterdir())])
    steps = [step.step for rank in traces.ranks for step in rank.table.steps]
    measured = float(np.mean(steps))
    case = Validated(f"{job.name}, mean over ranks", "trace", "profiled steps", job.name, measured)
    if not launches:
        return case.with_note("not predicted: no other profile says what the host takes per launch")
    shapes = TracedStep.of(str(path) for path in sorted((job / "et").iterdir()))
    scenario = shapes.scenario(float(np.median(launches)), _accelerator(traces.ranks[0].table.trace.device))
    told = f"ranks measure {min(steps):.1f} to {max(steps):.1f} ms, most of it waiting for the last"
    predicted = run_scenario(scenario).report.step_ms["mean"]
    return case.with_prediction(predicted, (None, None)).with_note(told)


def _accelerator(device: str) -> str:
    """Return the catalog's name of a device as profilers call it. Raises InputError for an unknown one."""
    found = next((name for part, name in DEVICES.items() if part in device), None)
    if found is None:
        raise InputError(f'the catalog has no device like "{device}" (known: {", ".join(DEVICES)})')
    return found
