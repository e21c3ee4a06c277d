"""Measured primitives in one neutral form: amounts of work in, seconds out.

A file is JSON as `recscale calibrate measure` writes it (`primitives`: curves of points by size), JSON
with a list `measurements` of `{primitive, parameters: {name: number}, seconds}`, or CSV with a column
`primitive`, a column `seconds`, and one column for each parameter.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from csv import DictReader
from csv import Error as CsvError
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from simulator.errors import InputError, Where, printable, regular_file
from simulator.quantities import FloatArray
from simulator.units import shown

MOST_BYTES = 256 << 20
MOST_ROWS = 200_000
FEWEST = 4  # measurements of a primitive that can be fitted and tested

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
    path = Path(file)
    source, date, records = _records(path)
    together: dict[str, list[Record]] = {}
    for count, record in enumerate(records):
        if count >= MOST_ROWS:
            raise InputError(f"has more than {MOST_ROWS:,} measurements", Where(str(path)))
        together.setdefault(record[0], []).append(record)
    series = (_series(name, rows, source, date) for name, rows in sorted(together.items()))
    found = tuple(one for one in series if len(one.seconds) >= FEWEST and one.amounts)
    if not found:
        raise InputError(f"no primitive has {FEWEST} measurements at different amounts", Where(str(path)))
    return found


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
    with regular_file(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"is larger than {MOST_BYTES >> 20} MiB", Where(str(path)))
    if content.lstrip()[:1] in (b"{", b"["):
        return _json(content, path)
    return path.name, "not stated", _csv(content, path)


def _json(content: bytes, path: Path) -> tuple[str, str, Iterator[Record]]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        raise InputError("is cut short or not JSON", Where(str(path))) from None
    if not isinstance(data, dict) or not any(isinstance(data.get(key), list) for key in _JSON_READERS):
        problem = f"has no list of {' or '.join(_JSON_READERS)}: it holds no measured primitives"
        raise InputError(problem, Where(str(path)))
    environment = data.get("environment")
    known = environment if isinstance(environment, dict) else {}
    date = str(data.get("date") or known.get("date") or "not stated")
    return path.name, date[:40], _checked(data, path)


def _checked(data: Mapping[str, Any], path: Path) -> Iterator[Record]:
    for key, read in _JSON_READERS.items():
        for place, one in enumerate(data.get(key) or ()):
            try:
                yield from read(one)
            except (KeyError, TypeError, ValueError, AttributeError):
                problem = "needs a name, parameters and seconds, all numbers finite and above 0"
                raise InputError(problem, Where(str(path), path=f"{key}[{place}]")) from None


def _measurement(one: Mapping[str, Any]) -> Iterator[Record]:
    parameters = {str(name): _positive(value) for name, value in one["parameters"].items()}
    yield str(one["primitive"]), parameters, _positive(one["seconds"])


def _curve(one: Mapping[str, Any]) -> Iterator[Record]:
    """A curve of `calibrate measure`: points by size; what was held fixed belongs to its name."""
    context, shape = float(one.get("context") or 0.0), one.get("shape") or ()
    parts = [str(one["operation"]), *(f"{context:g}" for _ in (1,) if context), *map(str, shape)]
    for point in one["points"]:
        yield "_".join(parts), {str(one["unit"]): _positive(point["size"])}, _positive(point["seconds"])


_JSON_READERS = {"measurements": _measurement, "primitives": _curve}


def _csv(content: bytes, path: Path) -> Iterator[Record]:
    try:
        reader = DictReader(content.decode("utf-8-sig").splitlines(), restval="")
        names = reader.fieldnames or ()
        if missing := [name for name in ("primitive", "seconds") if name not in names]:
            raise InputError(f"missing columns: {', '.join(missing)}", Where(str(path), 1))
        for fields in reader:
            yield _csv_record(fields, Where(str(path), reader.line_num))
    except UnicodeDecodeError:
        raise InputError("is neither JSON nor a table (CSV) in UTF-8", Where(str(path))) from None
    except CsvError as problem:
        raise InputError(f"is not a CSV file: {problem}", Where(str(path))) from None


def _csv_record(fields: Mapping[str, Any], where: Where) -> Record:
    """Read a line; empty cells are parameters that another primitive has."""
    told = {name: text.strip() for name, text in fields.items() if isinstance(text, str) and text.strip()}
    numbers = {name: text for name, text in told.items() if name != "primitive"}
    for name, text in numbers.items():
        try:
            _positive(float(text))
        except ValueError:
            raise InputError(f"{name}: a number above 0 is needed, not {shown(text)}", where) from None
    if not {"primitive", "seconds"} <= told.keys():
        raise InputError("primitive and seconds are needed in every line", where)
    parameters = {name: float(text) for name, text in numbers.items() if name != "seconds"}
    return printable(told["primitive"]), parameters, float(told["seconds"])


def _positive(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not (isfinite(number) and number > 0):
        raise ValueError
    return number
