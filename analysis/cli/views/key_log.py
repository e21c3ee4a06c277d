"""The statistics of a key log, for people."""

from typing import TYPE_CHECKING

from analysis.cli.output import percent, plain, table
from simulator.workload.keys import LogStatistics, TableStatistics

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

FEW_LOOKUPS_PER_KEY = 10.0
LEGEND = (
    "keys: different ones in the whole log. per batch: different ones in a batch. shared: part of them "
    "that the next batch uses, too. exponent: of the likeliest bounded Zipf law; KS: largest gap between "
    "its cumulative shares and the log's. busiest/mean: lookups of the busiest of the owners that rows "
    "are hashed over."
)


def draw_keys(log: LogStatistics, console: "Console") -> None:
    """Draw volume and skew of every table, and what could not be read."""
    console.print(plain(f"{log.path}: {log.samples:,} samples, batches of {log.batch:,}"), style="bold")
    console.print()
    console.print(_volume(log))
    console.print()
    console.print(_skew(log))
    console.print()
    console.print(LEGEND, style="dim")
    _draw_remarks(log, console)


def _volume(log: LogStatistics) -> "Table":
    drawn = table("table", "lookups", "keys", "per sample", "per batch", "shared", "empty")
    for one in log:
        batch = one.at_batch
        shared = None if batch.overlap is None or not batch.distinct else batch.overlap / batch.distinct
        drawn.add_row(
            plain(one.name),
            f"{one.frequencies.lookups:,}",
            f"{one.frequencies.distinct:,}",
            f"{one.pooling_mean:,.3g}",
            f"{batch.distinct:,.1f}",
            percent(shared),
            f"{one.missing:,}",
        )
    return drawn


def _skew(log: LogStatistics) -> "Table":
    drawn = table("table", "exponent", "KS", "lookups/key", "top 1%", "top 10%", "busiest/mean")
    for one in log:
        popularity = one.frequencies.classes()
        drawn.add_row(
            plain(one.name),
            f"{one.fit.exponent:.3f}",
            f"{one.fit.ks_distance:.3f}",
            f"{_lookups_per_key(one):,.1f}",
            percent(popularity.top_share(0.01)),
            percent(popularity.top_share(0.10)),
            f"{one.owners.raw_busiest_over_mean:.2f}",
        )
    return drawn


def _lookups_per_key(table_statistics: TableStatistics) -> float:
    return table_statistics.frequencies.lookups / table_statistics.frequencies.distinct


def _draw_remarks(log: LogStatistics, console: "Console") -> None:
    """Say what makes the numbers above less certain."""
    short = [one.name for one in log if _lookups_per_key(one) < FEW_LOOKUPS_PER_KEY]
    if short:
        console.print()
        few = f"fewer than {FEW_LOOKUPS_PER_KEY:g} lookups per key in {', '.join(short)}"
        console.print(plain(f"! {few}: the fitted exponent says little"), style="yellow")
    if log.broken.count:
        console.print()
        console.print(
            plain(f"! {log.broken.count:,} broken lines left out; the first: {log.broken.first}"),
            style="yellow",
        )
