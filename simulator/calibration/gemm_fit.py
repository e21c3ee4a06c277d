"""Fits the law of matrix products and its residual to measured shapes.

Each device and number format has a law of its own. The residual of a device is learned from all its
number formats together, as a library's choices for a shape are alike in them: the covariance of two
measurements is exp(-distance / reach), times `SHARED` when their formats differ. The three constants
below were chosen once, on a random half of the table of H100, B200, MI300X and MI355X.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.calibration.gemm_table import GemmTable
from simulator.costs.gemm import GemmTime, Residual, TileLaw, closeness
from simulator.quantities import FloatArray

REACH = 2.0  # octaves
SHARED = 0.8
NOISE = 0.1  # variance of one measurement over that of the residual
UNITS: Mapping[str, float] = {"H100": 132, "B200": 148, "MI300X": 304, "MI355X": 256}
DEFAULT_UNITS = 132.0

Fitted = Mapping[str, GemmTime]  # by number formats


def units_of(device: str) -> float:
    """Return the multiprocessors of a device by the beginning of its name (maker's figures)."""
    return next((count for name, count in UNITS.items() if device.startswith(name)), DEFAULT_UNITS)


def fit_law(table: GemmTable) -> TileLaw:
    """Return the law that fits best, by least squares of logarithms with a soft loss."""
    from scipy.optimize import least_squares

    shapes, units = table.shapes, units_of(table.device)

    def misses(at: FloatArray) -> FloatArray:
        law = _law(at, units)
        return np.asarray(np.log((law.start_up + law.busy(shapes)) / table.seconds))

    best_rate = float((shapes.flops / table.seconds).max())
    start = np.array([np.log(best_rate), np.log(3e12), np.log(4e-6), 0.5, 2.0])
    low, high = [20, 20, -20, 0, 1], [40, 40, -8, 1, 10]
    return _law(least_squares(misses, start, loss="soft_l1", f_scale=0.1, bounds=(low, high)).x, units)


def _law(at: FloatArray, units: float) -> TileLaw:
    rate, bandwidth, start_up = (float(part) for part in np.exp(at[:3]))
    return TileLaw(rate, bandwidth, start_up, units, float(at[3]), float(at[4]))


@dataclass(frozen=True, eq=False)
class _Stacked:
    """All measurements of one device: logarithms of shapes, the format's number, and the log residual."""

    logs: FloatArray
    formats: FloatArray
    misses: FloatArray

    def weights(self) -> FloatArray:
        """Return the weights of all measurements in the sums of a Gaussian process."""
        alike = self.formats[:, None] == self.formats[None, :]
        covariance = closeness(self.logs, self.logs, REACH) * np.where(alike, 1.0, SHARED)
        return np.asarray(np.linalg.solve(covariance + NOISE * np.eye(len(self.logs)), self.misses))


def fit_device(tables: Sequence[GemmTable]) -> Fitted:
    """Return law and residual of each number format of one device."""
    laws = [fit_law(table) for table in tables]
    stacked = _Stacked(
        np.concatenate([table.shapes.logs for table in tables]),
        np.concatenate([np.full(len(table.rows), index) for index, table in enumerate(tables)]),
        np.concatenate([_misses(*pair) for pair in zip(tables, laws, strict=True)]),
    )
    weights = stacked.weights()
    return {
        table.formats: GemmTime(law, _residual(stacked, weights, index))
        for index, (table, law) in enumerate(zip(tables, laws, strict=True))
    }


def _misses(table: GemmTable, law: TileLaw) -> FloatArray:
    return np.asarray(np.log(table.seconds / (law.start_up + law.busy(table.shapes))))


def _residual(stacked: _Stacked, weights: FloatArray, formats: int) -> Residual:
    """Return the residual of one format: weights of the same shape in several formats add up."""
    share = np.where(stacked.formats == formats, 1.0, SHARED)
    points, place = np.unique(stacked.logs, axis=0, return_inverse=True)
    summed = np.bincount(place.ravel(), weights * share, len(points))
    return Residual(points, np.asarray(summed, dtype=np.float64), REACH)


def fit_tables(tables: Sequence[GemmTable]) -> dict[str, Fitted]:
    """Return what was fitted, by device."""
    devices = dict.fromkeys(table.device for table in tables)
    return {name: fit_device([table for table in tables if table.device == name]) for name in devices}
