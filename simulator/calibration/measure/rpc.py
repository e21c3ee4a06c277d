"""Remote procedure calls over gRPC: what a call and a byte cost, by how tables are asked for.

One client, and servers in processes of their own, all on this machine: what is measured is the software's
time, not a network's.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from simulator.quantities import FloatArray

REPEATS_S = 0.2
LEAST, MOST = 5, 15


@dataclass(frozen=True)
class RpcPoint:
    """What it took to get `keys` rows of each of `tables` tables from each of `servers` servers.

    `mode` is `in_turn`, `at_once` (asynchronous) or `coalesced`; `bytes` are those of all messages, both
    ways, of which `row_bytes` each row.
    """

    mode: str
    tables: int
    keys: int
    servers: int
    row_bytes: int
    bytes: float
    seconds: float
    p90_over_p50: float
    repeats: int

    @property
    def calls(self) -> int:
        """Calls to each server."""
        return 1 if self.mode == "coalesced" else self.tables

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "RpcPoint":
        """Return the point in plain data."""
        return cls(**data)


@dataclass(frozen=True)
class RpcGrid:
    """Which numbers of `tables` and `keys` (rows of each table from each server) are asked for.

    `held_out` pairs are measured as well, to see how well the others foretell them.
    """

    tables: tuple[int, ...] = (1, 8, 64, 200)
    keys: tuple[int, ...] = (16, 256, 1024)
    held_out: tuple[tuple[int, int], ...] = ((4, 64), (24, 40), (24, 500), (100, 100), (100, 700), (150, 24))
    dimension: int = 32

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All pairs (tables, keys)."""
        return (*((t, k) for t in self.tables for k in self.keys), *self.held_out)


QUICK_CALLS = RpcGrid(tables=(1, 16), keys=(16, 256), held_out=())


def repeated(call: Callable[[], object]) -> FloatArray:
    """Return the seconds of several calls, the first two left out: at least 5, else for about 0.2 s."""
    call()
    call()
    taken: list[float] = []
    began = time.perf_counter()
    while len(taken) < LEAST or (len(taken) < MOST and time.perf_counter() - began < REPEATS_S):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return np.array(taken)


def point(shape: RpcPoint, taken: Sequence[float] | FloatArray) -> RpcPoint:
    """Return `shape` with what calls of its kind took."""
    median = float(np.median(taken))
    spread = float(np.quantile(taken, 0.9)) / median
    return RpcPoint(**{**asdict(shape), "seconds": median, "p90_over_p50": spread, "repeats": len(taken)})
