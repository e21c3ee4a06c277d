"""Reading a log of embedding lookups, piece by piece.

A log is a table of samples (one per line, one column per table of keys), or of events (user, item,
time) in which a sample is a user's history.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from simulator.errors import InputError
from simulator.workload.keys.counting import TableChunk
from simulator.workload.keys.key_columns import Vocabulary, key_chunk
from simulator.workload.keys.opening import ArrowFile, BrokenCounter, TextFormat, chosen, open_log
from simulator.workload.keys.sequences import SequenceColumns, histories
from simulator.workload.keys.statistics import BrokenLines


@dataclass(frozen=True)
class LogOptions:
    """What to read from a key log.

    `columns`: the key columns, in this order (None: all). `separator`: splits a text cell into
    several keys. `delimiter`: of fields (None: tab in files named .tsv or .tab, comma otherwise).
    `header`: whether the first line names the columns; without, they are `column_1`, `column_2`.
    `sequence`: read events as users' histories; `columns` is then not used.
    """

    columns: tuple[str, ...] | None = None
    separator: str | None = None
    delimiter: str | None = None
    header: bool = True
    sequence: SequenceColumns | None = None

    def __post_init__(self) -> None:
        """Refuse separators that cannot separate."""
        if self.delimiter is not None and len(self.delimiter.encode()) != 1:
            raise InputError(f'the delimiter must be a single character, not "{self.delimiter}"')
        if self.separator == "" or (self.separator and self.separator == self.delimiter):
            raise InputError("the separator of values must differ from the delimiter and not be empty")

    def layout(self, path: Path) -> TextFormat:
        """Return how the text file at `path` is laid out."""
        tabs = {".tsv", ".tab"} & {suffix.lower() for suffix in path.suffixes}
        return TextFormat(self.delimiter or ("\t" if tabs else ","), self.header)


@dataclass(frozen=True, eq=False)
class LogChunk:
    """Consecutive samples of a log, up to sample `end` (from 0, exclusive), with each table's keys."""

    end: int
    tables: dict[str, TableChunk]


@dataclass(frozen=True, eq=False)
class KeyLog:
    """An opened log: `tables` are the names of its key columns; read it with `chunks()`."""

    path: Path
    tables: tuple[str, ...]
    options: LogOptions
    _file: ArrowFile
    _broken: BrokenCounter = field(default_factory=BrokenCounter)

    @property
    def broken(self) -> BrokenLines:
        """Return the lines that had to be left out so far; complete once `chunks()` is exhausted."""
        return self._broken.report()

    def chunks(self) -> Iterator[LogChunk]:
        """Yield the log from its start; memory grows with the distinct keys, not with the log.

        A log of sequences is the exception: its events are held as numbers until all are read, since
        a user's events may lie anywhere in the file. Raises InputError when the file turns out
        unreadable or cut off.
        """
        self._broken.reset()
        sequence = self.options.sequence
        return self._samples() if sequence is None else self._histories(sequence)

    def _samples(self) -> Iterator[LogChunk]:
        words = {table: Vocabulary() for table in self.tables}
        end = 0
        for batch in self._file.stream(self.tables, self._broken):
            start, end = end, end + batch.num_rows
            separator = self.options.separator
            tables = {
                name: key_chunk(batch.column(name), separator, start, words[name]) for name in self.tables
            }
            yield LogChunk(end, tables)

    def _histories(self, sequence: SequenceColumns) -> Iterator[LogChunk]:
        events = self._file.stream(sequence.names, self._broken)
        for end, chunk in histories(events, sequence, self._broken):
            yield LogChunk(end, {sequence.item: chunk})


def read_key_log(path: str | Path, options: LogOptions | None = None) -> KeyLog:
    """Open the CSV, TSV or Parquet file at `path`, as a key log; text may be gzip-compressed.

    Empty lines are no samples. Lines with too few or too many fields, and those that an open quote
    swallowed, are left out and counted in `KeyLog.broken`.

    Raises InputError (one line, with the file's name) for a missing file, a directory, an empty,
    binary or cut-off file, and for unknown columns.
    """
    options, path = options or LogOptions(), Path(path)
    file = open_log(path, options.layout(path))
    sequence = options.sequence
    if sequence is None:
        return KeyLog(path, chosen(options.columns, file, path), options, file)
    chosen(sequence.names, file, path)
    return KeyLog(path, (sequence.item,), options, file)
