"""Profiled steps of a folder: below `traces`, a folder with an `et` and a `kineto` folder is one job.

Its step is predicted from its execution traces. Other profiles say what the host takes per launch; they have
no shapes, and are listed without a prediction.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

from analysis.stage_sums import stage_sum_ms
from analysis.trace_steps import TracedStep, per_launch
from analysis.validated import Validated
from simulator.errors import InputError, RecscaleError, regular_file
from simulator.scenario import run_scenario

if TYPE_CHECKING:
    from simulator.calibration.imports.kineto import Traces

DEVICES = {"V100": "v100", "A100": "a100_80", "H100": "h100", "H200": "h200", "B200": "b200"}
NAN = float("nan")


def profiled(folder: Path) -> list[Validated]:
    """Return one case per job, and one per other file with the reason why nothing is said of it.

    Those of the other files that train embedding tables give the time per launch for all jobs.
    """
    place = folder / "traces"
    jobs = sorted(path.parent for path in place.rglob("et") if (path.parent / "kineto").is_dir())
    paths = sorted(path for path in place.rglob("*.json*") if not path.is_dir())
    alone = [path for path in paths if not (path.is_file() and any(map(path.is_relative_to, jobs)))]
    others = [Profile.of(path, str(path.relative_to(place))) for path in alone]
    launches = [one.launch for one in others if one.launch is not None]
    return [*(_job(job, place, launches) for job in jobs), *(one.case() for one in others)]


@dataclass(frozen=True)
class Profile:
    """A file that belongs to no job: its mean step (ms), the host's time per launch (s), what it lacks."""

    name: str
    step_ms: float = NAN
    launch: float | None = None
    problem: str = "no execution traces beside it say the shapes of its step"

    @classmethod
    def of(cls, path: Path, name: str) -> "Profile":
        """Return what a file says."""
        try:
            traces = _read([regular_file(path)])
        except RecscaleError as problem:
            return cls(name, problem=problem.problem)
        steps = _steps(traces)
        if not steps:
            return cls(name, problem="it holds no whole step")
        return cls(name, mean(steps), per_launch(traces) if _trains_tables(traces) else None)

    def case(self) -> Validated:
        """Return the file as a case without a prediction."""
        case = Validated(self.name, "trace", "other profiles", self.name, self.step_ms)
        told = (
            "" if self.launch is None else f"it says that a launch takes the host {self.launch * 1e6:.1f} us"
        )
        return case.not_predicted(self.problem).with_note(told)


def _trains_tables(traces: "Traces") -> bool:
    classes = traces.ranks[0].table.class_times()
    launched = sum(step.launches for rank in traces.ranks for step in rank.table.steps)
    return launched > 0 and any("embedding" in one.name for one in classes)


def _read(paths: Sequence[Path]) -> "Traces":
    from simulator.calibration.imports.kineto import read_traces

    return read_traces([str(path) for path in paths])


def _steps(traces: "Traces") -> list[float]:
    return [step.step for rank in traces.ranks for step in rank.table.steps]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("."))


def _job(job: Path, place: Path, launches: Sequence[float]) -> Validated:
    name = str(job.relative_to(place))
    case = Validated(f"{name}, mean over ranks", "trace", "profiled steps", name, NAN)
    try:
        traces = _read(list(_files(job / "kineto")))
    except RecscaleError as problem:
        return case.not_predicted(problem.problem)
    steps = _steps(traces)
    if not steps or not mean(steps) > 0:
        return case.not_predicted("the profiles hold no whole step")
    case = Validated(f"{name}, mean over ranks", "trace", "profiled steps", name, mean(steps))
    try:
        return _predicted(case, job, traces, launches)
    except RecscaleError as problem:
        return case.not_predicted(problem.problem)


def _predicted(case: Validated, job: Path, traces: "Traces", launches: Sequence[float]) -> Validated:
    if not launches:
        return case.not_predicted("no other profile says what the host takes per launch")
    shapes = TracedStep.of(str(path) for path in _files(job / "et"))
    device = accelerator(traces.ranks[0].table.trace.device)
    run = run_scenario(shapes.scenario(median(launches), device))
    steps = _steps(traces)
    told = f"ranks measure {min(steps):.1f} to {max(steps):.1f} ms, most of it waiting for the last"
    predicted = run.report.step_ms["mean"]
    return case.with_prediction(predicted, (None, None), plain=stage_sum_ms(run)).with_note(told)


def accelerator(device: str) -> str:
    """Return the catalog's name of a device as profilers call it. Raises InputError for an unknown one."""
    found = next((name for part, name in DEVICES.items() if part in device), None)
    if found is None:
        raise InputError(f'the catalog has no device like "{device}" (known: {", ".join(DEVICES)})')
    return found
