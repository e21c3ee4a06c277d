"""Measured training steps in tables: `mlperf_dlrm.csv`, `other_benchmarks.csv`, and `model_configs.json`.

The files lie in the folder `training`; any of them may be missing. Every row becomes a `Row`, whether or not
anything can be said about it.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Where

MLPERF, OTHER, CONFIGS = "mlperf_dlrm.csv", "other_benchmarks.csv", "model_configs.json"
MAX_BYTES, MAX_ROWS = 50_000_000, 100_000
MLPERF_COLUMNS = ("case_id", "benchmark", "accel", "n_accel", "n_nodes", "global_batch", "step_ms_median")
OTHER_COLUMNS = ("case_id", "model_config_id", "accel", "n_accel", "n_nodes", "metric", "value", "unit")
Plan = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Row:
    """One measured configuration. `step_ms` is None where the source gives no step time.

    `words` are the source's own descriptions by column. `plan` lists the tables of each accelerator (or
    host), `copied` the tables that all hold; both None where no log prints them.
    """

    case_id: str
    table: str
    model: str
    accelerator: str
    accelerators: int
    hosts: int
    batch: int
    step_ms: float | None
    words: Mapping[str, str] = field(hash=False)
    plan: Plan | None = None
    copied: tuple[int, ...] | None = None

    @property
    def per_host(self) -> int:
        """Accelerators of one host."""
        return max(1, self.accelerators // max(1, self.hosts))

    @property
    def from_mlperf(self) -> bool:
        """Whether the step time was derived from an MLPerf log."""
        return self.table == MLPERF

    @property
    def round(self) -> str:
        """The first MLPerf round of the row, such as `v3.1`; empty elsewhere."""
        return self.words.get("rounds", "").split("+")[0]


@dataclass(frozen=True)
class Measured:
    """All rows of a folder, and the shapes of their models."""

    rows: tuple[Row, ...]
    configs: Mapping[str, Any] = field(hash=False)


def read_training(folder: Path) -> Measured:
    """Return the rows of `folder`/training; none where the folder has no such table. Raises InputError."""
    place = folder / "training"
    rows = (*_rows(place / MLPERF, MLPERF_COLUMNS, _mlperf), *_rows(place / OTHER, OTHER_COLUMNS, _other))
    return Measured(rows, _configs(place / CONFIGS))


def _rows(path: Path, needed: Iterable[str], read: Any) -> list[Row]:
    import csv

    if not _is_file(path):
        return []
    with path.open(encoding="utf-8", errors="replace", newline="") as stream:
        lines = csv.DictReader(stream)
        missing = [name for name in needed if name not in (lines.fieldnames or ())]
        if missing:
            raise InputError(f"the table has no column {', '.join(missing)}", Where(str(path), 1))
        return [_checked(read, line, Where(str(path), lines.line_num)) for line in _limited(lines, path)]


def _limited(lines: Iterable[Any], path: Path) -> Iterable[dict[str, str]]:
    for number, line in enumerate(lines):
        if number >= MAX_ROWS:
            raise InputError(f"more than {MAX_ROWS:,} rows", Where(str(path)))
        yield {str(key): (value or "") for key, value in line.items() if isinstance(value, str | None)}


def _is_file(path: Path) -> bool:
    """Return whether a plain file of bearable size is there. Raises InputError for anything else."""
    if not path.exists():
        return False
    if not path.is_file():
        raise InputError("is not a regular file", Where(str(path)))
    if path.stat().st_size > MAX_BYTES:
        raise InputError(f"is larger than {MAX_BYTES // 1_000_000} MB", Where(str(path)))
    return True


def _checked(read: Any, line: dict[str, str], where: Where) -> Row:
    try:
        row: Row = read(line)
    except (ValueError, SyntaxError, TypeError, OverflowError) as error:
        raise InputError(f"{line.get('case_id', 'a row')}: {str(error).splitlines()[0]}", where) from None
    return row


def _mlperf(line: dict[str, str]) -> Row:
    plan, copied = _logged(line)
    return Row(
        case_id=line["case_id"],
        table=MLPERF,
        model=f"mlperf_{line['benchmark']}",
        accelerator=line["accel"],
        accelerators=_count(line["n_accel"], "n_accel"),
        hosts=_count(line["n_nodes"], "n_nodes"),
        batch=_count(line["global_batch"], "global_batch"),
        step_ms=_number(line["step_ms_median"]),
        words=line,
        plan=plan,
        copied=copied,
    )


def _logged(line: dict[str, str]) -> tuple[Plan | None, tuple[int, ...] | None]:
    import ast

    text, kinds = line.get("sharding_logged", ""), line.get("sharding_strategy_logged", "")
    if not text.strip():
        return None, None
    copied = dict(ast.literal_eval(kinds.strip())).get("dp", ()) if kinds.strip() else ()
    plan = tuple(tuple(int(table) for table in one) for one in json.loads(text))
    return plan, tuple(int(table) for table in copied)


def _other(line: dict[str, str]) -> Row:
    batch = _number(line.get("global_batch", "")) or 0.0
    return Row(
        case_id=line["case_id"],
        table=OTHER,
        model=line["model_config_id"],
        accelerator=line["accel"],
        accelerators=_count(line["n_accel"], "n_accel"),
        hosts=_count(line["n_nodes"], "n_nodes"),
        batch=int(batch),
        step_ms=_step(line["metric"], line["unit"], _number(line["value"]), batch),
        words=line,
    )


def _step(metric: str, unit: str, value: float | None, batch: float) -> float | None:
    if value is None or value <= 0:
        return None
    if metric in ("iteration_time", "median_step_time", "step_time") and unit == "ms":
        return value
    return 1e3 * batch / value if metric == "throughput" and unit == "samples/s" and batch else None


def _count(text: str, name: str) -> int:
    number = _number(text)
    if number is None or number < 1 or number != int(number) or number > 1e9:
        raise ValueError(f"{name} must be a whole number of at least 1")
    return int(number)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _configs(path: Path) -> Mapping[str, Any]:
    if not _is_file(path):
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"is not JSON: {str(error).splitlines()[0]}", Where(str(path))) from None
    if not isinstance(found, dict):
        raise InputError("the top level must be an object", Where(str(path)))
    return found
