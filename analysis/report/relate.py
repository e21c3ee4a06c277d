"""Rows of a report in relation to each other: speed-up, scaling efficiency, and what stands for many."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.ratios import efficiency, speed_up, why_above
from analysis.report.records import Row

REFERENCE = "serialized"
Sizes = dict[int, Row]


@dataclass(frozen=True)
class Related:
    """A row with its speed-up over serialized at the same workers, and its scaling efficiency.

    The latter is throughput per worker over that of the policy's `fewest` workers. Both are over rows that do
    the same job on the same engine, whichever of several is shown. None where there is none.
    """

    row: Row
    speedup: float | None
    efficiency: float | None
    fewest: Row | None = None

    @property
    def why_above(self) -> list[str]:
        """Why the efficiency lies above 100 %; nothing where it does not."""
        row, least = self.row, self.fewest
        told = why_above(self.efficiency, row.parts, least.parts, least.workers) if least else []
        return [f"{row.policy} on {row.workers:,} workers: {why}" for why in told]

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
    """Return the row with most samples/s per scenario, engine, policy and number of workers, related.

    Scenarios, engines and workers are in order; of policies, serialized comes first and the others by name.
    """
    shown = _best(rows, lambda row: (row.scenario, row.engine, row.policy))
    alike = _best(rows, lambda row: (row.scenario, row.engine, row.policy, row.job))
    order = sorted(shown, key=lambda key: (key[:2], key[2] != REFERENCE, key[2]))
    return [_related(sizes[size], alike) for sizes in map(shown.__getitem__, order) for size in sorted(sizes)]


def _best(rows: Sequence[Row], key: Callable[[Row], tuple[str, ...]]) -> dict[tuple[str, ...], Sizes]:
    """Return the row with most samples/s for each key and number of workers."""
    best: dict[tuple[str, ...], Sizes] = {}
    for row in rows:
        sizes = best.setdefault(key(row), {})
        if row.workers not in sizes or row.throughput > sizes[row.workers].throughput:
            sizes[row.workers] = row
    return best


def _related(row: Row, alike: dict[tuple[str, ...], Sizes]) -> Related:
    serial = alike.get((row.scenario, row.engine, REFERENCE, row.job), {}).get(row.workers)
    mine = alike[row.scenario, row.engine, row.policy, row.job]
    least = mine[min(mine)]
    scaled = efficiency(row.throughput, row.workers, least.throughput, least.workers)
    faster = speed_up(row.step_ms, None if serial is None else serial.step_ms)
    return Related(row, faster, scaled if len(mine) > 1 else None, least)


def by_scenario(rows: Sequence[Related]) -> dict[str, list[Related]]:
    """Return the rows of each scenario, in order; where several engines made them, of each engine apart."""
    engines: dict[str, set[str]] = {}
    for one in rows:
        engines.setdefault(one.row.scenario, set()).add(one.row.engine)
    found: dict[str, list[Related]] = {}
    for one in rows:
        row = one.row
        apart = f" (engine {row.engine})" if row.engine and len(engines[row.scenario]) > 1 else ""
        found.setdefault(row.scenario + apart, []).append(one)
    return found


def front(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that no other beats in both samples/s and cost, the cheapest first."""
    known = [(row.usd_per_million, row) for row in rows if row.usd_per_million is not None]
    kept: list[Row] = []
    for _, row in sorted(known, key=lambda pair: (pair[0], -pair[1].throughput)):
        if not kept or row.throughput > kept[-1].throughput:
            kept.append(row)
    return kept
