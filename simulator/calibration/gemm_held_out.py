"""Matrix products kept from a fit: a random half of the shapes of each device, and the largest shapes.

A shape is hidden in all number formats of its device at once, since what is learned of it in one format is
lent to the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.calibration.gemm_devices import nominal_rates
from simulator.calibration.gemm_fit import fit_tables
from simulator.calibration.gemm_table import GemmTable
from simulator.costs.gemm import BoolArray, GemmTime
from simulator.quantities import FloatArray, statistics

LARGEST = 0.2  # of the shapes of each device, by flops
Split = Callable[[str, FloatArray], BoolArray]  # device and its shapes (S, 4), none twice: which are hidden


@dataclass(frozen=True)
class HeldOutProduct:
    """One measured product and what is said of it; times in seconds.

    `plain` is flops over the peak plus bytes over the memory bandwidth, both as the maker prints them; None
    for a device that the catalog does not have. `role` is that of `analysis.validated`; `note` says what the
    prediction rests on, or why there is none.
    """

    device: str
    formats: str
    shape: tuple[int, int, int, int]
    measured: float
    predicted: float | None
    plain: float | None
    outside: bool = False
    role: str = "predict"
    note: str = ""

    @property
    def name(self) -> str:
        """A name made of device, formats and shape."""
        m, n, k, batch = self.shape
        return f"gemm_{self.device}_{self.formats}_{batch}x{m}x{n}x{k}"

    @property
    def error(self) -> float:
        """Predicted over measured, less one; not a number where nothing is predicted."""
        return (self.predicted or float("nan")) / self.measured - 1


def random_half(seed: int) -> Split:
    """Return a split that hides a random half of the shapes of each device."""

    def hidden(device: str, shapes: FloatArray) -> BoolArray:
        rng = np.random.default_rng([seed, *device.encode()])
        mask = np.zeros(len(shapes), dtype=bool)
        mask[rng.permutation(len(mask))[len(mask) // 2 :]] = True
        return mask

    return hidden


def other_half(seed: int) -> Split:
    """Return a split that hides the other half."""
    first = random_half(seed)
    return lambda device, shapes: np.logical_not(first(device, shapes))


def largest(device: str, shapes: FloatArray) -> BoolArray:
    """Hide the largest fifth of the shapes by flops."""
    flops = shapes.prod(axis=1)
    return np.asarray(flops >= np.quantile(flops, 1 - LARGEST))


def masks(tables: Sequence[GemmTable], split: Split) -> list[BoolArray]:
    """Return for each table which of its rows `split` hides: those of the device's hidden shapes."""
    hidden: dict[str, set[tuple[float, ...]]] = {}
    for device in dict.fromkeys(table.device for table in tables):
        rows = np.concatenate([table.rows for table in tables if table.device == device])
        shapes = np.unique(rows, axis=0)
        hidden[device] = {tuple(row) for row in shapes[split(device, shapes)].tolist()}
    return [
        np.array([tuple(row) in hidden[table.device] for row in table.rows.tolist()], dtype=bool)
        for table in tables
    ]


def held_out(tables: Sequence[GemmTable], split: Split) -> list[HeldOutProduct]:
    """Return the predictions of what `split` hides, each device fitted to its other shapes."""
    hidden = masks(tables, split)
    known = [table.part(np.logical_not(mask)) for table, mask in zip(tables, hidden, strict=True)]
    fitted = fit_tables([table for table in known if len(table.rows)])
    asked = [table.part(mask) for table, mask in zip(tables, hidden, strict=True) if mask.any()]
    found = [predicted(one, fitted.get(one.device, {}).get(one.formats)) for one in asked]
    return [case for cases in found for case in cases]


def predicted(table: GemmTable, time: GemmTime | None) -> list[HeldOutProduct]:
    """Return the rows of a table as `time` predicts them; without one, nothing is predicted."""
    bare = [_bare(table, row) for row in range(len(table.rows))]
    if time is None:
        return [replace(case, role="none") for case in bare]
    said, outside = time.alone(table.shapes).tolist(), time.extrapolates(table.shapes).tolist()
    told = zip(bare, said, outside, plain_seconds(table), strict=True)
    return [replace(case, predicted=one, outside=far, plain=plain) for case, one, far, plain in told]


def plain_seconds(table: GemmTable) -> list[float | None]:
    """Return what the maker's figures give for each row of a table; None for unknown devices."""
    rates = nominal_rates(table.device, table.formats)
    if rates is None:
        return [None] * len(table.rows)
    found: list[float | None] = list(table.shapes.flops / rates[0] + table.shapes.bytes / rates[1])
    return found


def _bare(table: GemmTable, row: int) -> HeldOutProduct:
    m, n, k, batch = (int(part) for part in table.rows[row])
    seconds = float(table.seconds[row])
    return HeldOutProduct(table.device, table.formats, (m, n, k, batch), seconds, None, None)


def median_and_p90(cases: Sequence[HeldOutProduct]) -> tuple[float, float]:
    """Return the median and 90th percentile of |error|."""
    median, p90, _ = statistics.median_and_p90([case.error for case in cases])
    return median, p90
