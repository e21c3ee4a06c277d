"""A kept sweep for the dashboard: its folder as people type it, and its points in relation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.report.found import Found, find_results
from analysis.report.relate import Related, by_scenario, related
from simulator.errors import InputError, Where, printable


@dataclass(frozen=True)
class Sweep:
    """The points of a sweep: related rows of each scenario, and why others could not run."""

    found: Found
    scenarios: dict[str, list[Related]]

    @property
    def summary(self) -> str:
        """How many points there are."""
        able, failed = len(self.found.points), len(self.found.failures)
        lost = f", {failed:,} could not run" if failed else ""
        return f"{able + failed:,} points{lost}"

    @property
    def reasons(self) -> list[str]:
        """Why points could not run, each reason once."""
        return list(dict.fromkeys(self.found.failures))


def load_sweep(typed: str) -> Sweep:
    """Return the sweep in the folder that was typed. Raises InputError, in one line, where there is none."""
    try:
        found = find_results(Path(typed.strip()).expanduser())
    except (OSError, ValueError, RuntimeError) as error:  # no name of a folder, or one that cannot be read
        reason = getattr(error, "strerror", None) or "that is no name of a folder"
        raise InputError(reason.lower(), Where(printable(typed[:200]))) from None
    if not (found.points or found.failures):
        raise InputError(
            "holds no sweep: no points/*.parquet (recscale sweep --out)", Where(str(found.folder))
        )
    rows = related([point.row for point in found.points])
    return Sweep(found, by_scenario(rows))


def table_of(rows: list[Related]) -> list[dict[str, Any]]:
    """Return rows for a table on the screen; columns that nothing is known for are left out."""
    written = [
        {
            "policy": one.row.policy,
            "workers": one.row.workers,
            "step, ms": round(one.row.step_ms, 3),
            "speed-up": None if one.speedup is None else round(one.speedup, 3),
            "scaling, %": None if one.efficiency is None else round(100 * one.efficiency, 1),
            "samples/s": round(one.row.throughput),
            "USD per million": one.row.usd_per_million,
            "stale steps": one.row.staleness,
            "with": one.row.at,
        }
        for one in rows
    ]
    known = [name for name in written[0] if any(row[name] not in (None, "") for row in written)]
    return [{name: row[name] for name in known} for row in written]
