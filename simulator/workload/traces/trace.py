"""Synthetic traces: the rows that each rank looks up in each batch."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.errors import InputError, did_you_mean
from simulator.quantities import FloatArray, IntArray
from simulator.workload.keys.layered import Layered
from simulator.workload.traces.effects import Bursts, Drift, Sessions, checked_odds
from simulator.workload.traces.sampling import PowerLaw, Sampler, sampler_of, scattered
from simulator.workload.traces.streams import stream


@dataclass(frozen=True)
class SyntheticTable:
    """A table whose lookups follow `popularity`; every sample makes `pooling` of them.

    Raises InputError when `pooling` is below 1.
    """

    name: str
    popularity: PowerLaw | Layered
    pooling: int = 1
    drift: Drift | None = None
    bursts: Bursts | None = None

    def __post_init__(self) -> None:
        """Refuse an impossible pooling."""
        if self.pooling < 1:
            raise InputError(f'table "{self.name}": pooling must be at least 1, not {self.pooling}')

    @cached_property
    def sampler(self) -> Sampler:
        """Return the sampler of the table's ranks."""
        return sampler_of(self.popularity)

    def rows_of(self, ranks: IntArray, batch: int) -> IntArray:
        """Return the row that each popularity rank has in `batch`."""
        if self.drift is not None:
            ranks = self.drift.moved(ranks, batch, self.sampler.rows)
        return scattered(ranks, self.sampler.rows)


@dataclass(frozen=True)
class SyntheticTrace:
    """Batches of `batch` samples per rank, keyed by (seed, table, rank, batch).

    `correlation` ties the tables: with these odds a sample takes the same quantile of popularity in
    all of them (hot with hot, cold with cold), which is then their rank correlation; each table
    alone keeps its popularity. Raises InputError for an empty trace or odds outside 0..1.
    """

    tables: tuple[SyntheticTable, ...]
    batch: int
    seed: int = 0
    correlation: float = 0.0
    sessions: Sessions | None = None

    def __post_init__(self) -> None:
        """Refuse an empty trace and impossible odds."""
        checked_odds("the correlation", self.correlation)
        if self.batch < 1 or not self.tables:
            raise InputError("a trace needs at least one table and one sample per batch")

    def table(self, name: str) -> SyntheticTable:
        """Return the table called `name`. Raises InputError when there is none."""
        known = {table.name: table for table in self.tables}
        if name not in known:
            raise InputError(f'the trace has no table "{name}"{did_you_mean(name, known)}')
        return known[name]

    def keys(self, name: str, rank: int, batch: int) -> IntArray:
        """Return the rows (from 0) looked up by `rank` in `batch`, shape (batch, pooling)."""
        table = self.table(name)
        keys = self._fresh(table, rank, batch)
        if self.sessions is not None:
            self._repeat(self.sessions, table, keys, (rank, batch))
        if table.bursts is not None:
            self._burst(table.bursts, table, keys, (rank, batch))
        return keys.reshape(self.batch, table.pooling)

    def _fresh(self, table: SyntheticTable, rank: int, batch: int) -> IntArray:
        """Return lookups by popularity alone, shape (batch x pooling,)."""
        draws = stream(self.seed, f"keys of {table.name}", rank, batch)
        ranks = table.sampler.draw(draws, self.batch * table.pooling)
        if self.correlation:
            tied, quantiles = self._tied(table.pooling, rank, batch)
            ranks[tied] = table.sampler.at(quantiles[tied])
        return table.rows_of(ranks, batch)

    def _tied(self, pooling: int, rank: int, batch: int) -> tuple[IntArray, FloatArray]:
        """Return the lookups of tied samples, and the quantiles that all tables share."""
        draws = stream(self.seed, "tied samples", rank, batch)
        tied = np.repeat(draws.random(self.batch) < self.correlation, pooling)
        quantiles = np.stack([draws.random(self.batch) for _ in range(pooling)], axis=1).ravel()
        return np.flatnonzero(tied), quantiles

    def _repeat(
        self, sessions: Sessions, table: SyntheticTable, keys: IntArray, place: tuple[int, int]
    ) -> None:
        """Overwrite lookups that repeat earlier ones."""
        draws = stream(self.seed, f"sessions of {table.name}", *place)
        back = draws.integers(1, sessions.window + 1, len(keys))
        back[draws.random(len(keys)) >= sessions.repeat] = 0
        source = draws.integers(0, len(keys), len(keys))
        for lag in range(1, sessions.window + 1):
            here = np.flatnonzero(back == lag)
            keys[here] = self._fresh(table, place[0], place[1] - lag)[source[here]]

    def _burst(self, bursts: Bursts, table: SyntheticTable, keys: IntArray, place: tuple[int, int]) -> None:
        """Overwrite lookups that go to a burst's row."""
        draws = stream(self.seed, f"bursts of {table.name}", *place)
        for row in bursts.rows(self.seed, table.name, table.sampler.rows, place[1]):
            keys[draws.random(len(keys)) < bursts.share] = row
