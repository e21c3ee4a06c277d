"""`recscale keys`: the statistics of a real key log."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.cli.options import Format, FormatName, takes
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from simulator.workload.keys import LogOptions, SequenceColumns


@dataclass(frozen=True)
class KeysOptions:
    """What `keys` takes."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV, TSV or Parquet; text may be gzipped.")]
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Samples per batch of one worker.")] = 1024
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Key columns (default: all), one table each.")
    ] = None
    separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Splits a cell that holds several keys, such as '|'.")
    ] = None
    delimiter: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Between fields (default: tab in .tsv, else comma).")
    ] = None
    user: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Read events: one sample is one user's history.")
    ] = None
    item: Annotated[str | None, typer.Option(metavar="COLUMN", help="The item of an event.")] = None
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="The time of an event.")] = None
    longest: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Keep the latest N events of a history.")
    ] = None
    owners: Annotated[
        int, typer.Option(metavar="N", min=1, max=65_536, help="Owners that rows are hashed over.")
    ] = 8
    format: FormatName = Format.table

    def reading(self) -> "LogOptions":
        """Return how to read the log. Raises InputError on options that do not fit together."""
        from simulator.workload.keys import LogOptions

        wanted = tuple(name for name in (self.columns or "").split(",") if name)
        return LogOptions(wanted or None, self.separator, self.delimiter, sequence=self._sequence())

    def _sequence(self) -> "SequenceColumns | None":
        from simulator.errors import InputError
        from simulator.workload.keys import SequenceColumns

        if self.user is None and self.item is None and self.time is None:
            return None
        if self.user is None or self.item is None:
            raise InputError("a log of events needs both --user and --item (and --time, if it has times)")
        return SequenceColumns(self.user, self.item, self.time, self.longest)


@takes(KeysOptions)
def keys(options: KeysOptions) -> None:
    """Measure what a real key log asks of embedding tables."""
    from analysis.cli.output import Answer
    from analysis.cli.views.key_log import draw_keys
    from simulator.workload.keys import summarize

    reading = options.reading()
    with progress(f"reading {options.file.name}"):
        log = summarize(options.file, options.batch, reading, options.owners)
    rows = [
        {**table.to_dict(), "lookups_per_key": table.frequencies.lookups / table.frequencies.distinct}
        for table in log
    ]
    data = {**log.to_dict(), "tables": rows}
    Answer(data, rows, lambda console: draw_keys(log, console)).show(options.format)
