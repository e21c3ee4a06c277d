"""The physical parameters of a scenario: rates, latencies, efficiencies, and times measured as such.

Each knows how to scale itself: what any work would take if it were larger or smaller by a factor.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from simulator.costs.software import Slowed
from simulator.hardware.catalog.build import DIMENSIONS
from simulator.quantities import Amount, CpuWork, HoldWork, InTurn, Together, Work
from simulator.scenario import Scenario
from simulator.scenario.document import dotted
from simulator.scenario.fields import Quantity
from simulator.units import format_bandwidth, format_rate, format_time

Path = tuple[str | int, ...]
Seconds = Callable[[Work], Amount]

_TEXT: dict[str, Callable[[float], str]] = {
    "rate": format_rate,
    "bandwidth": format_bandwidth,
    "time": format_time,
    "fraction": lambda share: f"{100 * share:.4g} %",
    "count": lambda number: f"{number:,.6g}",
}
_AMOUNTS = [("cluster", "unexplained_host_time")]  # a time that is an amount of work; see `_measured`
_COUNTS = ("cores", "decay_workers")  # the counts that set a speed; the others change what is computed


@dataclass(frozen=True)
class Parameter:
    """One parameter: its path, its value as text, by how much it can grow, and costs with it scaled."""

    path: str
    text: str
    largest_factor: float
    scaled: Callable[[float], Seconds]


def parameters(scenario: Scenario) -> Iterator[Parameter]:
    """Yield the parameters of `scenario` that may set the time of a stage."""
    yield from _cluster(scenario)
    yield from _measured(scenario)
    yield from _software(scenario)


def _cluster(scenario: Scenario) -> Iterator[Parameter]:
    """Yield what the file writes out under its own paths, and the numbers of parts that it only names."""
    spec = scenario.spec.cluster
    yield from _written(scenario, spec, ("cluster",))
    for name in ("accelerator", "host", "fabric"):
        if not isinstance(getattr(spec, name), BaseModel):
            yield from _named(scenario, name)


def _written(scenario: Scenario, part: BaseModel, path: Path) -> Iterator[Parameter]:
    """Yield the numbers of one part of the file that set a speed, those of its own parts included."""
    for name, field in type(part).model_fields.items():
        value, here = getattr(part, name), (*path, name)
        if isinstance(value, BaseModel):
            yield from _written(scenario, value, here)
        elif isinstance(value, tuple):
            for place, item in enumerate(value):
                if isinstance(item, BaseModel):
                    yield from _written(scenario, item, (*here, place))
        elif name == "peak_flops":
            precision = scenario.workload.precision
            yield _of_file(scenario, (*here, precision), "rate", value[precision])
        elif value is not None and here not in _AMOUNTS and _is_speed(name, _dimension(field)):
            yield _of_file(scenario, here, _dimension(field) or "count", value)


def _dimension(field: FieldInfo) -> str | None:
    """Return the dimension of a quantity, whether or not it may be left out."""
    unions = [mark for member in get_args(field.annotation) for mark in getattr(member, "__metadata__", ())]
    return next((mark.dimension for mark in (*field.metadata, *unions) if isinstance(mark, Quantity)), None)


def _is_speed(name: str, dimension: str | None) -> bool:
    return dimension in ("rate", "bandwidth", "time", "fraction") or name in _COUNTS


def _of_file(scenario: Scenario, path: Path, dimension: str, value: float) -> Parameter:
    def scaled(factor: float) -> Seconds:
        spec = _replaced(scenario.spec, path, type(value)(value * factor))
        return Scenario(spec, scenario.document).costs.seconds

    return Parameter(str(dotted(path)), _TEXT[dimension](value), _limit(dimension, value), scaled)


def _replaced(part: Any, path: Path, value: float) -> Any:
    """Return a copy of a part of the file with one number replaced."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(part, BaseModel):
        return part.model_copy(update={str(step): _replaced(getattr(part, str(step)), rest, value)})
    if isinstance(part, tuple):
        items = [_replaced(item, rest, value) if place == step else item for place, item in enumerate(part)]
        return tuple(items)
    return {**part, step: _replaced(part[step], rest, value)}


def _limit(dimension: str, value: float) -> float:
    return 1.0 / value if dimension == "fraction" and value else float("inf")


def _named(scenario: Scenario, name: str) -> Iterator[Parameter]:
    """Yield the numbers of a part from the catalog that set a speed."""
    part = getattr(scenario.cluster, name)
    for field in fields(part):
        value, dimension = getattr(part, field.name), DIMENSIONS.get(field.name)
        if field.name == "peak_flops":
            yield _of_peaks(scenario)
        elif field.name == "gather_efficiency" and scenario.software.gather_efficiency is not None:
            continue  # the software's stands in its place
        elif isinstance(value, int | float) and dimension and _is_speed(field.name, dimension):
            yield _of_catalog(scenario, name, field.name)


def _of_catalog(scenario: Scenario, name: str, field: str) -> Parameter:
    part = getattr(scenario.cluster, name)
    dimension, value = DIMENSIONS[field], getattr(part, field)

    def scaled(factor: float) -> Seconds:
        return _with_part(scenario, name, replace(part, **{field: type(value)(value * factor)}))

    return Parameter(f"cluster.{name}.{field}", _TEXT[dimension](value), _limit(dimension, value), scaled)


def _of_peaks(scenario: Scenario) -> Parameter:
    accelerator, precision = scenario.cluster.accelerator, scenario.workload.precision
    peak = accelerator.peak(precision)

    def scaled(factor: float) -> Seconds:
        peaks = {**accelerator.peak_flops, precision: peak * factor}
        return _with_part(scenario, "accelerator", replace(accelerator, peak_flops=peaks))

    path = f"cluster.accelerator.peak_flops.{precision}"
    return Parameter(path, format_rate(peak), float("inf"), scaled)


def _with_part(scenario: Scenario, name: str, part: Any) -> Seconds:
    cluster = replace(scenario.cluster, **{name: part})
    return replace(scenario.costs, cluster=cluster).seconds


def _measured(scenario: Scenario) -> Iterator[Parameter]:
    """Yield the times that the scenario states as such."""
    held, source = scenario.spec.cluster.unexplained_host_time, scenario.workload.input.cpu_time
    if held:
        path = "cluster.unexplained_host_time"
        yield _of_works(scenario, path, format_time(held), _longer_hold(path))
    if source:
        yield _of_works(scenario, "workload.input.cpu_time", format_time(source), _longer_cpu)


def _software(scenario: Scenario) -> Iterator[Parameter]:
    """Yield what the framework adds: times that are held, its loader, and how slow its kernels are."""
    software = scenario.software
    for name in ("fixed_cost_per_step", "host_time_per_op", "time_per_key"):
        if seconds := getattr(software, name):
            path = f"software.{name}"
            yield _of_works(scenario, path, format_time(seconds), _longer_hold(path))
    if software.loader_rate is not None:
        path = "software.loader_rate"
        yield _of_works(scenario, path, f"{software.loader_rate:,.6g} /s", _faster_hold(path))
    if software.slowdown != 1.0:
        yield _of_slowdown(scenario, software.slowdown)
    if software.gather_efficiency is not None:
        found = _of_catalog(scenario, "accelerator", "gather_efficiency")
        yield replace(found, path="software.gather_efficiency")


def _of_slowdown(scenario: Scenario, value: float) -> Parameter:
    def scaled(factor: float) -> Seconds:
        return replace(scenario.costs, dense=Slowed(scenario.costs.dense, factor)).seconds

    return Parameter("software.slowdown", f"{value:.4g}", float("inf"), scaled)


def _of_works(scenario: Scenario, path: str, text: str, change: Callable[[Work, float], Work]) -> Parameter:
    def scaled(factor: float) -> Seconds:
        return lambda work: scenario.costs.seconds(_rebuilt(work, change, factor))

    return Parameter(path, text, float("inf"), scaled)


def _longer_hold(setting: str) -> Callable[[Work, float], Work]:
    """Return what makes the held times that come from `setting` so many times as long, and no others."""

    def changed(work: Work, factor: float) -> Work:
        if isinstance(work, HoldWork) and work.setting == setting:
            return replace(work, seconds=work.seconds * factor)
        return work

    return changed


def _faster_hold(setting: str) -> Callable[[Work, float], Work]:
    """Return the same for a rate, of which the time is the inverse."""
    longer = _longer_hold(setting)
    return lambda work, factor: longer(work, 1.0 / factor)


def _longer_cpu(work: Work, factor: float) -> Work:
    return replace(work, core_seconds=work.core_seconds * factor) if isinstance(work, CpuWork) else work


def _rebuilt(work: Work, change: Callable[[Work, float], Work], factor: float) -> Work:
    """Return `work` with every leaf changed."""
    if isinstance(work, InTurn | Together):
        return replace(work, parts=tuple(_rebuilt(part, change, factor) for part in work.parts))
    return change(work, factor)
