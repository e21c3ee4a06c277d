"""Measured primitives in one neutral form: amounts of work in, seconds out.

A file is JSON as `recscale calibrate measure` writes it (`primitives`: curves of points by size), JSON
with a list `measurements` of `{primitive, parameters: {name: number}, seconds}`, or CSV with a column
`primitive`, a column `seconds`, and one column for each parameter. Keys that are not known are refused:
they may say what the numbers mean.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from simulator.calibration.csv_table import Line, read_lines
from simulator.errors import InputError, Where, did_you_mean, regular_file
from simulator.quantities import FloatArray
from simulator.units import shown

MOST_BYTES = 256 << 20
MOST_ROWS = 200_000
BOM = b"\xef\xbb\xbf"
FEWEST = 4  # measurements of a primitive that can be fitted and tested
LEAST_SECONDS, MOST_SECONDS = 1e-12, 1e6  # of one measurement; beyond it a unit was mistaken
LEAST_SIZE, MOST_SIZE = 1e-18, 1e18  # of an amount; rates, amounts per second, stay far from overflow
MOST_DIGITS = 20  # of a whole number that is kept as one; longer ones are floats, at worst infinite
_ABOUT = ("measurements", "taken", "date", "environment")  # what a plain file may say
_ROW = ("primitive", "parameters", "seconds")
_CURVE = ("operation", "unit", "context", "shape", "points")
_POINT = (
    *("size", "seconds", "p90_over_p50", "cpu_seconds", "repeats"),
    *("back_to_back", "stolen_seconds", "pace"),
)

Record = tuple[str, Mapping[str, float], float]  # primitive, parameters, seconds


@dataclass(frozen=True)
class Series:
    """One primitive: `amounts` by name and `seconds`, all of shape (rows,), rows sorted by the amounts.

    `fixed` are parameters that had one value throughout. All values are positive.
    """

    name: str
    amounts: Mapping[str, FloatArray]
    seconds: FloatArray
    fixed: Mapping[str, float] = field(default_factory=dict)
    source: str = "own measurement"
    date: str = "not stated"

    def rows(self, chosen: Any) -> "Series":
        """Return the series with the chosen rows only (an index array or a mask)."""
        amounts = {name: values[chosen] for name, values in self.amounts.items()}
        return Series(self.name, amounts, self.seconds[chosen], self.fixed, self.source, self.date)

    def with_seconds(self, seconds: FloatArray) -> "Series":
        """Return the series with other times."""
        return Series(self.name, self.amounts, seconds, self.fixed, self.source, self.date)

    @property
    def range(self) -> dict[str, tuple[float, float]]:
        """Least and most of each amount."""
        return {name: (float(values.min()), float(values.max())) for name, values in self.amounts.items()}


def read_series(file: str | Path) -> tuple[Series, ...]:
    """Return the primitives in `file` that have at least four measurements, in alphabetical order.

    Raises InputError, in one line, for files of another form, and for values that are not positive.
    """
    found = tuple(one for one in read_all(file) if fittable(one))
    if not found:
        raise InputError(f"no primitive has {FEWEST} measurements at different amounts", Where(str(file)))
    return found


def read_all(file: str | Path) -> tuple[Series, ...]:
    """Return all primitives in `file`, those with few measurements, too, in alphabetical order.

    Raises InputError as `read_series` does.
    """
    path = Path(file)
    source, date, records = _records(path)
    together: dict[str, list[Record]] = {}
    for count, record in enumerate(records):
        if count >= MOST_ROWS:
            raise InputError(f"has more than {MOST_ROWS:,} measurements", Where(str(path)))
        together.setdefault(record[0], []).append(record)
    return tuple(_series(name, rows, source, date) for name, rows in sorted(together.items()))


def fittable(series: Series) -> bool:
    """Whether a primitive has enough measurements, at different amounts."""
    return len(series.seconds) >= FEWEST and bool(series.amounts)


def series_of(name: str, rows: Iterable[tuple[Mapping[str, float], float]]) -> Series:
    """Return a series of (parameters, seconds). Raises InputError for parameters that differ in name."""
    return _series(name, [(name, parameters, seconds) for parameters, seconds in rows], "", "")


def _series(name: str, rows: list[Record], source: str, date: str) -> Series:
    names = sorted(rows[0][1])
    if any(sorted(parameters) != names for _, parameters, _ in rows):
        raise InputError(f'the measurements of "{name}" differ in their parameters ({", ".join(names)})')
    columns = {one: np.array([parameters[one] for _, parameters, _ in rows]) for one in names}
    varied = {one: values for one, values in columns.items() if values.min() < values.max()}
    fixed = {one: float(values[0]) for one, values in columns.items() if one not in varied}
    seconds = np.array([seconds for _, _, seconds in rows])
    order = np.lexsort([varied[one] for one in reversed(list(varied))]) if varied else np.arange(len(rows))
    amounts = {one: values[order] for one, values in varied.items()}
    return Series(name, amounts, seconds[order], fixed, source or "own measurement", date or "not stated")


def _records(path: Path) -> tuple[str, str, Iterator[Record]]:
    data = read_json(path)
    if data is None:
        return path.name, "not stated", _csv(path)
    return path.name, date_of(data), _checked(data, path)


def read_json(path: Path) -> Mapping[str, Any] | None:
    """Return the object of a JSON file of measurements; None for a file that is no JSON, but a table.

    Raises InputError for JSON of another form, for files that cannot be read, and for files that say they are
    of `calibrate measure` but are of another version or hold unknown fields.
    """
    with regular_file(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"is larger than {MOST_BYTES >> 20} MiB", Where(str(path)))
    bare = content.removeprefix(BOM).lstrip()
    if bare[:1] not in (b"{", b"["):
        return None
    try:
        data = json.loads(bare, parse_int=_whole)
    except (ValueError, RecursionError):
        raise InputError("is cut short or not JSON", Where(str(path))) from None
    if not isinstance(data, dict) or not any(isinstance(data.get(key), list) for key in _JSON_READERS):
        problem = f"has no list of {' or '.join(_JSON_READERS)}: it holds no measured primitives"
        raise InputError(problem, Where(str(path)))
    return _known(data, path)


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


def _known(data: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return `data`, checked as far as it says what it is. Raises InputError for what it should not hold."""
    from simulator.calibration.local.schema import FORMAT, read_measurement

    if data.get("format") == FORMAT:
        return read_measurement(path)
    try:
        _only(data, _ABOUT if "primitives" not in data else tuple(data))
    except InputError as problem:
        raise InputError(problem.problem, Where(str(path))) from None
    return data


def _only(found: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """Raise InputError naming the first key of `found` that is not allowed."""
    for key in found:
        if key not in allowed:
            raise InputError(f"{shown(str(key))} is unknown{did_you_mean(str(key), allowed)}")


def date_of(data: Mapping[str, Any]) -> str:
    """Return when measurements were taken, as far as a file says it."""
    environment = data.get("environment")
    known = environment if isinstance(environment, dict) else {}
    return str(data.get("taken") or data.get("date") or known.get("date") or "not stated")[:40]


def _checked(data: Mapping[str, Any], path: Path) -> Iterator[Record]:
    for key, read in _JSON_READERS.items():
        for place, one in enumerate(data.get(key) or ()):
            try:
                yield from read(one)
            except InputError as problem:
                raise InputError(problem.problem, Where(str(path), path=f"{key}[{place}]")) from None
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                needed = "needs a name, parameters and seconds, all numbers finite and above 0"
                raise InputError(needed, Where(str(path), path=f"{key}[{place}]")) from None


def _measurement(one: Mapping[str, Any]) -> Iterator[Record]:
    _only(one, _ROW)
    parameters = {str(name): _size(str(name), _positive(value)) for name, value in one["parameters"].items()}
    yield str(one["primitive"]), parameters, _seconds(_positive(one["seconds"]))


def _curve(one: Mapping[str, Any]) -> Iterator[Record]:
    """A curve of `calibrate measure`: points by size; what was held fixed belongs to its name."""
    _only(one, _CURVE)
    context = _size("context", _positive(one["context"])) if one.get("context") else 0.0
    shape = one.get("shape") or ()
    for size in shape:
        if float(size):
            _size("shape", _positive(size))
    parts = [str(one["operation"]), *(f"{context:g}" for _ in (1,) if context), *map(str, shape)]
    for point in one["points"]:
        _only(point, _POINT)
        size, seconds = _size("size", _positive(point["size"])), _seconds(_positive(point["seconds"]))
        yield "_".join(parts), {str(one["unit"]): size}, seconds


_JSON_READERS = {"measurements": _measurement, "primitives": _curve}


def _csv(path: Path) -> Iterator[Record]:
    for line in read_lines(path, ("primitive", "seconds"), MOST_ROWS, MOST_BYTES):
        yield _csv_record(line)


def _csv_record(line: Line) -> Record:
    """Read a line; empty cells are parameters that another primitive has."""
    if not (line.text("primitive") and line.text("seconds")):
        raise line.error("primitive and seconds are needed in every line")
    told = [name for name, text in line.fields.items() if text and name != "primitive"]
    numbers = {name: line.number(name) for name in told}
    try:
        seconds = _seconds(numbers.pop("seconds"))
        return line.text("primitive"), {name: _size(name, value) for name, value in numbers.items()}, seconds
    except InputError as problem:
        raise line.error(problem.problem) from None


def _seconds(value: float) -> float:
    if not LEAST_SECONDS <= value <= MOST_SECONDS:
        raise InputError(f"seconds: {value:g} lies outside of {LEAST_SECONDS:g} to {MOST_SECONDS:g} s")
    return value


def _size(name: str, value: float) -> float:
    if not LEAST_SIZE <= value <= MOST_SIZE:
        raise InputError(f"{name}: {value:g} lies outside of {LEAST_SIZE:g} to {MOST_SIZE:g}")
    return value


def _positive(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not (isfinite(number) and number > 0):
        raise ValueError
    return number
