"""Measured cases that `recscale calibrate measure --record` wrote: real training runs and fetches.

`local_runs/*.json` are its files. Each distinct run is predicted from the primitives recorded with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from analysis.recorded_primitives import beyond, primitives_sum_ms
from analysis.recording_doubts import doubts
from analysis.validated import Validated
from simulator.calibration.train.settings import Settings
from simulator.errors import InputError, RecscaleError, regular_file

NAN = float("nan")


def local_runs(folder: Path) -> list[Validated]:
    """Return one case per distinct recorded run and per fetch; a foreign file is one case with the reason.

    So is what is no regular file: a pipe may never end.

    Raises InputError for a file that is not JSON.
    """
    paths = sorted((folder / "local_runs").glob("*.json"))
    return [case for path in paths for case in _path(path)]


def _path(path: Path) -> list[Validated]:
    try:
        regular_file(path)
    except InputError as problem:
        return [_listed(path, problem.problem)]
    return _file(path)


def _listed(path: Path, reason: str) -> Validated:
    return Validated(path.stem, "local", "files", path.stem, NAN).not_predicted(reason)


def _file(path: Path) -> list[Validated]:
    from simulator.calibration.local.schema import read_measurement

    try:
        recording = read_measurement(path)
    except InputError as problem:
        _check_json(path, problem)
        told = ": ".join(filter(None, (problem.where.path, problem.problem)))
        return [_listed(path, told)]
    found = Recording(path.stem, recording)
    cases = [*found.runs(), *found.fetches()]
    return cases or [
        _case(path.stem, path.stem, "files", NAN).not_predicted("the file records no run and no fetch")
    ]


def _check_json(path: Path, problem: InputError) -> None:
    """Raise `problem` unless the file holds JSON, if of another kind."""
    import orjson

    try:
        orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError, RecursionError):
        raise problem from None


def _case(name: str, recording: str, group: str, seconds: float) -> Validated:
    measured = seconds * 1e3
    return Validated(name, "local", f"local runs, {group}", name, measured, source=recording, like=group)


@dataclass(frozen=True)
class Recording:
    """One file of recordings, `data`, by the `name` of the file."""

    name: str
    data: Mapping[str, Any]

    @property
    def doubts(self) -> str:
        """What speaks against the recording, in one line."""
        return "; ".join(doubts(self.data))

    def runs(self) -> Iterator[Validated]:
        """Yield the distinct runs, each with the prediction or with what stands against one."""
        together: dict[str, list[Mapping[str, Any]]] = {}
        for run in self.data["runs"]:
            together.setdefault(repr(sorted(run["settings"].items())), []).append(run)
        for alike in together.values():
            yield self._run(alike).with_note(self.doubts)

    def _run(self, alike: list[Mapping[str, Any]]) -> Validated:
        try:
            settings = Settings.of(alike[0]["settings"])
        except RecscaleError as problem:
            return _case(f"{self.name} {alike[0]['settings']}", self.name, "unknown", NAN).not_predicted(
                problem.problem
            )
        group = "serialized" if settings.policy == "serialized" else "overlapped"
        case = _case(f"{self.name} {title(settings)}", self.name, group, _mean(alike))
        try:
            return self._predicted(case, settings, alike)
        except RecscaleError as problem:
            return case.not_predicted(problem.problem)
        except KeyError as missing:
            return case.not_predicted(f"the recording does not say {missing}")

    def _predicted(self, case: Validated, settings: Settings, alike: list[Mapping[str, Any]]) -> Validated:
        from simulator.calibration.local.comparison import compared_runs
        from simulator.calibration.local.predicting import LocalMachine

        machine = LocalMachine.of(dict(self.data))
        (found,) = compared_runs(self.name, {**self.data, "runs": alike})
        if not (isfinite(found.measured) and found.measured > 0):
            return case.not_predicted("the run has too few steps that count, or steps without a time")
        known = replace(case, measured_ms=found.measured * 1e3)
        plain = primitives_sum_ms(machine, settings)
        return known.with_prediction(
            found.predicted * 1e3, (None, None), beyond(machine, settings), plain=plain
        )

    def fetches(self) -> Iterator[Validated]:
        """Yield the fetches over RPC, each with the prediction or with what stands against one."""
        from simulator.calibration.local.comparison import compared_calls

        points = self.data["rpc"]
        cases = [self._fetch(point) for point in points]
        try:
            found = compared_calls(self.data) if points else []
        except RecscaleError as problem:
            yield from (case.not_predicted(problem.problem).with_note(self.doubts) for case in cases)
            return
        for case, point, said in zip(cases, points, found, strict=True):
            role = "predict" if said.held_out else "fit"
            plain = _calls_sum(point, points)
            told = replace(case, role=role).with_prediction(said.predicted * 1e3, (None, None), plain=plain)
            yield told.with_note(self.doubts)

    def _fetch(self, point: Mapping[str, Any]) -> Validated:
        asked = f"{point['tables']} tables x {point['keys']} keys from {point['servers']} servers"
        told = f"{point['mode']}, {asked}"
        return _case(f"{self.name} {told}", self.name, f"{point['mode']}, calls", point["seconds"])


def title(settings: Settings) -> str:
    """Return what tells a run from all others, in one line."""
    model = settings.model
    shape = f"{model.tables} tables x {model.rows} x {model.dimension}, {'-'.join(map(str, model.widths))}"
    keys = settings.keys or f"Zipf {model.exponent:g}"
    trained = f"{settings.optimizer} {settings.rate:g}, seed {settings.seed}, {settings.steps} steps"
    return f"{settings.title}, batch {settings.batch}, {shape}, {keys}, {trained}"


def _mean(alike: list[Mapping[str, Any]]) -> float:
    """Return the mean step of all recorded ones, seconds, for runs of which nothing better is said."""
    steps = [step for run in alike for step in run["step_s"]]
    return sum(steps) / len(steps) if steps else NAN


def _calls_sum(point: Mapping[str, Any], points: list[Mapping[str, Any]]) -> float | None:
    """Return the plain sum of a fetch, ms: its calls one after the other, each a start and its bytes.

    Start and rate are those of the line through the smallest and the largest recorded fetch of one table;
    None where these are not two.
    """
    single = [one for one in points if one["tables"] == 1 and one["servers"] == point["servers"]]
    single = sorted((one for one in single if one["mode"] == "in_turn"), key=lambda one: one["bytes"])
    if len(single) < 2 or single[0]["bytes"] == single[-1]["bytes"]:
        return None
    small, large = single[0], single[-1]
    slope = (large["seconds"] - small["seconds"]) / (large["bytes"] - small["bytes"])
    calls = 1 if point["mode"] == "coalesced" else point["tables"]
    start = small["seconds"] - slope * small["bytes"]
    return float((calls * start + slope * point["bytes"]) * 1e3)
