"""Reading a log of embedding lookups, piece by piece.

A log is a table of samples (one per line, one column per table of keys), of events (user, item,
time) in which a sample is a user's history, or of bags of keys (indices with offsets).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from simulator.errors import InputError
from simulator.workload.keys.counting import TableChunk
from simulator.workload.keys.key_columns import key_chunk
from simulator.workload.keys.opening import chosen, open_log
from simulator.workload.keys.reading import (
    ArrowFile,
    BagFile,
    BagPart,
    BrokenCounter,
    KeyFile,
    Progress,
    readable,
    unwatched,
)
from simulator.workload.keys.recognition import TextFormat
from simulator.workload.keys.sequences import SequenceColumns, histories
from simulator.workload.keys.statistics import BrokenLines
from simulator.workload.keys.vocabulary import Vocabulary


@dataclass(frozen=True)
class LogOptions:
    """What to read from a key log.

    `columns`: the key columns, or tables, in this order (None: those of a recognised layout, else
    all). `separator`: splits a text cell into several keys. `delimiter`: of fields (None: as the
    file has it). `header`: whether the first line names the columns; without, they are
    `column_1`, `column_2`. `sequence`: read events as users' histories; `columns` is then not used
    (None: when no columns are named and the file has those of MovieLens, KuaiRand or OTTO).
    """

    columns: tuple[str, ...] | None = None
    separator: str | None = None
    delimiter: str | None = None
    header: bool = True
    sequence: SequenceColumns | None = None

    def __post_init__(self) -> None:
        """Refuse separators that cannot separate."""
        single = self.delimiter is None or self.delimiter == "::" or len(self.delimiter.encode()) == 1
        if not single:
            raise InputError(f'the delimiter must be a single character or "::", not "{self.delimiter}"')
        if self.separator == "" or (self.separator and self.separator == self.delimiter):
            raise InputError("the separator of values must differ from the delimiter and not be empty")

    @property
    def text(self) -> TextFormat:
        """Return what is said of the layout of a text file."""
        return TextFormat(self.delimiter, self.header)


@dataclass(frozen=True, eq=False)
class LogChunk:
    """Consecutive samples of a log, up to sample `end` (from 0, exclusive), with each table's keys.

    Files that hold one table after the other give chunks of one table.
    """

    end: int
    tables: dict[str, TableChunk]


@dataclass(frozen=True, eq=False)
class KeyLog:
    """An opened log: `tables` are the names of its key columns; read it with `chunks()`.

    `words` numbers the keys of each table, and is complete once the log is read.
    """

    path: Path
    tables: tuple[str, ...]
    options: LogOptions
    _file: KeyFile
    sequence: SequenceColumns | None = None
    words: dict[str, Vocabulary] = field(default_factory=dict)
    _broken: BrokenCounter = field(default_factory=BrokenCounter)

    @property
    def broken(self) -> BrokenLines:
        """Return the lines that had to be left out so far; complete once `chunks()` is exhausted."""
        return self._broken.report()

    def chunks(self, progress: Progress = unwatched) -> Iterator[LogChunk]:
        """Yield the log from its start; memory grows with the distinct keys, not with the log.

        A log of sequences is the exception: its events are held as numbers until all are read, since
        a user's events may lie anywhere in the file. `progress(done, total)` is called as the file
        is read. Raises InputError when the file turns out unreadable or cut off.
        """
        self._broken.reset()
        self.words.update({table: Vocabulary() for table in self.tables})
        if isinstance(self._file, BagFile):
            return (self._bag(part) for part in self._file.stream(self.tables, progress))
        if self.sequence is not None:
            return self._histories(self._file, self.sequence, progress)
        return self._samples(self._file.stream(self.tables, self._broken, progress))

    def _samples(self, batches: Iterator[Any]) -> Iterator[LogChunk]:
        end, separator = 0, self.options.separator
        for batch in batches:
            start, end = end, end + batch.num_rows
            with readable(self.path):
                tables = {
                    name: key_chunk(batch.column(name), separator, start, self.words[name])
                    for name in self.tables
                }
            yield LogChunk(end, tables)

    def _bag(self, part: BagPart) -> LogChunk:
        import pyarrow

        codes = self.words[part.table].encode(pyarrow.array(part.indices))
        end = part.start + len(part.lengths)
        samples = np.repeat(np.arange(part.start, end), part.lengths)
        missing = int(np.count_nonzero(part.lengths == 0))
        return LogChunk(end, {part.table: TableChunk(codes, samples, missing)})

    def _histories(
        self, file: ArrowFile, sequence: SequenceColumns, progress: Progress
    ) -> Iterator[LogChunk]:
        events = file.stream(sequence.names, self._broken, progress)
        words = self.words[sequence.item]
        with readable(self.path):
            for end, chunk in histories(events, sequence, self._broken, words):
                yield LogChunk(end, {sequence.item: chunk})


def read_key_log(path: str | Path, options: LogOptions | None = None) -> KeyLog:
    """Open the file at `path` as a key log.

    Read are CSV and TSV (also compressed by gzip, zstd, bz2 or lz4; the layouts of Criteo, Avazu,
    MovieLens and KuaiRand are recognised), Parquet, Arrow and Feather, NumPy's .npz with arrays
    `indices` and `offsets`, and PyTorch's .pt with the tensors of Meta's dlrm_datasets. Empty lines
    are no samples, nor are lines that repeat the header, as files joined end to end have them. Lines
    with too few or too many fields, and those that an open quote swallowed, are left out and counted in
    `KeyLog.broken`.

    Raises InputError (one line, with the file's name) for a missing file, a directory, an empty,
    binary or cut-off file, and for unknown columns.
    """
    options, path = options or LogOptions(), Path(path)
    file = open_log(path, options.text)
    if isinstance(file, BagFile):
        return KeyLog(path, chosen(options.columns, file.names, path), options, file)
    sequence = options.sequence or _recognised(file, options)
    if sequence is None:
        wanted = chosen(options.columns or file.keys, file.names, path)
        return KeyLog(path, wanted, options, file)
    chosen(sequence.names, file.names, path)
    return KeyLog(path, (sequence.item,), options, file, sequence)


def _recognised(file: ArrowFile, options: LogOptions) -> SequenceColumns | None:
    """Return the columns of a log of events, unless the user named the key columns."""
    if options.columns is not None or file.events is None:
        return None
    return SequenceColumns(file.events.user, file.events.item, file.events.time)
