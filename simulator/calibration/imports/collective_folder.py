"""Imported tables as a folder of `tables.csv` and `rows.csv`, which `recscale calibrate fit` reads."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.calibration.imports.collective_rows import Imported, Row
from simulator.errors import InputError, Where
from simulator.results.csv_writing import write_csv
from simulator.results.export import replacing

TABLE_COLUMNS = (
    *("table_id", "group", "collective", "accel", "n_ranks", "n_nodes", "gpus_per_node", "nic_gbps_per_gpu"),
    *("network", "library", "n_rows", "max_size_bytes", "peak_busbw_gbps", "latency_floor_us", "full_sweep"),
    *("source", "path", "commit", "licence", "notes"),
)
ROW_COLUMNS = (
    *(
        "table_id",
        "collective",
        "accel",
        "n_ranks",
        "n_nodes",
        "gpus_per_node",
        "size_bytes",
        "count",
        "dtype",
    ),
    *("time_us", "algbw_gbps", "busbw_gbps", "wrong"),
    *("time_us_inplace", "algbw_gbps_inplace", "busbw_gbps_inplace"),
)
FILES = ("tables.csv", "rows.csv")
FULL_SWEEP_BELOW = 1 << 20  # a sweep that starts below a megabyte shows the start-up as well


@dataclass(frozen=True)
class Labels:
    """What to write beside the numbers: name of the cluster, and facts no log states."""

    cluster: str = "imported"
    network: str = ""
    source: str = "own measurement"
    licence: str = "own"


def table_rows(tables: Sequence[Imported], labels: Labels) -> list[dict[str, Any]]:
    """Return the lines of `tables.csv`; sizes in bytes, bandwidths in 1e9 bytes/s, times in us."""
    names = _names(tables, labels)
    return [_table(one, name, labels) for one, name in zip(tables, names, strict=True)]


def refuse_kept(folder: Path) -> None:
    """Raise InputError where `folder` holds what another import has written: it would be lost."""
    for name in FILES:
        if os.path.lexists(folder / name) and (folder / name).is_file():
            problem = "is there already, from an import before; name another folder, or remove it"
            raise InputError(problem, Where(str(folder / name)))


def write_folder(folder: Path, tables: Sequence[Imported], labels: Labels) -> None:
    """Write both files, each whole or not at all.

    Raises OSError, and InputError where one of them is there already.
    """
    refuse_kept(folder)
    names = _names(tables, labels)
    _write(folder / "tables.csv", TABLE_COLUMNS, table_rows(tables, labels))
    rows = (_row(one, row, name) for one, name in zip(tables, names, strict=True) for row in one.rows)
    _write(folder / "rows.csv", ROW_COLUMNS, rows)


def _write(path: Path, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    with replacing(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        write_csv(columns, rows, file)


def _names(tables: Sequence[Imported], labels: Labels) -> list[str]:
    """Return a name for each table, numbered where two would be alike."""
    bare = [
        _word(f"{labels.cluster}_{one.nodes}n{one.ranks // one.nodes}g_{one.operation}_{one.library}")
        for one in tables
    ]
    return list(_numbered(bare))


def _numbered(names: Sequence[str]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name}_{seen[name]}"


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _scale(one: Imported, name: str) -> dict[str, Any]:
    return {
        "table_id": name,
        "collective": one.operation,
        "accel": one.accelerator,
        "n_ranks": one.ranks,
        "n_nodes": one.nodes,
        "gpus_per_node": one.ranks // one.nodes,
    }


def _table(one: Imported, name: str, labels: Labels) -> dict[str, Any]:
    sizes = [row.size for row in one.rows if row.size > 0]
    peak = max((one.bus_gbps(row) for row in one.rows), default=0.0)
    return _scale(one, name) | {
        "group": f"{_word(labels.cluster)}_{one.nodes}n{one.ranks // one.nodes}g",
        "network": labels.network,
        "library": one.library,
        "n_rows": len(one.rows),
        "max_size_bytes": max(sizes, default=0),
        "peak_busbw_gbps": f"{peak:.2f}",
        "latency_floor_us": f"{min(row.time_us for row in one.rows):.4g}",
        "full_sweep": int(min(sizes, default=0) < FULL_SWEEP_BELOW),
        "source": labels.source,
        "path": Path(one.where.file or "").name,
        "licence": labels.licence,
        "notes": one.note,
    }


def _row(one: Imported, row: Row, name: str) -> dict[str, Any]:
    found = _scale(one, name) | {
        "size_bytes": row.size,
        "dtype": row.dtype,
        "time_us": f"{row.time_us:g}",
        "algbw_gbps": f"{row.size / row.time_us / 1e3:.4g}",
        "busbw_gbps": f"{one.bus_gbps(row):.4g}",
        "wrong": row.wrong,
    }
    if row.in_place_us:
        share = row.time_us / row.in_place_us
        found["time_us_inplace"] = f"{row.in_place_us:g}"
        found["algbw_gbps_inplace"] = f"{row.size / row.in_place_us / 1e3:.4g}"
        found["busbw_gbps_inplace"] = f"{one.bus_gbps(row) * share:.4g}"
    return found
