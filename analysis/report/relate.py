"""Rows of a report in relation to each other: speed-up, scaling efficiency, and what stands for many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.report.records import Row

REFERENCE = "serialized"


@dataclass(frozen=True)
class Related:
    """A row with its speed-up over serialized at the same workers, and its scaling efficiency.

    The latter is throughput per worker over that of the policy's fewest workers. None where there is
    nothing to hold the row against.
    """

    row: Row
    speedup: float | None
    efficiency: float | None

    @property
    def drawn(self) -> dict[str, Any]:
        """The row in the words that pictures take."""
        row = self.row
        return {
            "scenario": row.scenario,
            "policy": row.policy,
            "workers": row.workers,
            "step_ms": row.step_ms,
            "throughput_samples_per_s": row.throughput,
            "usd_per_million_samples": row.usd_per_million,
            "speedup": self.speedup,
            "scaling_efficiency": self.efficiency,
            **row.parts,
        }


def related(rows: Sequence[Row]) -> list[Related]:
    """Return one row per scenario, policy and number of workers, the one with most samples/s, related.

    Scenarios and workers are in order; of policies, serialized comes first and the others by name.
    """
    best: dict[tuple[str, str], dict[int, Row]] = {}
    for row in rows:
        sizes = best.setdefault((row.scenario, row.policy), {})
        if row.workers not in sizes or row.throughput > sizes[row.workers].throughput:
            sizes[row.workers] = row
    order = sorted(best, key=lambda key: (key[0], key[1] != REFERENCE, key[1]))
    return [_related(sizes[size], best) for sizes in map(best.__getitem__, order) for size in sorted(sizes)]


def _related(row: Row, best: dict[tuple[str, str], dict[int, Row]]) -> Related:
    serial = best.get((row.scenario, REFERENCE), {}).get(row.workers)
    mine = best[row.scenario, row.policy]
    fewest = mine[min(mine)]
    return Related(
        row,
        None if serial is None else serial.step_ms / row.step_ms,
        _per_worker(row) / _per_worker(fewest) if len(mine) > 1 else None,
    )


def _per_worker(row: Row) -> float:
    return row.throughput / row.workers


def by_scenario(rows: Sequence[Related]) -> dict[str, list[Related]]:
    """Return the rows of each scenario, in order."""
    found: dict[str, list[Related]] = {}
    for one in rows:
        found.setdefault(one.row.scenario, []).append(one)
    return found


def front(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that no other beats in both samples/s and cost, the cheapest first."""
    known = [(row.usd_per_million, row) for row in rows if row.usd_per_million is not None]
    kept: list[Row] = []
    for _, row in sorted(known, key=lambda pair: (pair[0], -pair[1].throughput)):
        if not kept or row.throughput > kept[-1].throughput:
            kept.append(row)
    return kept
