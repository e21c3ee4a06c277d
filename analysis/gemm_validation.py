"""Matrix products that were kept from the fit: a random half, and the largest shapes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator.calibration.gemm_fit import fit_tables
from simulator.calibration.gemm_table import GemmTable, read_gemm_tables
from simulator.costs.gemm import BoolArray, GemmTime
from simulator.costs.gemm_catalog import measured_law

FEWEST = 40  # rows of a table that make two halves worth fitting
LARGEST = 0.2  # of the shapes of each table, by flops
Split = Callable[[GemmTable], BoolArray]


@dataclass(frozen=True)
class HeldOutProduct:
    """One measured product that the fit has not seen; times in seconds."""

    device: str
    formats: str
    shape: tuple[int, int, int, int]
    measured: float
    predicted: float | None
    plain: float | None
    outside: bool = False

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
    """Return a split that holds out a random half of the rows of each table, drawn for each table anew."""

    def held(table: GemmTable) -> BoolArray:
        rng = np.random.default_rng([seed, *f"{table.device} {table.formats}".encode()])
        mask = np.zeros(len(table.rows), dtype=bool)
        mask[rng.permutation(len(mask))[len(mask) // 2 :]] = True
        return mask

    return held


def other_half(seed: int) -> Split:
    """Return a split that holds out the other half."""
    first = random_half(seed)
    return lambda table: np.logical_not(first(table))


def largest(table: GemmTable) -> BoolArray:
    """Return the largest fifth of a table's shapes by flops."""
    flops = table.shapes.flops
    return np.asarray(flops >= np.quantile(flops, 1 - LARGEST))


def held_out(tables: Sequence[GemmTable], split: Split) -> list[HeldOutProduct]:
    """Return the predictions of what `split` holds out, each table fitted to the rest."""
    masks = [split(table) for table in tables]
    known = [table.part(np.logical_not(mask)) for table, mask in zip(tables, masks, strict=True)]
    fitted = fit_tables([table for table in known if len(table.rows)])
    hidden = [table.part(mask) for table, mask in zip(tables, masks, strict=True)]
    found = [_cases(one, fitted[one.device][one.formats]) for one in hidden if len(one.rows)]
    return [case for cases in found for case in cases]


def cross_fitted(tables: Sequence[GemmTable]) -> list[HeldOutProduct]:
    """Return a prediction for every row: from the shipped laws where these have not seen it, else from half.

    The rows that the shipped laws were learned from are fitted again, each half to the other.
    """
    seen = [_seen(table) for table in tables]
    new = [_cases(*one) for one in _unseen(tables, seen)]
    known = [table.part(mask) for table, mask in zip(tables, seen, strict=True) if mask.sum() >= FEWEST]
    few = [table.part(mask) for table, mask in zip(tables, seen, strict=True) if mask.sum() < FEWEST]
    halves = [held_out(known, half) for half in (random_half(0), other_half(0))]
    return [case for cases in (*new, *halves, *map(_unknown, few)) for case in cases]


def _unknown(table: GemmTable) -> list[HeldOutProduct]:
    """Return the rows of a table about which nothing is said: too few to fit some and predict the others."""
    rows = zip(table.rows.astype(int).tolist(), table.seconds.tolist(), strict=True)
    return [HeldOutProduct(table.device, table.formats, tuple(row), real, None, None) for row, real in rows]


def _seen(table: GemmTable) -> BoolArray:
    """Return which rows the shipped laws have seen; all, where no law is shipped for the table."""
    shipped = measured_law(table.device, table.formats)
    if shipped is None or shipped.residual is None:
        return np.ones(len(table.rows), dtype=bool)
    points = {tuple(point) for point in np.round(2**shipped.residual.points).tolist()}
    return np.array([tuple(row) in points for row in table.rows.tolist()], dtype=bool)


def _unseen(tables: Sequence[GemmTable], seen: Sequence[BoolArray]) -> Iterator[tuple[GemmTable, GemmTime]]:
    for table, mask in zip(tables, seen, strict=True):
        shipped = measured_law(table.device, table.formats)
        if shipped is not None and not mask.all():
            yield table.part(np.logical_not(mask)), shipped


def _cases(table: GemmTable, time: GemmTime) -> list[HeldOutProduct]:
    shapes, law = table.shapes, time.law
    predicted, outside = time.alone(shapes), time.extrapolates(shapes)
    plain = shapes.flops / law.rate + shapes.bytes / law.bandwidth

    def case(row: int) -> HeldOutProduct:
        m, n, k, batch = (int(part) for part in table.rows[row])
        real, said, summed = (float(one[row]) for one in (table.seconds, predicted, plain))
        shape, beyond = (m, n, k, batch), bool(outside[row])
        return HeldOutProduct(table.device, table.formats, shape, real, said, summed, beyond)

    return [case(row) for row in range(len(table.rows))]


def median_and_p90(cases: Sequence[HeldOutProduct]) -> tuple[float, float]:
    """Return the median and 90th percentile of |error|."""
    errors = np.abs([case.error for case in cases])
    return float(np.median(errors)), float(np.quantile(errors, 0.9))


def tables_in(folder: Path) -> tuple[GemmTable, ...]:
    """Return the tables `gemm*.csv` in `folder`/kernels; none when there is no such file."""
    files = sorted((folder / "kernels").glob("gemm*.csv"))
    return tuple(table for file in files for table in read_gemm_tables(file))
