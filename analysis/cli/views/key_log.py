"""The statistics of a key log, for people."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from analysis.cli.output import percent, plain, table
from analysis.key_doubts import FEWEST_KEYS, doubtful, told_exponent, untold
from simulator.workload.caches import CacheCurves
from simulator.workload.keys import LogStatistics, TableStatistics

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

FEW_LOOKUPS_PER_KEY = 10.0
CACHE_SHARES = (0.001, 0.01, 0.1, 0.3)  # of the keys: the sizes of caches that are shown
LEGEND = (
    "keys: different ones in the whole log. per batch: different ones in a batch. shared: part of them "
    "that the next batch uses, too. once: keys looked up once only. drift: 0 when popularity stays, 1 when "
    "it changes wholly. hash, range: lookups of the busiest of {owners} owners over the mean, rows spread "
    "by a hash or in equal ranges. Fits: the likeliest laws rank^-exponent and (rank + shift)^-exponent; "
    "KS: largest gap between their cumulative shares and the log's."
)
CACHES = (
    "Misses of caches of so many rows in the first {lookups:,} lookups at most, first lookups included. LRU "
    "drops the row not used for longest, LFU keeps those used most, best: what no cache undercuts."
)


def draw_keys(log: LogStatistics, curves: Sequence[CacheCurves], console: "Console") -> None:
    """Draw volume, skew and fits of every table, caches where they were replayed, and what was not read."""
    console.print(plain(f"{log.path}: {log.samples:,} samples, batches of {log.batch:,}"), style="bold")
    for drawn in (_volume(log), _skew(log), _fits(log)):
        console.print()
        console.print(drawn)
    console.print()
    console.print(LEGEND.format(owners=log.tables[0].owners.owners), style="dim")
    if curves:
        console.print()
        console.print(_caches(curves))
        console.print()
        console.print(CACHES.format(lookups=max(one.lookups for one in curves)), style="dim")
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
    drawn = table("table", "lookups/key", "once", "top 1%", "top 10%", "drift", "hash", "range")
    for one in log:
        popularity = one.frequencies.classes()
        drawn.add_row(
            plain(one.name),
            f"{_lookups_per_key(one):,.1f}",
            percent(one.frequencies.reuse().key_shares[0]),
            percent(popularity.top_share(0.01)),
            percent(popularity.top_share(0.10)),
            "-" if one.drift is None else f"{round(one.drift, 2) + 0.0:.2f}",  # no -0.00
            f"{one.owners.raw_busiest_over_mean:.2f}",
            f"{one.ranges.raw_busiest_over_mean:.2f}",
        )
    return drawn


def _fits(log: LogStatistics) -> "Table":
    drawn = table("fits", "Zipf exponent", "KS", "Zipf-Mandelbrot exponent", "shift", "KS")
    for one in log:
        zipf, shifted = one.fit, one.mandelbrot
        cells = _told(one, zipf.exponent, f"{zipf.ks_distance:.3f}")
        cells += _told(one, shifted.exponent, f"{shifted.shift:,.4g}", f"{shifted.ks_distance:.3f}")
        drawn.add_row(plain(one.name), *cells)
    return drawn


def _told(one: TableStatistics, exponent: float, *others: str) -> list[str]:
    """Return the cells of a fit, or dashes where its exponent says nothing."""
    told = told_exponent(one, exponent)
    return ["-"] * (1 + len(others)) if told is None else [f"{told:.3f}", *others]


def _caches(curves: Sequence[CacheCurves]) -> "Table":
    drawn = table("caches", "rows", "of the keys", "LRU misses", "LFU misses", "best")
    for one in curves:
        for place, at in enumerate(_shown(one)):
            drawn.add_row(
                "" if place else plain(one.table),
                f"{one.slots[at]:,}",
                percent(one.slots[at] / one.distinct, 2),
                *(percent(misses[at]) for misses in (one.lru, one.lfu, one.belady)),
            )
    return drawn


def _shown(curves: CacheCurves) -> Iterator[int]:
    """Yield the places of the sizes that come nearest to some shares of the keys."""
    nearest = [
        min(range(len(curves.slots)), key=lambda at: abs(curves.slots[at] / curves.distinct / share - 1))
        for share in CACHE_SHARES
    ]
    yield from dict.fromkeys(nearest)


def _lookups_per_key(table_statistics: TableStatistics) -> float:
    return table_statistics.frequencies.lookups / table_statistics.frequencies.distinct


def _draw_remarks(log: LogStatistics, console: "Console") -> None:
    """Say what makes the numbers above less certain."""
    for remark in _remarks(log):
        console.print()
        console.print(plain(f"! {remark}"), style="yellow")


def _remarks(log: LogStatistics) -> Iterator[str]:
    doubts = doubtful(log)
    if doubts:
        listed = ", ".join(f"{name} ({why})" for name, why in doubts.items())
        yield f"doubtful as tables: {listed}. --columns A,B reads the others alone"
    if any(map(untold, log)):
        yield f"fits shown as -: fewer than {FEWEST_KEYS} keys, or an exponent at the end of what is searched"
    short = [one.name for one in log if _lookups_per_key(one) < FEW_LOOKUPS_PER_KEY]
    if short:
        few = f"fewer than {FEW_LOOKUPS_PER_KEY:g} lookups per key in {', '.join(short)}"
        yield f"{few}: the fitted exponents say little"
    if log.broken.count:
        yield f"{log.broken.count:,} broken lines left out; the first: {log.broken.first}"
