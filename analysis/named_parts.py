"""The parameters of hardware that a scenario only names: the numbers of the catalog that set a speed."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from analysis.scaled import TEXT, Parameter, Scaled, is_speed, limit, of_cores, scaled_on
from simulator.hardware.catalog.build import DIMENSIONS
from simulator.scenario import Scenario
from simulator.units import format_rate


@dataclass(frozen=True)
class Part:
    """A part of the cluster that the file only names: its fabric, or a part of the hosts of a group."""

    scenario: Scenario
    name: str
    place: int | None = None

    @property
    def path(self) -> str:
        """Where it stands in the file."""
        grouped = self.place is not None and self.scenario.spec.cluster.groups
        return f"cluster.groups[{self.place}].{self.name}" if grouped else f"cluster.{self.name}"

    @property
    def now(self) -> Any:
        """The part as it is."""
        cluster = self.scenario.cluster
        return getattr(cluster if self.place is None else cluster.groups[self.place], self.name)

    def changed(self, **fields: Any) -> Scaled:
        """Return the scenario with other fields of this part."""
        cluster, other = self.scenario.cluster, {self.name: replace(self.now, **fields)}
        if self.place is None:
            return scaled_on(self.scenario, replace(cluster, **other))
        groups = list(cluster.groups)
        groups[self.place] = replace(groups[self.place], **other)
        return scaled_on(self.scenario, cluster.with_groups(groups))


def named(part: Part) -> Iterator[Parameter]:
    """Yield the numbers of a part from the catalog that set a speed."""
    for field in fields(part.now):
        value, dimension = getattr(part.now, field.name), DIMENSIONS.get(field.name)
        if field.name == "peak_flops":
            yield _of_peaks(part)
        elif field.name == "gather_efficiency" and part.scenario.software.gather_efficiency is not None:
            continue  # the software's stands in its place
        elif field.name == "cores":
            yield of_cores(part.scenario, f"{part.path}.cores", value, part.place or 0)
        elif isinstance(value, int | float) and dimension and is_speed(field.name, dimension):
            yield _of_catalog(part, field.name, dimension, value)


def _of_catalog(part: Part, field: str, dimension: str, value: float) -> Parameter:
    def scaled(factor: float) -> Scaled:
        return part.changed(**{field: value * factor})

    return Parameter(f"{part.path}.{field}", TEXT[dimension](value), limit(dimension, value), scaled)


def _of_peaks(part: Part) -> Parameter:
    precision = part.scenario.workload.precision
    peak = part.now.peak(precision)

    def scaled(factor: float) -> Scaled:
        return part.changed(peak_flops={**part.now.peak_flops, precision: peak * factor})

    return Parameter(f"{part.path}.peak_flops.{precision}", format_rate(peak), float("inf"), scaled)
