"""`recscale keys`: the statistics of a real key log."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysis.cli.options import Format, FormatName, once, takes, words
from analysis.cli.output import tell
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from simulator.workload.caches import CacheCurves
    from simulator.workload.keys import LogOptions, LogStatistics, SequenceColumns


@dataclass(frozen=True)
class LogFile:
    """A key log, and how to read it."""

    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV, TSV (gz, zst, bz2), Parquet, Arrow, .npz or .pt.")
    ]
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Samples per batch of one worker.")] = 1024
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Key columns (default: all), one table each.")
    ] = None
    separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Splits a cell that holds several keys, such as '|'.")
    ] = None
    delimiter: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Between fields (default: as the file has it).")
    ] = None
    header: Annotated[
        bool, typer.Option("--header/--no-header", help="Whether the first line names the columns.")
    ] = True
    user: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Read events: one sample is one user's history.")
    ] = None
    item: Annotated[str | None, typer.Option(metavar="COLUMN", help="The item of an event.")] = None
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="The time of an event.")] = None
    longest: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Keep the latest N events of a history.")
    ] = None
    owners: Annotated[
        int, typer.Option(metavar="N", min=1, max=65_536, help="Owners that rows are spread over.")
    ] = 8
    caches: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Replay the first N lookups of each table through caches."),
    ] = None

    def reading(self) -> "LogOptions":
        """Return how to read the log. Raises InputError on options that do not fit together."""
        from simulator.workload.keys import LogOptions

        wanted = once("--columns", words("--columns", self.columns, blanks=""))
        return LogOptions(wanted or None, self.separator, self.delimiter, self.header, self._sequence())

    def _sequence(self) -> "SequenceColumns | None":
        from simulator.errors import InputError
        from simulator.workload.keys import SequenceColumns

        if (self.user, self.item, self.time, self.longest) == (None, None, None, None):
            return None
        if self.longest is not None and self.user is None:
            raise InputError("--longest shortens the histories of --user; this log is read without")
        if self.user is None or self.item is None:
            raise InputError("a log of events needs both --user and --item (and --time, if it has times)")
        return SequenceColumns(self.user, self.item, self.time, self.longest)

    def statistics(self) -> "LogStatistics":
        """Read the log and return what it says. Raises InputError."""
        from simulator.workload.keys import summarize

        with progress(f"reading {self.file.name}", unit="") as work:
            return summarize(self.file, self.batch, self.reading(), self.owners, work.within)

    def replayed(self, lookups: int | None) -> "tuple[CacheCurves, ...]":
        """Return the misses of caches in the first `lookups` lookups; nothing for None. Raises InputError."""
        from simulator.workload.caches import cache_curves

        if lookups is None:
            return ()
        with progress(f"replaying {self.file.name}", unit="") as work:
            return cache_curves(self.file, self.reading(), lookups, progress=work.within)


@dataclass(frozen=True)
class KeysOptions(LogFile):
    """What `keys` takes."""

    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw coverage, fits, LRU misses (.png or .svg).")
    ] = None
    format: FormatName = Format.table


@takes(KeysOptions)
def keys(options: KeysOptions) -> None:
    """Measure what a real key log asks of embedding tables.

    The layouts of Criteo, Avazu, MovieLens and KuaiRand are recognised.
    """
    from analysis.cli.output import Answer
    from analysis.cli.views.key_log import draw_keys

    _refuse_suffix(options.plot)
    log, curves = options.statistics(), options.replayed(options.caches)
    if options.plot is not None:
        _plot(log, curves or options.replayed(_usual_replay()), options.plot)
    data = statistics_data(log, curves)
    Answer(data, log.rows(), lambda console: draw_keys(log, curves, console)).show(options.format)


def statistics_data(log: "LogStatistics", curves: "Sequence[CacheCurves]") -> dict[str, Any]:
    """Return everything that was measured as one JSON-ready object."""
    rows = [{**row, "lookups_replayed": one.lookups} for one in curves for row in one.rows()]
    return {**log.to_dict(), "caches": rows}


def _usual_replay() -> int:
    from simulator.workload.caches.curves import DEFAULT_LOOKUPS

    return DEFAULT_LOOKUPS


def _refuse_suffix(path: Path | None) -> None:
    """Refuse a picture that cannot be drawn before a long log is read."""
    if path is not None:
        from analysis.plots.style import check_suffix

        check_suffix(path)


def _plot(log: "LogStatistics", curves: "Sequence[CacheCurves]", path: Path) -> None:
    from analysis.plots.keys import draw_keys
    from simulator.results.export import replacing

    with progress("drawing"), replacing(path) as unfinished:
        draw_keys(log, curves, unfinished)
    tell(f"drew {path}")
