"""Flow classes: who sends how many bytes over which links, alike flows counted once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.quantities import FloatArray, IntArray

LinkArray = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class FlowClasses:
    """F classes of flows over L classes of links; the flows of a class are alike, and so are its links.

    Row f of a compressed sparse matrix lists what class f crosses: entries `starts[f]:starts[f+1]` of
    `link` (ids below L) and `coefficient` (how many flows of the class cross *one* link of that
    class). With every flow and every link on its own all coefficients are 1. Shapes: `starts` (F+1,)
    int64, `link` (C,) int32, `coefficient` (C,); per *member* flow `bytes`, `weight` (its share where
    it competes) and `cap` (bytes/s it can take at most, inf for none), (F,) float64.

    Raises ValueError when shapes disagree or a value is impossible. Compared by identity.
    """

    starts: IntArray
    link: LinkArray
    coefficient: FloatArray
    bytes: FloatArray
    weight: FloatArray
    cap: FloatArray

    def __post_init__(self) -> None:
        """Bring the arrays to their types and check them."""
        for name, kind in _KINDS.items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=kind))
        _check_shapes(self)
        _check_values(self)

    @classmethod
    def over(
        cls,
        paths: ArrayLike,
        bytes: ArrayLike,
        coefficient: ArrayLike = 1.0,
        weight: ArrayLike = 1.0,
        cap: ArrayLike = np.inf,
    ) -> "FlowClasses":
        """Return flows along `paths`, (F, K) link ids with -1 for "no further link".

        `bytes`, `weight` and `cap` are one number or (F,); `coefficient` is one number or (F, K).
        """
        table = np.atleast_2d(np.asarray(paths, dtype=np.int64))
        used = table >= 0
        starts = np.concatenate(([0], np.cumsum(used.sum(axis=1))))
        crossings = np.broadcast_to(np.asarray(coefficient, dtype=np.float64), table.shape)[used]
        per_flow = [_spread(values, len(table)) for values in (bytes, weight, cap)]
        return cls(starts, table[used].astype(np.int32), crossings, *per_flow)

    @classmethod
    def of_rows(
        cls,
        rows: Sequence[Mapping[int, float]],
        bytes: ArrayLike,
        weight: ArrayLike = 1.0,
        cap: ArrayLike = np.inf,
    ) -> "FlowClasses":
        """Return classes of which each row maps link id to coefficient; the rest as in `over`."""
        starts = np.cumsum([0, *(len(row) for row in rows)])
        link = np.array([link for row in rows for link in row], dtype=np.int32)
        crossings = np.array([count for row in rows for count in row.values()], dtype=np.float64)
        per_flow = [_spread(values, len(rows)) for values in (bytes, weight, cap)]
        return cls(starts, link, crossings, *per_flow)

    def __len__(self) -> int:
        """Return F, the number of classes."""
        return len(self.bytes)

    def owner(self) -> IntArray:
        """Return the class of each entry of `link`, shape (C,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.starts))

    def take(self, classes: IntArray) -> "FlowClasses":
        """Return the chosen classes alone, in the given order."""
        counts = np.diff(self.starts)[classes]
        starts = np.concatenate(([0], np.cumsum(counts)))
        entry = np.arange(starts[-1]) + np.repeat(self.starts[classes] - starts[:-1], counts)
        per_flow = (self.bytes[classes], self.weight[classes], self.cap[classes])
        return FlowClasses(starts, self.link[entry], self.coefficient[entry], *per_flow)


_KINDS = {
    "starts": np.int64,
    "link": np.int32,
    "coefficient": np.float64,
    "bytes": np.float64,
    "weight": np.float64,
    "cap": np.float64,
}


def _spread(values: ArrayLike, count: int) -> FloatArray:
    return np.broadcast_to(np.asarray(values, dtype=np.float64), (count,))


def _check_shapes(flows: FlowClasses) -> None:
    count, entries = len(flows.starts) - 1, len(flows.link)
    if count < 1 or flows.starts[0] != 0 or flows.starts[-1] != entries or np.any(np.diff(flows.starts) < 0):
        raise ValueError("starts must rise from 0 to the number of entries, with at least one class")
    if flows.coefficient.shape != (entries,):
        raise ValueError(f"{entries} links but {flows.coefficient.shape} coefficients")
    for name in ("bytes", "weight", "cap"):
        if getattr(flows, name).shape != (count,):
            raise ValueError(f"{name} needs one number for each of {count} classes")


def _check_values(flows: FlowClasses) -> None:
    if not (np.all(flows.bytes >= 0) and np.all(np.isfinite(flows.bytes))):
        raise ValueError("bytes must be finite and not negative")
    for name in ("weight", "coefficient"):
        values = getattr(flows, name)
        if not (np.all(values > 0) and np.all(np.isfinite(values))):
            raise ValueError(f"every {name} must be finite and positive")
    if not np.all(flows.cap > 0):
        raise ValueError("every cap must be positive; inf stands for none")
    if len(flows.link) and flows.link.min() < 0:
        raise ValueError("link ids start at 0")
