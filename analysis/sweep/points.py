"""One point of a sweep, run wherever an executor puts it: from settings to one flat record."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.jobs import job_of
from analysis.sweep.axes import WORKERS, Setting
from analysis.sweep.grid import Point
from simulator.errors import InfeasibleError, RecscaleError
from simulator.results.report import StepReport
from simulator.scenario import Scenario, run_scenario
from simulator.scenario.document import Document
from simulator.scenario.overrides import apply_overrides

DONE, INFEASIBLE, WRONG, FAILED = "done", "infeasible", "wrong", "failed"
Record = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """Some points of one grid, small enough to send to another machine."""

    base: Document
    engine: str
    points: tuple[Point, ...]


def run_task(task: Task) -> list[Record]:
    """Return one record per point, in order; a point that cannot run has its reason in `error`."""
    return [run_point(task.base, task.engine, point) for point in task.points]


def run_point(base: Document, engine: str, point: Point) -> Record:
    """Return the record of one point. Raises nothing: whatever goes wrong is told in the record."""
    return recorded(base, point, lambda scenario: _reported(scenario, engine))


def _reported(scenario: Scenario, engine: str) -> Record:
    report = run_scenario(scenario, engine).report
    told = {"scenario_hash": scenario.hash, "policy": scenario.spec.policy.kind}
    return {**told, "job": job_of(scenario.resolved()), **numbers(report)}


def recorded(base: Document, point: Point, found: Callable[[Scenario], Record]) -> Record:
    """Return the record of one point with what is `found` for its scenario, or why nothing was."""
    try:
        numbers_ = found(at_point(base, point.settings, point.source))
    except InfeasibleError as error:
        return failure(point, INFEASIBLE, str(error))
    except RecscaleError as error:
        return failure(point, WRONG, str(error))
    except Exception as error:  # a defect of ours in one point must not cost the others
        return failure(point, FAILED, f"{type(error).__name__}: {' '.join(str(error).split())}")
    told = {"key": point.key, "status": DONE, "error": None}
    return {**told, **numbers_, "settings": text_of(point)}


def failure(point: Point, status: str, reason: str) -> Record:
    """Return the record of a point without numbers."""
    return {"key": point.key, "status": status, "error": reason, "settings": text_of(point)}


def text_of(point: Point) -> str:
    """Return what a point sets as JSON."""
    return json.dumps(dict(point.settings))


def at_point(base: Document, settings: Sequence[Setting], source: str = "sweep") -> Scenario:
    """Return the scenario `base` with `settings`. Raises InputError naming `source` and the setting."""
    texts = [f"{path}={json.dumps(value)}" for path, value in settings if path != WORKERS]
    scenario = Scenario.of(apply_overrides(base, texts, source))
    workers = dict(settings).get(WORKERS)
    return scenario if workers is None else scenario.with_workers(workers, source)


def numbers(report: StepReport) -> Record:
    """Return the report as flat columns whose names carry their units."""
    stale, memory, cost = report.staleness_steps, report.peak_memory_bytes, report.cost or {}
    band = report.interval_ms or {}
    return {
        "scenario": report.scenario,
        "engine": report.engine,
        "fidelity": report.fidelity,
        "consistency": report.consistency,
        "bottleneck": "; ".join(report.bottleneck),
        "notes": "; ".join([*report.notes, *(f"beyond data: {what}" for what in report.extrapolated)]),
        "workers": float(report.ranks),
        **{f"step_{name}_ms": value for name, value in report.step_ms.items()},
        "interval_low_ms": band.get("low"),
        "interval_high_ms": band.get("high"),
        "latency_ms": report.latency_ms,
        "lower_bound_ms": report.lower_bound_ms,
        "throughput_samples_per_s": report.throughput_samples_per_s,
        "compute_ms": report.compute_ms,
        **{f"exposed_{kind}_ms": value for kind, value in report.exposed_ms.items()},
        **{f"raw_{kind}_ms": value for kind, value in report.raw_ms.items()},
        "interference_ms": report.interference_ms,
        **{f"busy_{what}_share": value for what, value in report.busy_share.items()},
        "staleness_declared_steps": stale["declared"],
        "staleness_observed_max_steps": stale["observed_max"],
        "staleness_observed_mean_steps": stale["observed_mean"],
        **{f"updates_{name}": share for name, share in report.updates.items()},
        **{f"peak_memory_{place}_bytes": memory.get(place) for place in ("hbm", "host")},
        "usd_per_million_samples": cost.get("usd_per_million_samples"),
        "joules_per_sample": cost.get("joules_per_sample"),
    }
