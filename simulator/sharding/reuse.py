"""How skewed accesses to rows are, from the popularity of their tables; worked out when a cache asks."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.quantities import FloatArray
from simulator.workload.keys.popularity import Independent, KeyClasses, Popularity


@dataclass(frozen=True)
class Accesses:
    """One table's accesses at one owner: `sources` batches of `lookups` lookups, rows over `owners`.

    `once`: a source asks for each of its distinct keys once; else once per lookup.
    """

    popularity: Popularity
    lookups: float
    sources: int
    owners: float
    once: bool

    @property
    def classes(self) -> KeyClasses | None:
        """The popularity by classes of equally likely keys, where it has such."""
        return self.popularity.classes if isinstance(self.popularity, Independent) else None


@dataclass(frozen=True, eq=False)
class HotRows:
    """The accesses of several tables to rows of one width at one owner; `distinct` rows in all."""

    tables: tuple[Accesses, ...]
    distinct: float

    @classmethod
    def of(cls, tables: Iterable[Accesses], distinct: float) -> "HotRows | None":
        """Return None where a table's popularity has no classes: its reuse is unknown."""
        listed = tuple(tables)
        return cls(listed, distinct) if all(one.classes is not None for one in listed) else None

    def share_on_hottest(self, rows: float) -> float:
        """Return the share of the accesses that go to the `rows` rows accessed most."""
        ends, shares = self._curve
        return float(np.interp(rows, ends, shares))

    @cached_property
    def _curve(self) -> tuple[FloatArray, FloatArray]:
        """Return (rows, share of accesses) from the hottest row down."""
        counts = np.concatenate([_per_row(one)[0] for one in self.tables])
        rows = np.concatenate([_per_row(one)[1] for one in self.tables])
        order = np.argsort(-counts, kind="stable")
        ends, done = np.cumsum(rows[order]), np.cumsum((rows * counts)[order])
        return np.append(0.0, ends), np.append(0.0, done / done[-1] if done[-1] else done)


def _per_row(table: Accesses) -> tuple[FloatArray, FloatArray]:
    """Return (accesses of a row, rows like it at one owner) by class."""
    classes = table.classes
    assert classes is not None
    each = classes.present(table.lookups) if table.once else table.lookups * classes.probability
    return np.asarray(table.sources * each), classes.keys / table.owners
