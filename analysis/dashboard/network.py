"""The one number of a fabric that the dashboard moves, whatever kind of fabric it is."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from simulator.errors import InputError
from simulator.hardware import catalog
from simulator.scenario import Scenario
from simulator.scenario.machine_spec import machine_with
from simulator.scenario.written_out import written_out as entry_written_out
from simulator.units import parse_quantity

WAYS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "two_level": (("between",), "of each accelerator out of its fast domain"),
    "torus": (("link_bandwidth",), "of each link of the torus"),
    **dict.fromkeys(("flat", "fat_tree", "rails"), (("nics", "bandwidth"), "of each network card")),
}


@dataclass(frozen=True)
class Way:
    """The bandwidth that can be moved: bytes/s in one direction, and whose it is."""

    bandwidth: float
    words: str
    path: tuple[str, ...]


def rebuilt(scenario: Scenario, **parts: Any) -> Scenario:
    """Return the scenario with whole parts of its file replaced. Raises InputError when they do not fit."""
    data = {**deepcopy(scenario.document.data), **parts}
    return Scenario.of(replace(scenario.document, data=data))


def way_out(scenario: Scenario) -> Way | None:
    """Return the bandwidth that can be moved, or None where the fabric has no single one."""
    fabric = written_out(scenario)
    if fabric is None or fabric.get("kind") not in WAYS:
        return None
    path, words = WAYS[str(fabric["kind"])]
    value: Any = fabric
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return None if value is None else Way(parse_quantity(value, "bandwidth"), words, path)


def with_bandwidth(scenario: Scenario, bandwidth: float) -> Scenario:
    """Return the scenario with its `way_out` at `bandwidth` bytes/s. Raises InputError where it has none."""
    way, fabric = way_out(scenario), written_out(scenario)
    if way is None or fabric is None:
        raise InputError("this fabric has no single bandwidth to move")
    if bandwidth == way.bandwidth:
        return scenario
    changed = deepcopy(fabric)
    place = changed
    for step in way.path[:-1]:
        place = place[step]
    place[way.path[-1]] = f"{bandwidth / 1e9!r} GB/s"
    cluster = {**deepcopy(scenario.document.data["cluster"]), "fabric": changed}
    return rebuilt(scenario, cluster=cluster)


def written_out(scenario: Scenario) -> dict[str, Any] | None:
    """Return the fabric as a file writes it, from the catalog if it is named; None for groups of hosts."""
    given = scenario.document.data["cluster"].get("fabric")
    if isinstance(given, dict):
        return given
    if scenario.spec.cluster.groups:
        return None
    name = given or catalog.entry("machine", _machine(scenario))["fabric"]
    return entry_written_out("fabric", str(name))


def _machine(scenario: Scenario) -> str:
    return machine_with(scenario.spec.cluster.accelerator, "fabric")
