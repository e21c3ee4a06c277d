"""Measured training steps in tables: `mlperf_dlrm.csv`, `other_benchmarks.csv`, and `model_configs.json`.

The files lie in the folder `training`; all but one table may be missing. Every row becomes a `Row`, whether
or not anything can be said about it: one that cannot be read, that is given twice, or whose machine does not
add up has a `problem`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.training.logged import logged
from analysis.training.rows import CONFIGS, MLPERF, OTHER, Measured, Plan, Row
from analysis.training.steps import TIMES, step_ms
from simulator.calibration.csv_table import Line, number, read_lines
from simulator.errors import InputError, Where, regular_file
from simulator.units import shown

__all__ = ["CONFIGS", "MLPERF", "OTHER", "Measured", "Plan", "Row", "read_training"]

MAX_BYTES, MAX_ROWS = 50_000_000, 100_000
RUNS = "mlperf_dlrm_runs.csv"  # single runs, of which the rows of MLPERF are the medians
MLPERF_COLUMNS = ("case_id", "benchmark", "accel", "n_accel")
OTHER_COLUMNS = ("case_id", "model_config_id", "accel", "n_accel", "metric", "value", "unit")
STEP_COLUMNS = ("step_ms_median", "step_ms_console", "samples_per_s_train_only")
Found = tuple[Any, str]  # a number, and a note on where it is from


def read_training(folder: Path) -> Measured:
    """Return the rows of `folder`/training, and none where there is no such folder.

    Raises InputError for files that cannot be read, tables without a column that is needed, and a folder
    that has none of the tables.
    """
    place = folder / "training"
    if not place.is_dir():
        return Measured((), {})
    files = {path.name for path in place.glob("*.csv")}
    if not files & {MLPERF, OTHER}:
        there = f" (it has {', '.join(sorted(files)[:5])})" if files else ""
        raise InputError(f"the folder has neither {MLPERF} nor {OTHER}{there}", Where(str(place)))
    found = [row for name, read in _READERS.items() if name in files for row in read(place / name)]
    found += [_foreign(name) for name in sorted(files - {MLPERF, OTHER, RUNS})]
    return Measured(tuple(_once(found)), _configs(place / CONFIGS))


def _foreign(name: str) -> Row:
    problem = f"tables of training steps are called {MLPERF} and {OTHER}"
    return Row(name, name, "", "", 0, 0, 0, None, {}, problem=problem)


def _once(rows: Iterable[Row]) -> Iterable[Row]:
    """Yield the rows; those that repeat a name have a problem: nobody knows which of them is meant."""
    first: dict[str, Row] = {}
    for row in rows:
        if row.case_id in first:
            yield replace(row, step_ms=None, problem=f"{row.words['line']}: a second row of this case_id")
        else:
            first[row.case_id] = row
            yield row


def _mlperf_rows(path: Path) -> list[Row]:
    lines = read_lines(path, MLPERF_COLUMNS, MAX_ROWS, MAX_BYTES)
    _one_of(lines, path, STEP_COLUMNS)
    return [_whole(line, MLPERF, _benchmark(line.text("benchmark")), _mlperf_step) for line in lines]


def _other_rows(path: Path) -> list[Row]:
    lines = read_lines(path, OTHER_COLUMNS, MAX_ROWS, MAX_BYTES)
    return [_whole(line, OTHER, line.text("model_config_id"), _other_step) for line in lines]


_READERS: Mapping[str, Callable[[Path], list[Row]]] = {MLPERF: _mlperf_rows, OTHER: _other_rows}


def _one_of(lines: Sequence[Line], path: Path, columns: Sequence[str]) -> None:
    if lines and not any(name in lines[0].fields for name in columns):
        raise InputError(f"the table has no column {' or '.join(columns)}", Where(str(path), 1))


def _benchmark(text: str) -> str:
    """Return the model of a benchmark; rounds before v3.0 call the first DLRM just so."""
    name = text.lower().replace("-", "_")
    return "mlperf_dlrm_v1" if name == "dlrm" else f"mlperf_{name}"


def _whole(line: Line, table: str, model: str, step: Callable[[Line, int, int], Found]) -> Row:
    """Return the row of a line; what cannot be read of it is its problem, with the place."""
    row = Row(
        case_id=line.text("case_id") or f"{table}, line {line.where.line}",
        table=table,
        model=model,
        accelerator=line.text("accel"),
        accelerators=0,
        hosts=0,
        batch=0,
        step_ms=None,
        words={**line.fields, "line": f"line {line.where.line}"},
        measured_ms=_given_ms(line, table),
    )
    try:
        return _measured(_sized(row, line), line, step)
    except ValueError as error:
        return replace(row, problem=f"line {line.where.line}: {error}")


def _sized(row: Row, line: Line) -> Row:
    """Return the row with its machine and batch. Raises ValueError where they are not stated."""
    accelerators = _count(line, "n_accel")
    hosts, told = _hosts(line, accelerators)
    batch, also = _batch(line, accelerators)
    plan, copied, unread = logged(line.text("sharding_logged"), line.text("sharding_strategy_logged"))
    notes = tuple(filter(None, (told, also, unread)))
    sized = replace(row, accelerators=accelerators, hosts=hosts, batch=batch, notes=notes)
    return replace(sized, plan=plan, copied=copied)


def _measured(row: Row, line: Line, step: Callable[[Line, int, int], Found]) -> Row:
    """Return the row with its step, or with the reason why it has none or nothing can be simulated."""
    time, told = step(line, row.batch, row.accelerators)
    row = replace(row, measured_ms=time, notes=(*row.notes, *filter(None, (told,))))
    problem = _does_not_add_up(row)
    return (
        replace(row, problem=f"line {line.where.line}: {problem}") if problem else replace(row, step_ms=time)
    )


def _does_not_add_up(row: Row) -> str:
    if row.accelerators % row.hosts:
        return f"{row.accelerators} accelerators do not fill {row.hosts} hosts evenly"
    if not row.batch:
        return "the batch is not stated"
    if row.batch % row.accelerators:
        return f"a batch of {row.batch:,} is not divided evenly over {row.accelerators} accelerators"
    return ""


def _count(line: Line, column: str) -> int:
    try:
        found = line.count(column)
    except InputError as error:
        raise ValueError(error.problem) from None
    if found > 10**9:
        raise ValueError(f"{column}: at most 1,000,000,000, not {shown(line.text(column))}")
    return found


def _hosts(line: Line, accelerators: int) -> tuple[int, str]:
    if line.text("n_nodes") or not line.text("accel_per_node"):
        return _count(line, "n_nodes"), ""
    each = _count(line, "accel_per_node")
    if accelerators % each:
        raise ValueError(f"{accelerators} accelerators are no whole number of hosts with {each}")
    return accelerators // each, "hosts: counted from accel_per_node"


def _batch(line: Line, accelerators: int) -> tuple[int, str]:
    if line.text("global_batch"):
        return _count(line, "global_batch"), ""
    each = number(line.text("local_batch"))
    if each is None or each <= 0:
        return 0, ""
    return round(each * accelerators), "batch: local_batch times the accelerators"


def _mlperf_step(line: Line, batch: int, accelerators: int) -> Found:
    for column in STEP_COLUMNS:
        if line.text(column):
            try:
                found = line.number(column)
            except InputError as error:
                raise ValueError(error.problem) from None
            told = "" if column == STEP_COLUMNS[0] else f"measured: from {column}"
            if "samples" in column and not batch:
                break
            return (1e3 * batch / found if "samples" in column else found), told
    raise ValueError("the source gives no step time")


def _other_step(line: Line, batch: int, accelerators: int) -> Found:
    value = number(line.text("value"))
    if value is None:
        raise ValueError(f"value: a number is needed, not {shown(line.text('value'))}")
    return step_ms(line.text("metric"), line.text("unit"), value, batch, accelerators), ""


def _given_ms(line: Line, table: str) -> float:
    """Return the time that a row gives, whatever of, ms; not a number where it gives none above 0."""
    unit = 1.0 if table == MLPERF else TIMES.get(line.text("unit").lower(), 0.0)
    value = number(line.text("step_ms_median" if table == MLPERF else "value"))
    return value * unit if value is not None and value * unit > 0 else float("nan")


def _configs(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    if regular_file(path).stat().st_size > MAX_BYTES:
        raise InputError(f"is larger than {MAX_BYTES:,} bytes", Where(str(path)))
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {str(error).splitlines()[0]}", Where(str(path))) from None
    if not isinstance(found, dict):
        raise InputError("the top level must be an object", Where(str(path)))
    return found
