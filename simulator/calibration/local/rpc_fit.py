"""The parameters of remote calls from measured fetches, and what the simulator then says of others.

They are those of `simulator.hardware.servers.Rpc`, found by least squares on logarithms with the very
function that times calls in a scenario. Points that were held out show how well that foretells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from simulator.calibration.local.costs import cluster
from simulator.calibration.measure.rpc import RpcGrid, RpcPoint
from simulator.costs.rpc import rpc_seconds
from simulator.errors import InputError
from simulator.hardware import Cluster
from simulator.hardware.servers import Rpc, Servers
from simulator.quantities import FloatArray, RpcWork

LOW, HIGH = -23.0, 0.0  # searched range of the logarithm of seconds: 0.1 ns to 1 s
START = Rpc(5e-4, 2.5e-4, 1.3e-4, 8e-10, 5e-5, 4e-10)


@dataclass(frozen=True)
class RpcCase:
    """One measured fetch beside what was predicted for it, seconds; `held_out` if the fit has not seen it."""

    point: RpcPoint
    predicted: float
    held_out: bool

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.point.seconds - 1.0


@dataclass(frozen=True)
class RpcFit:
    """The fitted parameters and all cases."""

    rpc: Rpc
    cases: tuple[RpcCase, ...]


def fit_rpc(points: Sequence[RpcPoint], held_out: Sequence[tuple[int, int]]) -> RpcFit:
    """Fit on the points that are not held out. Raises InputError when there are too few of them."""
    seen = [one for one in points if (one.tables, one.keys) not in held_out]
    if len(seen) < 2 * len(fields(Rpc)):
        raise InputError(f"{len(seen)} measured fetches are too few to fit what a call costs")
    rpc = _fitted(seen)
    cases = tuple(RpcCase(one, predicted(one, rpc), (one.tables, one.keys) in held_out) for one in points)
    return RpcFit(rpc, cases)


def predicted(point: RpcPoint, rpc: Rpc) -> float:
    """Return what the simulator says of a fetch: the time from the first call to the last answer, seconds."""
    work = RpcWork(point.calls, point.bytes, point.servers, in_turn=point.mode == "in_turn")
    return rpc_seconds(work, _with(rpc))


def _with(rpc: Rpc) -> Cluster:
    host = cluster(1).host
    return replace(cluster(1), servers=Servers(host, bandwidth=1e12, rpc=rpc))


def _fitted(points: Sequence[RpcPoint]) -> Rpc:
    from scipy.optimize import least_squares

    names = [field.name for field in fields(Rpc)]

    def residuals(logs: FloatArray) -> FloatArray:
        rpc = Rpc(**dict(zip(names, np.exp(logs).tolist(), strict=True)))
        return np.array([np.log(predicted(one, rpc) / one.seconds) for one in points])

    start = np.log([getattr(START, name) for name in names])
    found = least_squares(residuals, start, bounds=(LOW, HIGH), loss="soft_l1", f_scale=0.1, diff_step=1e-3)
    return Rpc(**dict(zip(names, np.exp(found.x).tolist(), strict=True)))


def held_out_of(grid: RpcGrid) -> tuple[tuple[int, int], ...]:
    """Return the pairs that a grid keeps for the test."""
    return grid.held_out
