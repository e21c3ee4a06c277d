"""What PARAM's communication benchmark says: its lines of text, or its metrics as JSON.

Text lines are `COMMS-RES-<collective>[-<type>][tag]`, then bytes, elements per rank, latencies of the
ranks (50th, 75th, 95th percentile, least, most; us) and two bandwidths; older releases print bytes and
bandwidths alone. JSON has one object per size, as a list or one a line, with the field names of PARAM's
performance metrics. The time taken is the median rank's.
"""

import json
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from simulator.calibration.imports.collective_rows import MOST_ROWS, Facts, Found, Log, Row, whole
from simulator.calibration.imports.opening import lines, opened
from simulator.errors import InputError, Where

WHAT = "the output of PARAM's communication benchmark"
MOST_BYTES = 64 << 20
_LINE = re.compile(r"COMMS-RES-(?!QUANT)([a-z][a-z0-9_]*)(?:-(\S+))?\s+(\d.*)$")
_WORLD = re.compile(r"world[-_ ]?size\"?\s*[:=]?\s*(\d+)", re.IGNORECASE)
_SHORT = 3  # numbers of a line that has no latencies: bytes, algorithm and bus bandwidth
_MEDIAN, _WIDTHS = 2, (9, 10, 11, 12)  # where the median stands; numbers of the layouts with latencies
_PAIR = "point-to-point tests"

Key = tuple[str, str]
Rows = dict[Key, list[Row]]


def read_param_comms(path: str) -> Log:
    """Return one table per collective and type. Raises InputError when there is none."""
    with opened(Path(path)) as file:
        first = file.read(64).lstrip()[:1]
    rows, ranks, damaged = _from_json(path) if first in (b"{", b"[") else _from_text(path)
    if not any(rows.values()):
        raise InputError(f"has no row of measurements: it is not {WHAT}, or was cut short", Where(path))
    tables = tuple(
        Found(Facts(name, ranks), tuple(found), Where(path)) for (name, _), found in rows.items() if found
    )
    return Log(tables, (f"{damaged} lines of other tests, or damaged, were left out",) if damaged else ())


def _from_text(path: str) -> tuple[Rows, int | None, int]:
    rows: Rows = {}
    ranks, damaged, total = None, 0, 0
    for number, text in lines(Path(path), WHAT):
        if world := _WORLD.search(text):
            ranks = whole(world[1], Where(path, number))
        if not (match := _LINE.search(text)):
            continue
        found, total = _text_row(match[3].split(), match[2] or ""), total + 1
        damaged += found is None
        if found and total <= MOST_ROWS:
            rows.setdefault((match[1], found.dtype), []).append(found)
    return rows, ranks, damaged


def _text_row(words: list[str], dtype: str) -> Row | None:
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    if not isfinite(numbers[0]):
        return None
    if len(numbers) == _SHORT and numbers[1] > 0:
        return Row(int(numbers[0]), numbers[0] / numbers[1] / 1e3, dtype=dtype)
    if len(numbers) not in _WIDTHS or not _rising(numbers[_MEDIAN:]):
        return None
    return Row(int(numbers[0]), numbers[_MEDIAN], dtype=dtype) if numbers[_MEDIAN] > 0 else None


def _rising(latencies: list[float]) -> bool:
    """Whether median, 75th and 95th percentile are in order: a pair of collectives shifts the columns."""
    median, upper, most = latencies[:3]
    return median <= upper <= most


def _from_json(path: str) -> tuple[Rows, int | None, int]:
    rows: Rows = {}
    ranks, damaged = None, 0
    for one in _objects(path):
        ranks = _whole(one.get("world_size", one.get("WorldSize"))) or ranks
        found = _json_row(one)
        damaged += found is None
        if found:
            rows.setdefault((str(one["commsOp"]), found.dtype), []).append(found)
    return rows, ranks, damaged


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _json_row(one: Mapping[str, Any]) -> Row | None:
    try:
        size, time = int(max(one["InputSize"], one.get("OutputSize") or 0)), float(one["p50_latency_us"])
        dtype = str(one.get("Datatype") or "")
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return Row(size, time, dtype=dtype) if size > 0 and time > 0 and "commsOp" in one else None


def _objects(path: str) -> Iterable[Mapping[str, Any]]:
    with opened(Path(path)) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"is larger than {MOST_BYTES >> 20} MiB: that is not {WHAT}", Where(path))
    try:
        data = _parsed(content)
    except (ValueError, RecursionError):
        raise InputError("is cut short or not JSON", Where(path)) from None
    return [one for one in data if isinstance(one, dict)]


def _parsed(content: bytes) -> list[Any]:
    """Return the objects of a list, or of a file with one JSON value a line."""
    if content.lstrip().startswith(b"["):
        found = json.loads(content)
        return found if isinstance(found, list) else [found]
    return [json.loads(line) for line in content.splitlines() if line.strip()]
