"""Placing a scenario's tables on its chips, by its own keys or by those of a log."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.placed_steps import PlacedSteps
from analysis.planning import PlacingRequest, planner
from simulator.errors import InfeasibleError, InputError, Where
from simulator.quantities import FloatArray
from simulator.results.resident import TABLES
from simulator.scenario import Scenario
from simulator.scenario.memory import planned_memory
from simulator.sharding import Kind, PooledExchange, ShardingPlan
from simulator.sharding.load import RankLoad
from simulator.sharding.placement import Chips, Demand, Feedback, Placement, Profile, imbalance, replanned
from simulator.units import format_bytes
from simulator.workload.keys import LogOptions, LogStatistics, summarize
from simulator.workload.keys.reading import Progress, unwatched
from simulator.workload.tables import KEY_BYTES, EmbeddingTable

MEMORIES = {"hbm": "device memory", "host": "host memory", "ssd": "disk"}
UNIT = "bytes per step: keys received, and rows (or sums of rows) sent"


@dataclass(frozen=True, eq=False)
class Placing:
    """The placement of a scenario's tables on the chips of one replica group.

    `memory` names where rows live (`hbm`, `host`, `ssd`), `feedback` what a log has changed. Loads are
    in bytes per step. `steps` says what steps were predicted where it was chosen by them.
    """

    scenario: Scenario
    memory: str
    placement: Placement
    feedback: Feedback | None = None
    steps: PlacedSteps | None = None

    @property
    def sums(self) -> bool:
        """Whether owners send sums of rows; rows of a table then stay together."""
        return isinstance(self.scenario.step.placed.plan.exchange, PooledExchange)

    @cached_property
    def own_loads(self) -> FloatArray:
        """Loads under the scenario's own sharding and keys, shape (chips,), by the accounts of its step."""
        own, world = RankLoad.of(self.scenario.step.traffic), self.scenario.step.placed.world
        loads = own.lookups * KEY_BYTES + own.bytes
        return loads[:: world.replicas] if world.adjacent else loads[: world.members]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-ready."""
        told = self.feedback.to_dict() if self.feedback else None
        return {
            "scenario": self.scenario.name,
            "workers": self.scenario.cluster.ranks,
            "replicas": self.scenario.step.placed.world.replicas,
            "load_unit": UNIT,
            "memory": self.memory,
            "memory_bytes_per_chip": self.placement.chips.memory,
            "own": {"busiest": float(self.own_loads.max()), "imbalance": imbalance(self.own_loads)},
            "feedback": told and {name: told[name] for name in told if name != "after"},
            **self.placement.to_dict(),
            **(self.steps.to_dict() if self.steps else {}),
        }


def placed(scenario: Scenario, request: PlacingRequest) -> Placing:
    """Return where the tables go that have owners.

    By a log the first plan, made by the scenario's own keys, is judged by the log's, and a second one
    is made by those. Raises InputError for tables that cannot be placed (on parameter servers, or in
    several memories) and InfeasibleError when they do not fit.
    """
    problem = PlacingProblem(scenario)
    chips, assumed = Chips(problem.members, problem.room), problem.demands(scenario.workload.tables)
    measured = assumed if request.keys is None else problem.demands(_as_logged(problem.tables, request.keys))
    plan = planner(request, problem.exchange_sums)
    if request.keys is None:
        return Placing(scenario, problem.memory, plan(assumed, chips))
    feedback = replanned(assumed, measured, chips, plan)
    return Placing(scenario, problem.memory, feedback.after, feedback)


def read_keys(
    scenario: Scenario, path: Path, separator: str | None = None, progress: Progress = unwatched
) -> LogStatistics:
    """Return the statistics of a log that has a column for every table with owners.

    Raises InputError as `summarize` does, and for a log that names more keys than a table has rows.
    """
    owned = {table.name for table in scenario.step.placed.exchanged}
    tables = {table.name: table for table in scenario.workload.tables if table.name in owned}
    reading = LogOptions(tuple(tables), separator)
    log = summarize(path, scenario.workload.batch, reading, progress=progress)
    for one in log:
        seen, rows = one.frequencies.distinct, tables[one.name].rows
        if seen > rows:
            problem = f'table "{one.name}" has {rows:g} rows, but the log names {seen} different keys'
            raise InputError(problem, Where(str(path)))
    return log


def _as_logged(tables: Sequence[EmbeddingTable], log: LogStatistics) -> tuple[EmbeddingTable, ...]:
    """Return the tables with the keys of the log."""
    from simulator.workload.keys import Recorded

    seen = {one.name: one for one in log}
    return tuple(
        replace(table, popularity=Recorded(seen[table.name]), pooling=seen[table.name].pooling_mean)
        for table in tables
    )


@dataclass(frozen=True, eq=False)
class PlacingProblem:
    """What is to be placed: the tables with owners, and the memory that they live in."""

    scenario: Scenario

    @property
    def plan(self) -> ShardingPlan:
        """The scenario's own plan."""
        return self.scenario.step.placed.plan

    @property
    def members(self) -> int:
        """The chips of one replica group."""
        return self.scenario.step.placed.world.members

    @property
    def exchange_sums(self) -> bool:
        """Whether owners send sums of rows."""
        return isinstance(self.plan.exchange, PooledExchange)

    @cached_property
    def tables(self) -> tuple[EmbeddingTable, ...]:
        """The tables that have owners. Raises InputError where every chip holds all of them."""
        tables = self.scenario.step.placed.exchanged
        if not tables:
            raise InputError("every chip holds all tables: there is nothing to place")
        return tables

    @cached_property
    def memory(self) -> str:
        """The memory that holds all rows. Raises InputError when there is none, or several."""
        homes = {_home(self.plan.kind_of(table)): table for table in self.tables}
        if None in homes:
            name = homes[None].name
            raise InputError(f'table "{name}" lives on parameter servers: it has no place on a chip')
        if len(homes) > 1:
            lives = " and ".join(f'"{table.name}" in {MEMORIES[str(m)]}' for m, table in homes.items())
            raise InputError(f"tables are placed in one memory, and {lives}: set the same tier for all")
        return str(next(iter(homes)))

    @cached_property
    def room(self) -> float:
        """Bytes per chip for tables: the memory less what the scenario keeps there besides.

        Raises InfeasibleError when that leaves nothing.
        """
        cluster = self.scenario.cluster
        have = {
            "hbm": cluster.hbm_bytes,
            "host": cluster.dram_bytes_per_rank,
            "ssd": cluster.ssd_bytes_per_rank,
        }[self.memory]
        items = getattr(planned_memory(self.scenario), self.memory)
        others = sum(size for name, size in items.items() if name != TABLES)
        if others >= have:
            what = f"{format_bytes(others)} of {format_bytes(have)} are taken by other things"
            raise InfeasibleError(f"no room for tables in {MEMORIES[self.memory]}: {what}")
        return float(have - others)

    def demands(self, tables: Sequence[EmbeddingTable]) -> tuple[Demand, ...]:
        """Return what each of `tables` that has owners asks of them, all sources together."""
        names = {table.name for table in self.tables}
        owned = [table for table in tables if table.name in names]
        workload = self.scenario.workload
        profile = Profile.expected(owned, workload.batch, self.members)
        demands = profile.demands(owned, workload.optimizer)
        if not self.exchange_sums:
            return demands
        samples = workload.batch * self.members
        return tuple(_sums(demand, table, samples) for demand, table in zip(demands, owned, strict=True))


def _home(kind: Kind) -> str | None:
    """Return the memory that holds all rows of a table of this kind; None for parameter servers."""
    return next((memory for memory, share in kind.home.homes.items() if share == 1.0), None)


def _sums(demand: Demand, table: EmbeddingTable, samples: float) -> Demand:
    """Return the demand when keys travel with their duplicates, and one sum per sample comes back."""
    keys, sent = table.lookups(samples) * KEY_BYTES, samples * table.row_bytes
    return replace(demand, load=keys + sent, bytes=sent, key_share=keys / (keys + sent))
