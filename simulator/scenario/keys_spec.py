"""The `keys` parts of a scenario: how often rows are asked for, by a formula or by a log."""

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from simulator.errors import InputError, did_you_mean
from simulator.scenario.base import Spec
from simulator.scenario.fields import Count, Fraction, NonNegativeFloat
from simulator.scenario.places import inside
from simulator.workload.keys import (
    BoundedZipf,
    Layered,
    LogColumn,
    LogOptions,
    LogStatistics,
    Popularity,
    Recorded,
    TableStatistics,
    Uniform,
    ZipfMandelbrot,
    summarize,
)


class ZipfSpec(Spec):
    """Popularity falls as rank ** -exponent over the table's rows."""

    kind: Literal["zipf"]
    exponent: NonNegativeFloat

    def popularity(self, table: str, rows: float, folder: Path) -> Popularity:
        """Return the popularity of a table of `rows` rows."""
        return BoundedZipf(rows, self.exponent)


class ZipfMandelbrotSpec(Spec):
    """Popularity falls as (rank + shift) ** -exponent; a positive shift flattens the head."""

    kind: Literal["zipf_mandelbrot"]
    exponent: NonNegativeFloat
    shift: NonNegativeFloat

    def popularity(self, table: str, rows: float, folder: Path) -> Popularity:
        """Return the popularity of a table of `rows` rows."""
        return ZipfMandelbrot(rows, self.exponent, self.shift)


class LayeredSpec(Spec):
    """Two layers: `hot_rows` rows take a `share` of the lookups, the other rows take the rest.

    Within a layer popularity falls as rank to the power of -`hot_exponent` or -`exponent`.
    """

    kind: Literal["layered"]
    share: Fraction
    hot_rows: Count
    hot_exponent: NonNegativeFloat
    exponent: NonNegativeFloat

    def popularity(self, table: str, rows: float, folder: Path) -> Popularity:
        """Return the popularity. Raises InputError when the table has no more rows than the hot layer."""
        if self.hot_rows >= rows:
            raise InputError(
                f'table "{table}" has {rows:g} rows, and {self.hot_rows} hot ones leave none cold'
            )
        cold = BoundedZipf(rows - self.hot_rows, self.exponent)
        return Layered(self.share, BoundedZipf(self.hot_rows, self.hot_exponent), cold)


class UniformSpec(Spec):
    """All rows are equally popular."""

    kind: Literal["uniform"]

    def popularity(self, table: str, rows: float, folder: Path) -> Popularity:
        """Return the popularity of a table of `rows` rows."""
        return Uniform(rows)


class RecordedSpec(Spec):
    """The measured statistics of a key log: `file` lies in the scenario's folder or below.

    `batch` is the number of consecutive samples that the log's statistics are taken over; `column`
    is the log's column for a table (default: the table's name); `separator` splits a cell that
    holds several keys.
    """

    kind: Literal["recorded"]
    file: str
    batch: Count
    column: str | None = None
    separator: str | None = None

    def popularity(self, table: str, rows: float, folder: Path) -> Popularity:
        """Return what the log says of the table. Raises InputError on an unreadable or unfit log."""
        statistics = self.statistics(table, folder)
        seen = statistics.frequencies.distinct
        if seen > rows:
            raise InputError(f'table "{table}" has {rows:g} rows, but its log names {seen} different keys')
        log = LogColumn(inside(folder, self.file), self.column or table, self.separator)
        return Recorded(statistics, log)

    def statistics(self, table: str, folder: Path) -> TableStatistics:
        """Return the statistics of the table's column."""
        log = _summary(str(inside(folder, self.file)), self.batch, self.separator)
        wanted = self.column or table
        found = {one.name: one for one in log.tables}
        if wanted not in found:
            raise InputError(f'{self.file} has no key column "{wanted}"{did_you_mean(wanted, found)}')
        return found[wanted]


@cache
def _summary(path: str, batch: int, separator: str | None) -> LogStatistics:
    return summarize(path, batch, LogOptions(separator=separator))


KeysSpec = Annotated[
    ZipfSpec | ZipfMandelbrotSpec | LayeredSpec | UniformSpec | RecordedSpec, Field(discriminator="kind")
]
