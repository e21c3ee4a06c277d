"""What moves between a rank and parameter servers: rows it asks for, and gradients or rows it sends back.

Here a rank deals with the servers itself, for all rows that its batch needs; ranks that own a part of
the tables and exchange rows among each other are the business of `traffic`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from simulator.errors import InputError
from simulator.quantities import CopyWork, CpuWork, FloatArray, InTurn, RpcWork, Together, Work
from simulator.sharding.exchange import Exchange, RowExchange
from simulator.sharding.kinds import RowWise
from simulator.sharding.moves import over_wire, width_total
from simulator.sharding.tiers import Remote
from simulator.workload.draws import uniforms
from simulator.workload.tables import KEY_BYTES, EmbeddingTable

if TYPE_CHECKING:
    from simulator.sharding.step import TrainStep

Rows = dict[float, float]
"""Rows of one rank by their width in bytes."""


@dataclass(frozen=True)
class Calls:
    """How a rank asks: `count` calls to each server, `in_turn` or all at once.

    `copies`: what one message brings for several tables is copied apart in host memory.
    """

    count: float = 1.0
    in_turn: bool = False
    copies: bool = False


ONE_CALL = Calls()


@dataclass(frozen=True, eq=False)
class Served:
    """The ways between one rank of `step` and the servers that hold all of its tables.

    Raises InputError where some tables have owners among the ranks, or the plan says what servers ignore.
    """

    step: "TrainStep"

    @cached_property
    def tables(self) -> tuple[EmbeddingTable, ...]:
        """The tables on servers."""
        plan = self.step.placed.plan
        for table in self.step.placed.exchanged:
            kind = plan.kind_of(table)
            if not isinstance(kind.home, Remote):
                raise InputError(
                    f'table "{table.name}" is not on parameter servers: this policy needs all tables '
                    "there (sharding.tier: {kind: remote}), or whole on every worker (data_parallel)"
                )
            if not isinstance(kind, RowWise):
                raise InputError(
                    f'table "{table.name}" is not row_wise: this policy spreads rows over the servers '
                    "and would ignore any other kind of sharding"
                )
        if plan.stacks is not None:
            raise InputError("sharding.stacks would change nothing: servers have no sparse engines to start")
        _refuse_exchanges(plan.exchange)
        return self.step.placed.exchanged

    @cached_property
    def servers(self) -> int:
        """How many servers there are; the largest fleet where tables name several."""
        fleets = [self.step.placed.plan.kind_of(table).home for table in self.tables]
        return max((home.servers for home in fleets if isinstance(home, Remote)), default=1)

    def rows(self, of: Callable[[EmbeddingTable], float]) -> Rows:
        """Return the sum over tables of `of`, by width of rows."""
        found: Rows = {}
        for table in self.tables:
            found[table.row_bytes] = found.get(table.row_bytes, 0.0) + of(table)
        return found

    @cached_property
    def batch_rows(self) -> Rows:
        """The distinct rows of one rank's batch."""
        batch = self.step.workload.batch
        return self.rows(lambda table: table.popularity.distinct(table.draws(batch)))

    @property
    def all_in(self) -> Work:
        """Servers wait until all ranks have called."""
        return RpcWork(0.0, 0.0, self.servers, self.step.ranks, meets=True)

    @property
    def collect(self) -> Work:
        """A rank removes duplicates among its keys."""
        return self.step.placed.plan.exchange.prepare(self.step.traffic)

    def fetch(self, rows: Rows, calls: Calls = ONE_CALL) -> Work:
        """Return what brings `rows` from the servers to the device of each rank."""
        return self._moved(rows, calls, (1.0, "host_to_device"))

    def push(self, rows: Rows, calls: Calls = ONE_CALL, passes: float | None = None) -> Work:
        """Return what takes a gradient per row to the servers, which update each row.

        `passes` counts how often a row crosses a server's memory (default: as its optimizer does it).
        """
        optimizer = self.step.workload.optimizer.row_passes
        return self._moved(rows, calls, (optimizer if passes is None else passes, "device_to_host"))

    def write(self, rows: Rows, calls: Calls = ONE_CALL) -> Work:
        """Return what writes updated `rows` back to the servers."""
        return self.push(rows, calls, passes=1.0)

    def _moved(self, rows: Rows, calls: Calls, way: tuple[float, str]) -> Work:
        passes, path = way
        size, ranks = width_total(rows), self.step.ranks
        share = ranks / self.servers * self.hottest
        served = {width: count * share for width, count in rows.items()}
        handled = float(size + KEY_BYTES * sum(rows.values()))
        call = RpcWork(calls.count, handled, self.servers, ranks, calls.in_turn, self.hottest)
        back = path == "host_to_device"
        wire = (over_wire(rows, "remote", back), over_wire(served, "server", back, passes))
        moving: tuple[Work, ...] = (*wire, CopyWork(size, path))
        if calls.in_turn:  # whoever waits for an answer sends nothing meanwhile
            return InTurn((call, Together(moving)))
        if not calls.copies:
            return Together((call, *moving))
        return InTurn((Together((call, *moving)), CpuWork(0.0, memory_bytes=2 * float(size))))

    @cached_property
    def hottest(self) -> float:
        """The busiest server's load over the mean; 1 where owners are `expected`."""
        load = np.zeros(self.servers)
        for table in self.tables:
            weight = table.row_bytes * table.popularity.distinct(table.draws(self.step.workload.batch))
            load = load + weight * self._shares(table)
        return float(load.max() / load.mean()) if load.any() else 1.0

    def _shares(self, table: EmbeddingTable) -> FloatArray:
        """Return each server's load by one table over the mean, shape (servers,)."""
        kind, count = self.step.placed.plan.kind_of(table), self.servers
        if isinstance(kind, RowWise) and kind.shares is not None:
            if count % len(kind.shares):
                given = len(kind.shares)
                raise InputError(f"{given} shares of rows do not repeat evenly over {count} servers")
            load = np.tile(np.asarray(kind.shares), count // len(kind.shares))
            return np.asarray(load / load.mean())
        if kind.owners == "expected" or count == 1:
            return np.ones(count)
        return self._drawn(table)

    def _drawn(self, table: EmbeddingTable) -> FloatArray:
        """Return one draw per server from the spread that the hash leaves.

        Our derivation, as for ranks that own rows: a key that a batch holds with chance s is asked for by
        Binomial(ranks, s) ranks, and the hash puts it on one server in `servers`.
        """
        from scipy.special import ndtri

        ranks, count = self.step.ranks, self.servers
        load = table.popularity.owner_load(table.draws(self.step.workload.batch), ranks)
        squares = load.mean if ranks == 1 else load.sd**2 / (1.0 - 1.0 / ranks)
        mean, sd = load.mean * ranks / count, (ranks * squares / count * (1.0 - 1.0 / count)) ** 0.5
        label = f"server of table {self.step.placed.numbers[table]}"
        draws = uniforms(self.step.seed, label, 0, np.arange(count, dtype=np.int64))
        drawn = np.maximum(0.0, mean + sd * ndtri(draws))
        return np.asarray(drawn / drawn.mean()) if drawn.any() else np.ones(count)


def _refuse_exchanges(exchange: Exchange) -> None:
    """Raise InputError for what an exchange among workers can do and calls to servers do not."""
    if not isinstance(exchange, RowExchange):
        raise InputError("sharding.exchange: servers send distinct rows, not sums of rows: take rows")
    if exchange.value_bytes is not None:
        given = exchange.value_bytes
        raise InputError(f"servers send rows as they are stored, not as values of {given:g} bytes")
