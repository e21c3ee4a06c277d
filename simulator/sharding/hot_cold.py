"""Tables cut by popularity: the hottest rows on every accelerator, the others on parameter servers."""

from dataclasses import dataclass

from simulator.quantities import Work
from simulator.sharding.moves import access
from simulator.sharding.served import Rows, Served
from simulator.sharding.tiers import HbmCache
from simulator.workload.tables import EmbeddingTable


@dataclass(frozen=True, eq=False)
class HotCold:
    """Rows per batch, by width, when every accelerator holds the hottest `share` of each table's rows."""

    served: Served
    share: float

    @property
    def cold(self) -> Rows:
        """Distinct rows of one rank's batch that servers hold."""
        return self.served.rows(lambda table: self._cold(table, self.served.step.workload.batch))

    @property
    def hot(self) -> Rows:
        """Distinct hot rows of all ranks' batches: their gradients are added up."""
        step = self.served.step
        return self.served.rows(lambda table: self._hot(table, step.workload.batch * step.ranks))

    @property
    def held_bytes(self) -> float:
        """Bytes of the hot rows and their optimizer state."""
        optimizer = self.served.step.workload.optimizer
        return sum(
            self.share * table.rows * (table.row_bytes + optimizer.row_state_bytes(table.dimension))
            for table in self.served.tables
        )

    @property
    def update(self) -> Work:
        """The optimizer's passes over the hot rows that any rank has used."""
        return access(self.hot, "hbm", self.served.step.workload.optimizer.row_passes)

    def _cold(self, table: EmbeddingTable, samples: float) -> float:
        draws = table.draws(samples)
        distinct = table.popularity.distinct(draws)
        return HbmCache(self.share).missed(table, draws, distinct) if distinct else 0.0

    def _hot(self, table: EmbeddingTable, samples: float) -> float:
        return table.popularity.distinct(table.draws(samples)) - self._cold(table, samples)
