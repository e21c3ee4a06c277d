"""How many keys each table is asked for: expected from a workload, or measured in a log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simulator.errors import InputError, did_you_mean
from simulator.sharding.placement.shard import Demand
from simulator.workload.job import OPTIMIZERS, Optimizer
from simulator.workload.keys import LogStatistics, Recorded
from simulator.workload.keys.popularity import Popularity
from simulator.workload.tables import KEY_BYTES, EmbeddingTable


@dataclass(frozen=True)
class TableKeys:
    """What the owners of one table receive per step of the job: `keys`, and the share of the hottest."""

    keys: float
    hot_share: float = 0.0


@dataclass(frozen=True)
class Profile:
    """The keys of each table per step, all ranks together; sources have removed their duplicates."""

    tables: Mapping[str, TableKeys]

    @classmethod
    def expected(cls, tables: Sequence[EmbeddingTable], batch: float, ranks: int) -> "Profile":
        """Return what `ranks` ranks with `batch` samples each ask for, by the tables' popularities.

        For a run whose keys come from a log this is what the log says; otherwise it is a forecast.
        """
        return cls({t.name: _keys(t.popularity, t.draws(batch), ranks) for t in tables})

    @classmethod
    def measured(cls, log: LogStatistics, batch: float, ranks: int) -> "Profile":
        """Return what they ask for if keys behave as in `log`, table by table."""
        return cls(
            {table.name: _keys(Recorded(table), table.pooling_mean * batch, ranks) for table in log.tables}
        )

    def demands(
        self, tables: Sequence[EmbeddingTable], optimizer: Optimizer = OPTIMIZERS["adam_rowwise_adagrad"]
    ) -> tuple[Demand, ...]:
        """Return the demand of each table; the load is in bytes per step: keys received and rows sent.

        Memory counts rows and the optimizer's state of each. Raises InputError for a table that the
        profile lacks.
        """
        return tuple(self._demand(table, optimizer) for table in tables)

    def _demand(self, table: EmbeddingTable, optimizer: Optimizer) -> Demand:
        seen = self.tables.get(table.name)
        if seen is None:
            known = did_you_mean(table.name, self.tables)
            raise InputError(f'the profile has no keys of table "{table.name}"{known}')
        per_key = KEY_BYTES + table.row_bytes
        return Demand(
            table.name,
            int(table.rows),
            table.dimension,
            load=seen.keys * per_key,
            memory=table.rows * (table.row_bytes + optimizer.row_state_bytes(table.dimension)),
            bytes=seen.keys * table.row_bytes,
            key_share=KEY_BYTES / per_key,
            hot_share=seen.hot_share,
        )


def _keys(popularity: Popularity, lookups: float, ranks: int) -> TableKeys:
    """Return the keys that owners receive; the hottest is at most one of each source's distinct keys."""
    distinct = popularity.distinct(lookups)
    return TableKeys(ranks * distinct, min(1.0, 1.0 / distinct) if distinct else 0.0)
