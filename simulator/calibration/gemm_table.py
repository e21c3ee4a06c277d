"""A table of measured matrix products, `gemm_*.csv`: one row per shape, number format and device."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator.calibration.csv_table import Line, read_lines
from simulator.costs.gemm import BoolArray, Shapes
from simulator.errors import InputError
from simulator.quantities import FloatArray
from simulator.units import shown

COLUMNS = ("device", "batch", "m", "n", "k", "dtypes", "time_us")
SIZES = ("m", "n", "k", "batch")
WIDTHS = {"bf16": 2.0, "f16": 2.0, "f32": 4.0, "f8": 1.0}
_FORMATS = re.compile(r"[a-z]+\d\w*x[a-z]+\d\w*->[a-z]+\d\w*")

Product = tuple[str, str, tuple[float, ...], float]  # device, formats, (m, n, k, batch), seconds


@dataclass(frozen=True, eq=False)
class GemmTable:
    """The products of one `device` and one combination of number formats: `rows` (N, 4) of m, n, k, batch.

    `seconds` (N,) are measured times; `formats` is written `left x right -> result`, without blanks.
    """

    device: str
    formats: str
    rows: FloatArray
    seconds: FloatArray

    @property
    def shapes(self) -> Shapes:
        """The shapes with the widths of their values."""
        return shapes_of(self.formats, self.rows)

    def part(self, chosen: BoolArray) -> "GemmTable":
        """Return the rows that the mask `chosen` names."""
        return GemmTable(self.device, self.formats, self.rows[chosen], self.seconds[chosen])


def known_formats(formats: str) -> bool:
    """Whether the widths of the values of `formats` are known."""
    left, _, rest = formats.partition("x")
    right, _, result = rest.partition("->")
    return {left, right, result} <= WIDTHS.keys()


def shapes_of(formats: str, rows: FloatArray) -> Shapes:
    """Return shapes of `rows`; raises InputError for formats of unknown width."""
    if not known_formats(formats):
        known = f"number formats are written like bf16xbf16->f32 (of {', '.join(WIDTHS)})"
        raise InputError(f"{known}, not {shown(formats)}")
    operands, _, result = formats.partition("->")
    left, right = (WIDTHS[part] for part in operands.split("x"))
    return Shapes.of(rows, (left + right) / 2, WIDTHS[result])


def read_gemm_tables(path: Path) -> tuple[GemmTable, ...]:
    """Return the tables of a file in order of device and formats, those of unknown formats among them.

    Raises InputError (file, line, what is wrong) for a file that cannot be read, a row without a device or
    formats, and sizes or times that are no positive numbers.
    """
    return tables_of(_product(line) for line in read_lines(path, COLUMNS))


def tables_of(products: Iterable[Product]) -> tuple[GemmTable, ...]:
    """Return products as tables, in order of device and formats."""
    found: dict[tuple[str, str], list[Product]] = {}
    for one in products:
        found.setdefault(one[:2], []).append(one)
    return tuple(_table(name, rows) for name, rows in sorted(found.items()))


def _table(name: tuple[str, str], rows: Sequence[Product]) -> GemmTable:
    sizes = np.array([row[2] for row in rows], dtype=np.float64)
    return GemmTable(*name, sizes, np.array([row[3] for row in rows], dtype=np.float64))


def _product(line: Line) -> Product:
    device, formats = (line.text(column) for column in ("device", "dtypes"))
    if not device:
        raise line.error("device is empty")
    if not _FORMATS.fullmatch(formats):
        raise line.error(f"dtypes: number formats are written like bf16xbf16->f32, not {shown(formats)}")
    sizes = tuple(float(line.count(column)) for column in SIZES)
    return device, formats, sizes, line.number("time_us") * 1e-6
