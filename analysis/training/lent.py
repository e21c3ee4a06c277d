"""Plans of DCNv2: the one that a log prints, one of a like row, one reconstructed, or one made here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.training.families import copies, copies_tables
from analysis.training.logged import fits
from analysis.training.machines import known
from analysis.training.plans import Part, balanced
from analysis.training.rows import Measured, Plan, Row
from simulator.errors import RecscaleError
from simulator.units import parse_quantity

KEPT_FOR_ROWS = 0.85  # of device memory
RECONSTRUCTED = "dlrm_dcnv2_sharding_reconstructed"


@dataclass(frozen=True)
class Planned:
    """Tables by accelerator (or host), those that all hold, and where the plan is from, if not the row."""

    plan: Plan
    copied: tuple[int, ...]
    note: str = ""


def planned(row: Row, tables: Sequence[Part], measured: Measured) -> Planned:
    """Return the plan of a row, with a note unless its own log prints it."""
    unfit = ""
    for other in (row, *(one for one in measured.rows if one.plan is not None and _alike(one, row))):
        if other.plan is None:
            continue
        if fits(other.plan, other.copied or (), (row.accelerators, row.hosts), len(tables)):
            note = "" if other is row else f"plan: from the log of {other.case_id}"
            return Planned(other.plan, other.copied or (), "; ".join(filter(None, (unfit, note))))
        unfit = f"the plan logged for {other.case_id} does not fit its machine and tables"
    found = _reconstructed(row, measured.configs, len(tables)) or _made(row, tables)
    return Planned(found.plan, found.copied, "; ".join(filter(None, (unfit, found.note))))


def _alike(other: Row, row: Row) -> bool:
    """Whether two rows' planners had the same problem before them."""
    same = (other.model, other.accelerators, other.hosts) == (row.model, row.accelerators, row.hosts)
    try:
        return same and copies_tables(other) == copies_tables(row) and known(other).name == known(row).name
    except RecscaleError:
        return False


def _reconstructed(row: Row, configs: Mapping[str, Any], tables: int) -> Planned | None:
    era, shape = ("v3.1" if copies_tables(row) else "v3.0"), f"{row.hosts}x{row.per_host}"
    try:
        listed = configs[RECONSTRUCTED]["plans"][era][shape]
        plan = tuple(tuple(int(table) for table in one) for one in listed["per_gpu"])
        copied = tuple(int(table) for table in dict(listed.get("strategy") or ()).get("dp", ()))
    except (KeyError, TypeError, ValueError):
        return None
    if not fits(plan, copied, (row.accelerators, row.hosts), tables):
        return None
    return Planned(plan, copied, f"plan: reconstructed for {shape} of {era}")


def _made(row: Row, tables: Sequence[Part]) -> Planned:
    small = parse_quantity(copies(row), "bytes")
    copied = tuple(place for place, one in enumerate(tables) if 4.0 * one["rows"] * one["dimension"] <= small)
    blocks, span = (row.hosts, row.per_host) if row.hosts > 1 else (row.per_host, 1)
    plan = balanced(tables, blocks, copied, span * _room(row, tables))
    return Planned(plan, copied, "plan: made here")


def _room(row: Row, tables: Sequence[Part]) -> float:
    """Return how many rows with their optimizer state, four bytes a value each, fit on an accelerator."""
    return KEPT_FOR_ROWS * known(row).bytes / (8.0 * float(max(one["dimension"] for one in tables)))
