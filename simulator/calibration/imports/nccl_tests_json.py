"""The JSON that nccl-tests writes when asked to (`-J FILE`): one run, its devices and its results."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator.calibration.imports.collective_rows import Facts, Found, Log, Row, is_operation
from simulator.calibration.imports.opening import opened
from simulator.errors import InputError, Where

MOST_BYTES = 64 << 20


def is_json(path: str) -> bool:
    """Return whether a file begins as a JSON object does."""
    with opened(Path(path)) as file:
        return file.read(64).lstrip().startswith(b"{")


def read_json(path: str) -> Log:
    """Return the table of a JSON report. Raises InputError for JSON of another kind."""
    data = _loaded(path)
    try:
        rows = tuple(_row(one) for one in data["results"] if one.get("out_of_place"))
        return Log((Found(_facts(data), rows, Where(path)),)) if rows else _nothing(path)
    except OverflowError:
        raise InputError("holds a number that is too large or not finite", Where(path)) from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("is JSON, but not a report of nccl-tests", Where(path)) from None


def _loaded(path: str) -> Any:
    with opened(Path(path)) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"is larger than {MOST_BYTES >> 20} MiB: no report of nccl-tests is", Where(path))
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise InputError("is cut short or not JSON", Where(path)) from None


def _nothing(path: str) -> Log:
    raise InputError("has no results", Where(path))


def _row(one: Mapping[str, Any]) -> Row:
    out, inside = one["out_of_place"], one.get("in_place") or {}
    wrong = out.get("nwrong")
    return Row(
        size=int(one["size"]),
        time_us=_time(out),
        wrong="" if wrong is None else str(int(wrong)),
        in_place_us=_time(inside) if inside else None,
        dtype=str(one["type"]),
    )


def _time(half: Mapping[str, Any]) -> float:
    return float(half["time"] if "time" in half else half["cpu_time"])


def _facts(data: Mapping[str, Any]) -> Facts:
    devices = data.get("config", {}).get("devices", [])
    names = {str(one["device_info"]).strip() for one in devices}
    return Facts(
        operation=_program([str(word) for word in data.get("args", [])]),
        ranks=1 + max(int(one["rank"]) for one in devices) if devices else None,
        nodes=len({one["hostname"] for one in devices}) or None,
        accelerator=names.pop() if len(names) == 1 else "",
        library=_library(data.get("nccl_version")),
    )


def _program(words: list[str]) -> str | None:
    names = (Path(word).name.removesuffix("_mpi").removesuffix("_perf") for word in words)
    return next((name for name in names if is_operation(name)), None)


def _library(code: Any) -> str:
    from simulator.calibration.imports.nccl_tests import release

    return release(code) if isinstance(code, int) else ""
