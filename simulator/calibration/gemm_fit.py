"""Fits the law of matrix products and its residual to measured shapes.

Each device and number format has a law of its own. The residual of a device is learned from all its
number formats together, as a library's choices for a shape are alike in them: the covariance of two
measurements is that of their shapes (`simulator.costs.gemm.closeness`), times `SHARED` when their formats
differ. `REACH`, `SHARED` and `NOISE`, and the weights of the axes in `closeness`, were chosen by five-fold
cross-validation over the shapes of the known half (`gemm_held_out.random_half(0)`) of H100, B200, MI300X
and MI355X; the other half was not looked at. `TOWARDS_LARGE` was chosen by hiding the largest fifth of the
shapes that are left when `gemm_held_out.largest` are hidden.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.calibration.gemm_devices import nominal_rates, units_of
from simulator.calibration.gemm_table import GemmTable
from simulator.costs.gemm import GemmTime, Residual, TileLaw, closeness
from simulator.quantities import FloatArray

REACH = 2.0  # octaves
SHARED = 0.75
NOISE = 0.1  # variance of one measurement over that of the residual
TOWARDS_LARGE = 0.75  # power of its flops by which a shape counts in the fit of a law
SOFT = 0.1  # relative errors beyond this count less than their square (soft L1)
UNSEEN = 0.01  # relative change of a time that no measurement would show
EDGE = 1e-3  # of the searched range: a number so near to its end was decided by it

# What is searched, and between which ends; quantisation only where the units of the device are known. Rates
# and times are searched in logarithms.
SEARCHED: Mapping[str, tuple[float, float]] = {
    "rate": (1e6, 1e18),  # flop/s
    "bandwidth": (1e6, 1e17),  # bytes/s
    "start_up": (1e-9, 1e-2),  # s
    "sharpness": (1.0, 10.0),
    "quantisation": (0.0, 1.0),
}
LOGARITHMIC = ("rate", "bandwidth", "start_up")

Fitted = Mapping[str, GemmTime]  # by number formats


def fit_law(table: GemmTable, start: TileLaw | None = None) -> TileLaw:
    """Return the law that fits best, by least squares of logarithms with a soft loss.

    A device whose units are not known has no quantisation. Of a device of the catalog, rate and bandwidth
    stay within what its maker prints: small operands that stay in caches would else be taken for a memory
    faster than there is, which fails where operands are larger than those that were measured.
    """
    from scipy.optimize import least_squares

    counts = table.shapes.flops**TOWARDS_LARGE
    counts = counts / np.sqrt(np.square(counts).mean())
    units = units_of(table.device)

    def missed(at: FloatArray) -> FloatArray:
        return np.asarray(counts * misses(table, _law(at, units)))

    low, high = _ends(table)
    begin = np.clip(_values(start or _guess(table), units), low + EDGE, high - EDGE)
    return _law(least_squares(missed, begin, loss="soft_l1", f_scale=SOFT, bounds=(low, high)).x, units)


def at_ends(table: GemmTable, law: TileLaw) -> tuple[str, ...]:
    """Return the numbers of a fitted law that the ends of the search decided, not the measurements."""
    low, high = _ends(table)
    shares = ((_values(law, units_of(table.device)) - low) / (high - low)).tolist()
    return tuple(
        name for name, share in zip(_searched(table), shares, strict=True) if not EDGE < share < 1 - EDGE
    )


def unseen(table: GemmTable, law: TileLaw) -> dict[str, tuple[float, float]]:
    """Return the numbers of a law that the measurements do not show, and between which values.

    Moved all the way to an end of the search, such a number changes no measured shape by more than `UNSEEN`:
    a bandwidth, for one, where no shape was bound by memory.
    """
    units = units_of(table.device)
    at, ends, found = _values(law, units), np.stack(_ends(table)), {}
    for place, name in enumerate(_searched(table)):
        own, (low, high) = at[place], ends[:, place]
        reached = [own, own]
        for side, end in enumerate((low, high)):
            moved = np.where(np.arange(len(at)) == place, end, at)
            if abs(end - own) > EDGE * (high - low) and _alike(table, law, _law(moved, units)):
                reached[side] = end
        if reached != [own, own]:
            least, most = (np.exp(reached) if name in LOGARITHMIC else np.array(reached)).tolist()
            found[name] = (least, most)
    return found


def _alike(table: GemmTable, law: TileLaw, other: TileLaw) -> bool:
    return bool(np.max(np.abs(misses(table, law) - misses(table, other))) <= UNSEEN)


def _guess(table: GemmTable) -> TileLaw:
    """Return a law to begin with: the best rates that were seen, and most of the least time."""
    rate, bandwidth = (
        float((amount / table.seconds).max()) for amount in (table.shapes.flops, table.shapes.bytes)
    )
    return TileLaw(rate, bandwidth, 0.8 * float(table.seconds.min()), units_of(table.device) or 1.0, 0.5, 2.0)


def _searched(table: GemmTable) -> list[str]:
    return [name for name in SEARCHED if name != "quantisation" or units_of(table.device)]


def _ends(table: GemmTable) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the search, both of shape (numbers,), as the numbers are searched."""
    ends = dict(SEARCHED)
    for name, most in zip(
        ("rate", "bandwidth"), nominal_rates(table.device, table.formats) or (), strict=False
    ):
        ends[name] = (ends[name][0], most)
    scaled = [
        np.log(ends[name]) if name in LOGARITHMIC else np.array(ends[name]) for name in _searched(table)
    ]
    low, high = np.array(scaled).T
    return low, high


def _values(law: TileLaw, units: float | None) -> FloatArray:
    logs = np.log([law.rate, law.bandwidth, max(law.start_up, SEARCHED["start_up"][0])])
    return np.array([*logs, law.sharpness, *([law.quantisation] if units else [])])


def _law(at: FloatArray, units: float | None) -> TileLaw:
    rate, bandwidth, start_up = (float(part) for part in np.exp(at[:3]))
    return TileLaw(rate, bandwidth, start_up, units or 1.0, float(at[4]) if units else 0.0, float(at[3]))


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
        np.concatenate([misses(*pair) for pair in zip(tables, laws, strict=True)]),
    )
    weights = stacked.weights()
    return {
        table.formats: GemmTime(law, _residual(stacked, weights, index))
        for index, (table, law) in enumerate(zip(tables, laws, strict=True))
    }


def misses(table: GemmTable, law: TileLaw) -> FloatArray:
    """Return log(measured / law) of each row."""
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
