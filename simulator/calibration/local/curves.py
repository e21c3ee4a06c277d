"""Times of measured operations between the sizes that were measured: straight lines in log-log axes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from simulator.calibration.measure.channel import STAGED
from simulator.errors import InputError, did_you_mean
from simulator.quantities import FloatArray

STOLEN_ERROR, LEAST_ERROR_S = 0.1, 1e-5  # of stolen times: a share of the collective's, and at least this


@dataclass(frozen=True)
class OperationCurve:
    """One operation in one context: `seconds` and `cpu` (of the calling thread) at rising `sizes`."""

    operation: str
    context: float
    shape: tuple[int, ...]
    sizes: tuple[float, ...]
    times: tuple[float, ...]
    cpu: tuple[float, ...]
    spread: tuple[float, ...]
    in_a_row: tuple[float, ...]
    stolen: tuple[float, ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "OperationCurve":
        """Return the curve in plain data, as a measurement file has it."""
        points = sorted(data["points"], key=lambda point: point["size"])

        def column(name: str, instead: str = "size") -> tuple[float, ...]:
            return tuple(float(point[instead] if point[name] is None else point[name]) for point in points)

        return cls(
            data["operation"],
            float(data["context"]),
            tuple(data["shape"]),
            column("size"),
            column("seconds"),
            column("cpu_seconds"),
            column("p90_over_p50"),
            column("back_to_back", "seconds"),
            column("stolen_seconds", "cpu_seconds"),
        )

    def seconds(self, size: float) -> float:
        """Return the time of `size`; below the smallest measured size that of it, above in proportion."""
        return self._at(self.times, size)

    def seconds_in_a_row(self, size: float) -> float:
        """Return the time of one of several in a row: a shaped link has no credit left then."""
        return self._at(self.in_a_row, size)

    def core_seconds(self, size: float) -> float:
        """Return the time of a core that `size` takes from what else runs there: so much per call and byte.

        What is missing from another thread's work is a small difference of large times, so a line through all
        sizes says more than the nearest ones.
        """
        each, per_byte = self._stolen_line
        return each + per_byte * size

    @cached_property
    def _stolen_line(self) -> tuple[float, float]:
        """The line a + b size with a, b >= 0 through the stolen times; disturbed ones count less."""
        from scipy.optimize import least_squares

        sizes, stolen = np.array(self.sizes), np.array(self.stolen)
        error = STOLEN_ERROR * np.maximum(self.in_a_row, self.times) + LEAST_ERROR_S
        units = np.array([LEAST_ERROR_S, error[-1] / sizes[-1]])

        def off(line: FloatArray) -> FloatArray:
            return np.asarray((line[0] * units[0] + line[1] * units[1] * sizes - stolen) / error)

        fitted = least_squares(off, np.ones(2), bounds=(0.0, np.inf), loss="soft_l1")
        each, per_byte = fitted.x * units
        return float(each), float(per_byte)

    def _at(self, values: Sequence[float], size: float) -> float:
        if size <= 0.0:
            return 0.0
        beyond = max(1.0, size / self.sizes[-1])
        x: FloatArray = np.log(self.sizes)
        y: FloatArray = np.log(np.maximum(values, 1e-9))
        return beyond * float(np.exp(np.interp(np.log(size), x, y)))


@dataclass(frozen=True)
class CurveSet:
    """All curves of a measurement."""

    curves: tuple[OperationCurve, ...]

    @classmethod
    def of(cls, primitives: Sequence[Mapping[str, Any]]) -> "CurveSet":
        """Return the curves in plain data."""
        return cls(tuple(OperationCurve.of(one) for one in primitives))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The operations, each once."""
        return tuple(dict.fromkeys(curve.operation for curve in self.curves))

    def of_operation(self, name: str, shape: tuple[int, ...] = ()) -> list[OperationCurve]:
        """Return the curves of an operation, by rising context; of one `shape` if any curve has one.

        Raises InputError when it was not measured, or not for this shape.
        """
        asked = (name, f"{STAGED}{name}")  # what ran here may have gone through a device
        found = [curve for curve in self.curves if curve.operation in asked]
        if not found:
            raise InputError(f'the measurement has no curve of "{name}"{did_you_mean(name, self.names)}')
        fitting = [curve for curve in found if not shape or not curve.shape or curve.shape == shape]
        if not fitting:
            there = "; ".join("-".join(map(str, curve.shape)) for curve in found)
            wanted = "-".join(map(str, shape))
            raise InputError(f'"{name}" was not measured for the shape {wanted} (measured: {there})')
        return sorted(fitting, key=lambda curve: curve.context)

    def seconds(self, name: str, size: float, context: float, shape: tuple[int, ...]) -> float:
        """Return the time of `size` of an operation, between contexts in log-log axes as well."""
        curves = self.of_operation(name, shape)
        times = [curve.seconds(size) for curve in curves]
        if len(curves) == 1 or size <= 0.0:
            return times[0]
        at = np.log([max(curve.context, 1e-9) for curve in curves])
        return float(np.exp(np.interp(np.log(max(context, 1e-9)), at, np.log(times))))

    def spread(self, names: Sequence[str]) -> float:
        """Return a typical standard deviation over mean of some operations, from p90 / p50 of a normal."""
        found = [s for curve in self.curves if curve.operation in names for s in curve.spread]
        return max(0.0, (float(np.median(found)) - 1.0) / 1.2816) if found else 0.0
