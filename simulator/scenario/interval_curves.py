"""Measured collectives that may be off: a curve times a factor, as wide as its held-out errors."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simulator.costs.curves import Curve, SizeCurve
from simulator.hardware import catalog
from simulator.quantities import FloatArray
from simulator.scenario.interval_doubts import Doubt
from simulator.scenario.places import inside
from simulator.scenario.scenario import Scenario
from simulator.scenario.source import read_document
from simulator.units import parse_quantity

MEDIAN_TO_END = 1.9  # end of the middle 80 % over the median of |errors|, for normal ones


@dataclass(frozen=True)
class Times:
    """A curve by size whose times are `factor` times those of `curve`."""

    curve: SizeCurve
    factor: float

    def seconds(self, size: FloatArray) -> FloatArray:
        """Return the seconds of collectives of `size` bytes, same shape."""
        return self.factor * self.curve.seconds(size)


def slowed(curve: Curve, factor: float) -> Curve:
    """Return `curve` with all its times multiplied."""
    measured = tuple(replace(one, curve=Times(one.curve, factor)) for one in curve.measured)
    return replace(curve, measured=measured)


def curve_doubts(scenario: Scenario) -> dict[str, Doubt]:
    """Return the doubt about each measured collective that the scenario uses, by operation.

    It is what the fit got wrong about other scales, or about other sizes where the scale was tested.
    """
    found = {}
    for operation in scenario.costs.curves:
        error = _error(_entry(scenario, operation), scenario)
        if error:
            end = 1 + MEDIAN_TO_END * error
            found[operation] = Doubt(f"collectives.{operation}", 1 / end, 1.0, end)
    return found


def _entry(scenario: Scenario, operation: str) -> Mapping[str, Any]:
    """Return what the catalog, or the file that the scenario names, says of the curve of an operation."""
    spec = scenario.spec.cluster.collectives
    name = getattr(spec, operation, None)
    if spec is None or not isinstance(name, str):
        return {}
    if spec.file is None:
        return catalog.entry("collective", name)
    entries = read_document(inside(Path(scenario.document.file).parent, spec.file)).data["entries"]
    found: Mapping[str, Any] = entries[name]
    return found


def _error(entry: Mapping[str, Any], scenario: Scenario) -> float:
    """Return the median error that applies: that of scales when this one was not tested."""
    ranks, nodes = scenario.cluster.ranks, scenario.cluster.hosts
    tested = any((one["ranks"], one["nodes"]) == (ranks, nodes) for one in entry.get("scales", ()))
    held_out = entry.get("held_out", {})
    chosen = held_out.get("sizes" if tested else "scales") or held_out.get("sizes")
    return parse_quantity(chosen["median"], "fraction") if chosen else 0.0
