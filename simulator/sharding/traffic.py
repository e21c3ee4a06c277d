"""What a (micro-)batch asks of the owners of rows: distinct keys, rows and bytes, per rank."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.quantities import Amount
from simulator.sharding.plan import RowWise
from simulator.workload.draws import uniforms
from simulator.workload.tables import KEY_BYTES, EmbeddingTable


@dataclass(frozen=True, eq=False)
class Traffic:
    """Amounts per rank for `samples` samples on each of `ranks` ranks.

    Sources remove duplicates before they ask, so each distinct key is routed once and its row
    travels once. `seed` fixes which owners are hot when the plan draws them.
    """

    tables: tuple[EmbeddingTable, ...]
    plan: RowWise
    ranks: int
    samples: float
    seed: int = 0

    @cached_property
    def lookups(self) -> float:
        """Keys asked for, duplicates included."""
        return sum(table.lookups(self.samples) for table in self.tables)

    @cached_property
    def expanded_bytes(self) -> float:
        """Bytes of the rows of all lookups, duplicates included: what the dense model reads."""
        return sum(table.lookups(self.samples) * table.row_bytes for table in self.tables)

    @cached_property
    def distinct(self) -> float:
        """Distinct keys that one source asks for."""
        return sum(self._distinct_by_table)

    @cached_property
    def row_bytes_received(self) -> float:
        """Bytes of rows that one source receives."""
        return sum(d * table.row_bytes for d, table in zip(self._distinct_by_table, self.tables, strict=True))

    @cached_property
    def _distinct_by_table(self) -> tuple[float, ...]:
        return tuple(table.popularity.distinct(table.lookups(self.samples)) for table in self.tables)

    @property
    def key_bytes_sent(self) -> float:
        """Bytes of keys that one source routes."""
        return KEY_BYTES * self.distinct

    @cached_property
    def requests(self) -> Amount:
        """Keys that an owner receives from all sources (one entry per rank when drawn)."""
        return sum((self._requests(table) for table in self.tables), start=0.0)

    @cached_property
    def row_bytes_sent(self) -> Amount:
        """Bytes of rows that an owner sends to all sources."""
        return sum((self._requests(table) * table.row_bytes for table in self.tables), start=0.0)

    def _requests(self, table: EmbeddingTable) -> Amount:
        load = table.popularity.owner_load(table.lookups(self.samples), self.ranks)
        return self._spread_over_owners(table.name, load.mean, load.sd)

    def _spread_over_owners(self, label: str, mean: float, sd: float) -> Amount:
        """Return `mean`, or a normal draw per owner: the sum over many keys that the hash gave it."""
        if self.plan.owners == "expected" or sd == 0.0:
            return mean
        from scipy.special import ndtri

        draws = uniforms(self.seed, f"owner of {label}", 0, np.arange(self.ranks, dtype=np.int64))
        drawn: Amount = np.maximum(0.0, mean + sd * ndtri(draws))
        return drawn

    @cached_property
    def rows_owned(self) -> float:
        """Distinct rows that an owner reads for all sources together."""
        return sum(self._union(table) for table in self.tables)

    @cached_property
    def bytes_owned(self) -> float:
        """Bytes of those rows."""
        return sum(self._union(table) * table.row_bytes for table in self.tables)

    def _union(self, table: EmbeddingTable) -> float:
        return table.popularity.union(table.lookups(self.samples), self.ranks) / self.ranks

    @cached_property
    def bytes_shared(self) -> float:
        """Bytes of an owner's rows that the previous batch used as well."""
        return sum(self._shared(table) * table.row_bytes for table in self.tables)

    def _shared(self, table: EmbeddingTable) -> float:
        return table.popularity.overlap(table.lookups(self.samples) * self.ranks) / self.ranks

    @property
    def mean_row_bytes(self) -> float:
        """Bytes of a row, averaged over the distinct keys asked for."""
        return self.row_bytes_received / self.distinct if self.distinct else 0.0
