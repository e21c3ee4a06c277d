"""The `histories` and `clustering` of a workload: what samples of a batch share, and regrouping them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from simulator.errors import InputError
from simulator.scenario.base import Spec
from simulator.scenario.fields import Fraction, Number
from simulator.workload.clustering import Histories, InOrder, Regrouped, RegroupedLog
from simulator.workload.keys import Independent, Recorded
from simulator.workload.tables import EmbeddingTable

Clustering = Literal["none", "key_centric"]


class HistoriesSpec(Spec):
    """Samples of a batch share keys: `group` samples on average, each with `share` of a common history."""

    group: Annotated[float, Number(1, 1e6)]
    share: Fraction

    def build(self) -> Histories:
        """Return the histories."""
        return Histories(self.group, self.share)


def sharing_tables(
    tables: Sequence[EmbeddingTable], batch: int, given: HistoriesSpec | None, clustering: Clustering
) -> tuple[EmbeddingTable, ...]:
    """Return the tables with what their samples share, in the order that `clustering` puts them in.

    Raises InputError when there is nothing to share, or a log says already what is shared.
    """
    if given is not None:
        return _with_histories(tables, batch, given.build(), clustering)
    return tuple(tables) if clustering == "none" else _from_log(tables, batch)


def _with_histories(
    tables: Sequence[EmbeddingTable], batch: int, histories: Histories, clustering: Clustering
) -> tuple[EmbeddingTable, ...]:
    laws = tuple(
        (table.popularity, table.pooling)
        for table in tables
        if isinstance(table.popularity, Independent) and not isinstance(table.popularity, Recorded)
    )
    if len(laws) < len(tables):
        raise InputError(
            "histories are for keys of a formula: what samples share is in a recorded log already"
        )
    sharing = InOrder(histories, batch) if clustering == "none" else Regrouped(histories, batch, laws)
    return tuple(replace(table, sharing=sharing) for table in tables)


def _from_log(tables: Sequence[EmbeddingTable], batch: int) -> tuple[EmbeddingTable, ...]:
    logs = tuple(table.popularity.log for table in tables if isinstance(table.popularity, Recorded))
    columns = tuple(dict.fromkeys(log for log in logs if log is not None))
    if len(logs) < len(tables) or len({(log.path, log.separator) for log in columns}) != 1:
        raise InputError("clustering needs histories, or keys of all tables from one recorded log")
    return tuple(
        replace(table, sharing=RegroupedLog(columns, table.popularity, table.pooling, batch))
        for table in tables
        if isinstance(table.popularity, Recorded)
    )
