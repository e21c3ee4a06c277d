"""A table of measured matrix products, `gemm_*.csv`: one row per shape, number format and device."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator.costs.gemm import BoolArray, Shapes
from simulator.errors import InputError, Where
from simulator.quantities import FloatArray

COLUMNS = ("device", "batch", "m", "n", "k", "dtypes", "time_us")
WIDTHS = {"bf16": 2.0, "f16": 2.0, "f32": 4.0, "f8": 1.0}
MAX_ROWS = 200_000


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


def shapes_of(formats: str, rows: FloatArray) -> Shapes:
    """Return shapes of `rows`; raises InputError for formats of unknown width."""
    try:
        read, written = (WIDTHS[part] for part in (formats.split("x")[0], formats.split("->")[1]))
    except (KeyError, IndexError):
        known = f"number formats are written like bf16xbf16->f32 (of {', '.join(WIDTHS)})"
        raise InputError(f'{known}, not "{formats}"') from None
    return Shapes.of(rows, read, written)


def read_gemm_tables(path: Path) -> tuple[GemmTable, ...]:
    """Return the tables of a file in order of device and formats. Raises InputError (file, what is wrong)."""
    import pandas as pd

    try:
        frame = pd.read_csv(path, nrows=MAX_ROWS + 1)
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be read as a table: {str(error).splitlines()[0]}", Where(str(path))
        ) from None
    _check(list(frame.columns), len(frame), path)
    numbers = frame[["m", "n", "k", "batch", "time_us"]].apply(pd.to_numeric, errors="coerce").to_numpy(float)
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)).all(axis=1))
    if len(wrong):
        raise InputError("sizes and times must be positive numbers", Where(str(path), int(wrong[0]) + 2))
    named = [
        (str(device), str(formats)) for device, formats in zip(frame["device"], frame["dtypes"], strict=True)
    ]
    return tuple(
        _table(name, numbers, np.array([one == name for one in named])) for name in sorted(set(named))
    )


def _table(name: tuple[str, str], numbers: FloatArray, mine: BoolArray) -> GemmTable:
    shapes_of(name[1], numbers[mine, :4])  # refuses formats of unknown width
    return GemmTable(*name, numbers[mine, :4], numbers[mine, 4] * 1e-6)


def _check(columns: Sequence[str], rows: int, path: Path) -> None:
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise InputError(f"the table has no column {', '.join(missing)}", Where(str(path), 1))
    if rows > MAX_ROWS:
        raise InputError(f"more than {MAX_ROWS:,} rows", Where(str(path)))
