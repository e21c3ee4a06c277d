"""Bagpipe's oracle for a run whose samples are known: which rows to fetch when, and when they leave again.

With period P (a share of the lookahead L) the fetch that serves batches b .. b + P - 1 brings the rows
they use that are not in the cache; a row leaves, written back first, at the first multiple c of P after its
last use unless it is used again before c + L. A row that left at c is needed again at c + L at the
earliest, so its fetch, which waits for the write-back a period after c, comes after c.
"""

from dataclasses import dataclass

import numpy as np

from simulator.quantities import IntArray


@dataclass(frozen=True, eq=False)
class Schedule:
    """Rows by the batch that fetches or writes them, and the rows of all workers' batches."""

    fetched: dict[int, IntArray]
    written: dict[int, IntArray]
    used: list[IntArray]
    left: IntArray

    @classmethod
    def of(cls, used: list[IntArray], lookahead: int, period: int) -> "Schedule":
        """Return the schedule for `used`, the distinct rows of each batch (of all workers), rising."""
        last: dict[int, int] = {}
        fetched: dict[int, list[int]] = {}
        written: dict[int, list[int]] = {}
        for batch, rows in enumerate(used):
            for row in rows.tolist():
                before = last.get(row)
                leaves = None if before is None else (before // period + 1) * period
                if leaves is not None and batch >= leaves + lookahead:
                    written.setdefault(leaves, []).append(row)
                if leaves is None or batch >= leaves + lookahead:
                    fetched.setdefault(batch - batch % period, []).append(row)
                last[row] = batch
        left = np.array(sorted(last), dtype=np.int64)
        return cls(_sorted(fetched), _sorted(written), used, left)

    def urgent(self, batch: int) -> IntArray:
        """Return where in the rows of `batch` those stand that the next batch uses."""
        if batch + 1 >= len(self.used):
            return np.arange(len(self.used[batch]), dtype=np.int64)
        return np.flatnonzero(np.isin(self.used[batch], self.used[batch + 1], assume_unique=True))


def _sorted(found: dict[int, list[int]]) -> dict[int, IntArray]:
    return {batch: np.array(sorted(set(rows)), dtype=np.int64) for batch, rows in found.items()}
