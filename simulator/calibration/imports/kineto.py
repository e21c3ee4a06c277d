"""Profiler traces (Kineto) of one or several ranks, as one record: times per step, classes, collectives."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from simulator.calibration.imports.kineto_collectives import Collective, Meeting, collectives, meetings
from simulator.calibration.imports.kineto_events import read_trace
from simulator.calibration.imports.kineto_steps import StepTable, mean_times
from simulator.errors import InputError, Where


@dataclass(frozen=True)
class RankTrace:
    """What one file says: its steps, and the collectives in them."""

    table: StepTable
    collectives: tuple[Collective, ...]

    @property
    def rank(self) -> int | None:
        """The rank, where the trace says it."""
        return self.table.trace.rank

    def data(self) -> dict[str, Any]:
        """Return everything as plain data; times in ms."""
        trace, steps = self.table.trace, self.table.steps
        return {
            "file": trace.file,
            "rank": trace.rank,
            "world_size": trace.world,
            "device": trace.device,
            "steps": [_in_ms(asdict(step)) for step in steps],
            "mean": _in_ms(mean_times(steps)),
            "classes": [
                {"class": one.name, "per_step": one.count, "ms_per_step": one.total}
                for one in self.table.class_times()
            ],
            "collectives": [_told(one) for one in self.collectives],
        }


@dataclass(frozen=True)
class Traces:
    """The traces of a job, by rank."""

    ranks: tuple[RankTrace, ...]

    @cached_property
    def meetings(self) -> tuple[Meeting, ...] | None:
        """Collectives that all ranks did together, or None when that cannot be seen."""
        return meetings([one.collectives for one in self.ranks])

    def data(self) -> dict[str, Any]:
        """Return everything as plain data; times in ms, bytes in bytes."""
        steps = [step for rank in self.ranks for step in rank.table.steps]
        return {
            "kind": "kineto",
            "ranks": [rank.data() for rank in self.ranks],
            "mean": _in_ms(mean_times(steps)),
            "slowest_step_ms": max(step.step for step in steps),
            "collectives": None if self.meetings is None else [_met(one) for one in self.meetings],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record per rank and step, times in ms."""
        return [
            {"rank": rank.rank, **_in_ms(asdict(step))} for rank in self.ranks for step in rank.table.steps
        ]


def read_traces(paths: Sequence[str]) -> Traces:
    """Return the traces of `paths` in order of their ranks.

    Raises InputError for what is no trace, and for two traces of the same rank.
    """
    ranks = [_rank(path) for path in paths]
    seen: dict[int, str] = {}
    for one in ranks:
        file = one.table.trace.file
        if one.rank is not None and one.rank in seen:
            raise InputError(f"is of rank {one.rank}, as {seen[one.rank]} is", Where(file))
        if one.rank is not None:
            seen[one.rank] = file
    return Traces(tuple(sorted(ranks, key=lambda one: (one.rank is None, one.rank or 0))))


def _rank(path: str) -> RankTrace:
    table = StepTable(read_trace(path))
    return RankTrace(table, collectives(table))


def _in_ms(times: dict[str, Any]) -> dict[str, Any]:
    """Return the record with the unit in the names of times."""
    return {name if name in ("number", "launches") else f"{name}_ms": value for name, value in times.items()}


def _told(one: Collective) -> dict[str, Any]:
    return {
        "operation": one.operation,
        "start_ms": one.start / 1e3,
        "ms": one.duration / 1e3,
        "bytes": one.bytes,
    }


def _met(one: Meeting) -> dict[str, Any]:
    return {
        "operation": one.operation,
        "shortest_ms": one.shortest / 1e3,
        "mean_wait_ms": one.waited / 1e3,
        "bytes": None if one.bytes is None else list(one.bytes),
    }
