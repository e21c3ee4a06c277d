"""Collective curves fitted from measured tables, with intervals and what the fit got wrong.

`fit_folder(folder)` reads tables in the layout of nccl-tests results (see `collective_tables`),
`to_yaml()` writes what was found as a catalog file, `rows()` says it in a table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.calibration.collective_catalog import Entry, document
from simulator.calibration.collective_held_out import every_second_size, larger_scales, median_and_p90
from simulator.calibration.collective_lines import FittedLines, fit_with_intervals
from simulator.calibration.collective_systems import System, systems
from simulator.calibration.collective_tables import Table, read_tables
from simulator.costs.curves import Scale
from simulator.errors import InputError

Errors = tuple[float, float, int]  # median and 90th percentile of |error|, rows


@dataclass(frozen=True)
class FittedSystem:
    """A system, the lines through each of its scales, and its errors on what was held out.

    `sizes` is about every second size of its tables, `scales` about whole tables at up to four times
    the largest known nodes; nan and 0 rows where there is nothing to hold out.
    """

    system: System
    lines: Mapping[Scale, FittedLines]
    sources: Mapping[Scale, tuple[Table, ...]]
    sizes: Errors
    scales: Errors

    def row(self) -> dict[str, Any]:
        """Return the fit in one flat record; errors are shares, None where nothing was held out."""
        one = self.system
        return {
            "system": one.name,
            "operation": one.operation,
            "nodes": [measured.scale.nodes for measured in one.curve.measured],
            "ranks": [measured.scale.ranks for measured in one.curve.measured],
            "tables": len(one.tables),
            "decay": one.decay[1] if one.decay else None,
            "borrowed_nodes": sorted(scale.nodes for scale in one.borrowed),
            "sizes_median_error": self.sizes[0] if self.sizes[2] else None,
            "sizes_p90_error": self.sizes[1] if self.sizes[2] else None,
            "scales_median_error": self.scales[0] if self.scales[2] else None,
        }


@dataclass(frozen=True)
class CollectiveFit:
    """All systems of a folder; `left_out` names tables whose notes call them fit for noise studies only."""

    fitted: tuple[FittedSystem, ...]
    left_out: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return one record per system and operation."""
        return [one.row() for one in self.fitted]

    def to_yaml(self, shipped: bool = False) -> str:
        """Return a catalog file: lines, ranges, intervals, sources; and the measured points.

        `shipped` leaves out points whose source has no licence that lets them be passed on.
        """
        return document([_entry(one, shipped) for one in self.fitted])


def fit_folder(folder: str | Path) -> CollectiveFit:
    """Return the fit of the tables in `folder`; raise InputError, in one line, for what cannot be read."""
    return fit_collectives(read_tables(Path(folder)))


def fit_collectives(tables: Sequence[Table]) -> CollectiveFit:
    """Return the fit of `tables`; raise InputError if none is fit to be fitted."""
    usable = [table for table in tables if not table.noise_only]
    if not usable:
        raise InputError("all tables are fit for noise studies only: nothing to fit")
    left_out = tuple(table.name for table in tables if table.noise_only)
    return CollectiveFit(tuple(_fitted(one, usable) for one in systems(usable)), left_out)


def _fitted(system: System, tables: Sequence[Table]) -> FittedSystem:
    alike = [one for one in tables if (one.cluster, one.operation) == (system.cluster, system.operation)]
    known = (*alike, *system.lent)
    sources = {one.scale: _sources(system, known, one.scale) for one in system.curve.measured}
    return FittedSystem(
        system=system,
        lines={scale: fit_with_intervals(found) for scale, found in sources.items()},
        sources=sources,
        sizes=median_and_p90(every_second_size(system.tables)),
        scales=median_and_p90(_own(system, alike)),
    )


def _sources(system: System, tables: Iterable[Table], scale: Scale) -> tuple[Table, ...]:
    setting = system.borrowed.get(scale, system.tables[0].setting)
    return tuple(table for table in tables if table.setting == setting and table.scale == scale)


def _own(system: System, tables: Sequence[Table]) -> list[Any]:
    return [case for case in larger_scales(tables) if case.table.setting == system.setting]


def _entry(one: FittedSystem, shipped: bool) -> Entry:
    return Entry(
        system=one.system,
        lines=one.lines,
        sources=one.sources,
        errors={"sizes": one.sizes, "scales": one.scales},
        with_points=not shipped,
    )
