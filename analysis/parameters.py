"""The physical parameters of a scenario: rates, latencies, efficiencies, and times measured as such.

Each knows how to scale itself: what any work would take if it were larger or smaller by a factor. Where
hosts differ, those of each group are parameters of their own.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from analysis.named_parts import Part, named
from analysis.rescaled_works import faster_hold, longer_cpu, longer_hold
from analysis.scaled import (
    TEXT,
    Parameter,
    Scaled,
    is_speed,
    limit,
    of_cores,
    of_server_cores,
    of_works,
    scaled_on,
)
from simulator.costs.software import Slowed
from simulator.scenario import Scenario
from simulator.scenario.document import dotted
from simulator.scenario.fields import Quantity
from simulator.units import format_time

Path = tuple[str | int, ...]

_AMOUNTS = [("cluster", "unexplained_host_time")]  # a time that is an amount of work; see `_measured`
_COPIES = [("cluster", "accelerator"), ("cluster", "host")]  # with groups: those of the first, once more


def parameters(scenario: Scenario) -> Iterator[Parameter]:
    """Yield the parameters of `scenario` that may set the time of a stage."""
    yield from _cluster(scenario)
    yield from _measured(scenario)
    yield from _software(scenario)


def _cluster(scenario: Scenario) -> Iterator[Parameter]:
    """Yield what the file writes out under its own paths, and the numbers of parts that it only names."""
    spec = scenario.spec.cluster
    yield from _written(scenario, spec, ("cluster",))
    if not isinstance(spec.fabric, BaseModel):
        yield from named(Part(scenario, "fabric"))
    for place, group in enumerate(spec.groups or (spec,)):
        for name in ("accelerator", "host"):
            if not isinstance(getattr(group, name), BaseModel):
                yield from named(Part(scenario, name, place))


def _written(scenario: Scenario, part: BaseModel, path: Path) -> Iterator[Parameter]:
    """Yield the numbers of one part of the file that set a speed, those of its own parts included."""
    for name, field in type(part).model_fields.items():
        value, here = getattr(part, name), (*path, name)
        if here in _COPIES and scenario.spec.cluster.groups:
            continue
        for below, item in _parts_of(value, here):
            yield from _written(scenario, item, below)
        if name == "peak_flops":
            precision = scenario.workload.precision
            yield _of_file(scenario, (*here, precision), "rate", value[precision])
        elif isinstance(value, int | float) and here not in _AMOUNTS and is_speed(name, _dimension(field)):
            yield _of_file(scenario, here, _dimension(field) or "count", value)


def _parts_of(value: Any, path: Path) -> Iterator[tuple[Path, BaseModel]]:
    """Yield the parts of the file that a value is or lists, each with its path."""
    if isinstance(value, BaseModel):
        yield path, value
    elif isinstance(value, tuple):
        yield from (((*path, place), item) for place, item in enumerate(value) if isinstance(item, BaseModel))


def _dimension(field: FieldInfo) -> str | None:
    """Return the dimension of a quantity, whether or not it may be left out."""
    unions = [mark for member in get_args(field.annotation) for mark in getattr(member, "__metadata__", ())]
    return next((mark.dimension for mark in (*field.metadata, *unions) if isinstance(mark, Quantity)), None)


def _of_file(scenario: Scenario, path: Path, dimension: str, value: float) -> Parameter:
    if path[-1] == "cores":
        return _of_file_cores(scenario, path, value)

    def scaled(factor: float) -> Scaled:
        spec = _replaced(scenario.spec, path, value * factor)
        if path[:3] == ("cluster", "groups", 0):
            spec = _replaced(spec, ("cluster", *path[3:]), value * factor)
        return Scaled(Scenario(spec, scenario.document).costs)

    return Parameter(str(dotted(path)), TEXT[dimension](value), limit(dimension, value), scaled)


def _of_file_cores(scenario: Scenario, path: Path, value: float) -> Parameter:
    name = str(dotted(path))
    if "servers" in path:
        return of_server_cores(scenario, name, value)
    return of_cores(scenario, name, value, int(path[2]) if path[1] == "groups" else 0)


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


def _measured(scenario: Scenario) -> Iterator[Parameter]:
    """Yield the times that the scenario states as such."""
    held, source = scenario.spec.cluster.unexplained_host_time, scenario.workload.input.cpu_time
    if held:
        path = "cluster.unexplained_host_time"
        yield of_works(scenario, path, format_time(held), longer_hold(path))
    if source:
        yield of_works(scenario, "workload.input.cpu_time", format_time(source), longer_cpu)


def _software(scenario: Scenario) -> Iterator[Parameter]:
    """Yield what the framework adds: times that are held, its loader, and how slow its kernels are."""
    software = scenario.software
    for name in ("fixed_cost_per_step", "host_time_per_op", "time_per_key"):
        if seconds := getattr(software, name):
            path = f"software.{name}"
            yield of_works(scenario, path, format_time(seconds), longer_hold(path))
    if software.loader_rate is not None:
        path = "software.loader_rate"
        yield of_works(scenario, path, f"{software.loader_rate:,.6g} /s", faster_hold(path))
    if software.slowdown != 1.0:
        yield _of_slowdown(scenario, software.slowdown)
    if software.gather_efficiency is not None:
        yield _of_gathers(scenario, software.gather_efficiency)


def _of_gathers(scenario: Scenario, value: float) -> Parameter:
    def scaled(factor: float) -> Scaled:
        software = replace(scenario.software, gather_efficiency=value * factor)
        return scaled_on(scenario, software.on(scenario.cluster))

    return Parameter("software.gather_efficiency", TEXT["fraction"](value), limit("fraction", value), scaled)


def _of_slowdown(scenario: Scenario, value: float) -> Parameter:
    def scaled(factor: float) -> Scaled:
        return Scaled(replace(scenario.costs, dense=Slowed(scenario.costs.dense, factor)))

    return Parameter("software.slowdown", f"{value:.4g}", float("inf"), scaled)
