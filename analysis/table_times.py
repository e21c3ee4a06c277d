"""How long one table keeps the chip that holds it busy in a step, by the cost model that runs use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.quantities import AllToAllWork
from simulator.scenario import Scenario
from simulator.sharding import Kind, Placed, TrainStep
from simulator.sharding.kinds import Part
from simulator.sharding.load import per_rank
from simulator.sharding.placement import Demand
from simulator.workload.tables import KEY_BYTES, EmbeddingTable

PROBE_BYTES = 2.0**26  # well beyond start-up times
NARROW = 0.25  # of a table's columns: from there to all of them the time is taken to be linear


@dataclass(frozen=True, eq=False)
class TableTimes:
    """The times of a scenario's tables on a chip that holds them, or some of their columns.

    A chip retrieves, gathers, adds up and updates its rows one table after the other, and its network card
    sends them one after the other, at the rate of an even exchange. What overlaps, and what sources do, is
    left out: it is for a simulation to say.
    """

    scenario: Scenario

    def demands(self, demands: Sequence[Demand], tables: Sequence[EmbeddingTable]) -> tuple[Demand, ...]:
        """Return `demands` of `tables`, in this order, with loads in seconds."""
        return tuple(self._timed(demand, table) for demand, table in zip(demands, tables, strict=True))

    def _timed(self, demand: Demand, table: EmbeddingTable) -> Demand:
        """Return the demand with the time as its load: a part per key, and a part per column (two points)."""
        whole = self._seconds(table, 1.0)
        if self.scenario.step.placed.world.members < 2 or not whole:
            return replace(demand, load=whole, key_share=0.0)
        per_column = (whole - self._seconds(table, NARROW)) / (1.0 - NARROW)
        return replace(demand, load=whole, key_share=min(1.0, max(0.0, 1.0 - per_column / whole)))

    def _seconds(self, table: EmbeddingTable, columns: float) -> float:
        """Return the time of the chip that holds this share of a table's columns, another one the rest."""
        step = self._alone(table, columns)
        micro, exchange, costs = step.micro_batch(1), step.placed.plan.exchange, self.scenario.costs
        works = (*exchange.collect(step.traffic), micro.gather_rows, step.sparse_update(), step.write_back)
        here = sum(float(per_rank(costs.seconds(work), step.ranks)[0]) for work in works)
        sent = float(per_rank(step.traffic.row_bytes_sent, step.ranks)[0])
        keys = float(per_rank(step.traffic.requests, step.ranks)[0]) * KEY_BYTES
        return here + (2 * sent + keys) * self._seconds_per_byte

    def _alone(self, table: EmbeddingTable, columns: float) -> TrainStep:
        step = self.scenario.step
        rest = (Part(1, columns=1.0 - columns),) if columns < 1.0 else ()
        kind: Kind = Placed(step.placed.plan.kind_of(table).tier, parts=(Part(0, columns=columns), *rest))
        plan = replace(step.placed.plan, kind=kind, rules=(), stacks=None)
        return replace(step, workload=replace(step.workload, tables=(table,)), plan=plan)

    @cached_property
    def _seconds_per_byte(self) -> float:
        """What a byte more per rank adds to an even exchange."""
        group, costs = self.scenario.step.placed.world.exchange_group, self.scenario.costs
        half, full = (
            float(np.max(costs.seconds(AllToAllWork(size, size, group))))
            for size in (PROBE_BYTES / 2, PROBE_BYTES)
        )
        return (full - half) / (PROBE_BYTES / 2)
