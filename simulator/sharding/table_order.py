"""An order of tables that follows from what they are, not from their names or from the order in a file.

Whatever depends on an order goes by this one: the draws of hot owners, ties of the placement, sums of
floats. So a table that is renamed or listed elsewhere changes nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simulator.workload.tables import EmbeddingTable

if TYPE_CHECKING:
    from simulator.sharding.kinds import Kind

PROBES = (1.0, 64.0, 4096.0, 262144.0)  # lookups at which two laws of keys are told apart

Key = tuple[object, ...]


def in_order(tables: Sequence[EmbeddingTable], kinds: Sequence["Kind"]) -> tuple[EmbeddingTable, ...]:
    """Return `tables`, table i sharded by `kinds[i]`, in an order that their names do not decide.

    Tables that are alike in everything keep the order given, which then makes no difference.
    """
    laws = {id(table.popularity): table.popularity for table in tables}
    distinct = {name: tuple(law.distinct(probe) for probe in PROBES) for name, law in laws.items()}

    def key(place: int) -> Key:
        """Sizes come first, so that other settings reorder as little as may be."""
        table = tables[place]
        sizes = (table.rows, table.dimension, table.pooling, table.dtype)
        return (*sizes, distinct[id(table.popularity)], type(table.sharing).__name__, repr(kinds[place]))

    return tuple(tables[place] for place in sorted(range(len(tables)), key=key))
