"""Opening CSV, TSV and Parquet files, compressed or not, as streams of Arrow record batches."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from simulator.errors import InputError, Where, did_you_mean
from simulator.workload.keys.statistics import BrokenLines

SNIFFED_BYTES = 1 << 16
BLOCK_BYTES = 1 << 22
BATCH_ROWS = 1 << 17
GZIP_MAGIC, PARQUET_MAGIC = b"\x1f\x8b", b"PAR1"
# control characters that no text file holds; tab, line ends, form feed and escape are allowed
NOT_TEXT = bytes(c for c in range(32) if c not in b"\t\n\r\f\x1b")


@dataclass
class BrokenCounter:
    """Counts the lines that had to be left out, and keeps what was wrong with the first.

    `misshapen` are those among them that the CSV reader skipped for their number of fields.
    """

    count: int = 0
    first: str | None = None
    misshapen: int = 0

    def add(self, problem: str, lines: int = 1) -> None:
        """Count `lines` more broken lines."""
        self.first = self.first or problem
        self.count += lines

    def skip(self, row: Any) -> str:
        """Count a row that has too few or too many fields; called by the CSV reader."""
        line = f"line {row.number}: " if row.number is not None else ""
        self.add(f"{line}expected {row.expected_columns} fields, found {row.actual_columns}")
        self.misshapen += 1
        return "skip"

    def reset(self) -> None:
        """Forget everything, as before the first line."""
        self.count, self.first, self.misshapen = 0, None, 0

    def report(self) -> BrokenLines:
        """Return what was counted so far."""
        return BrokenLines(self.count, self.first)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what the readers raise about a bad file into a one-line InputError that names it."""
    import pyarrow

    try:
        yield
    except EOFError:
        raise InputError("the compressed file is cut off before its end", Where(str(path))) from None
    except (OSError, zlib.error, UnicodeDecodeError, pyarrow.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        if "truncated" in reason.lower():
            reason = "the compressed file is cut off before its end"
        elif "straddl" in reason:
            reason = f"a line is longer than {BLOCK_BYTES / 1e6:.1f} MB, or a quote is left open"
        raise InputError(f"cannot be read as a key log: {reason}", Where(str(path))) from None


@dataclass(frozen=True)
class TextFormat:
    """How a text file is laid out: the field `delimiter`, and whether the first line is a `header`."""

    delimiter: str
    header: bool


@dataclass(frozen=True)
class ArrowFile:
    """A file whose `names` are its columns and that `stream(columns, broken)` reads piece by piece."""

    names: tuple[str, ...]
    stream: Callable[[tuple[str, ...], BrokenCounter], Iterator[Any]] = field(compare=False)


def open_log(path: Path, layout: TextFormat) -> ArrowFile:
    """Return the file, with its columns known; the contents decide the format, not the name.

    Raises InputError when the file is missing, a directory, empty, not text, cut off or unreadable.
    """
    with readable(path):
        start = _sniffed(path)
        return _open_parquet(path) if start.startswith(PARQUET_MAGIC) else _open_text(path, layout)


def _sniffed(path: Path) -> bytes:
    """Return the first bytes, decompressed; refuse what cannot be a log."""
    where = Where(str(path))
    if path.is_dir():
        raise InputError("is a directory, not a key log", where)
    if not path.exists():
        raise InputError("there is no such file", where)
    with _bytes(path) as file:
        start = file.read(SNIFFED_BYTES)
    if not start.strip():
        raise InputError("the file is empty", where)
    if not start.startswith(PARQUET_MAGIC) and start.translate(None, NOT_TEXT) != start:
        raise InputError("the file is binary: neither CSV, TSV nor Parquet", where)
    return start


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(GZIP_MAGIC)) == GZIP_MAGIC


def _open_parquet(path: Path) -> ArrowFile:
    from pyarrow import parquet

    def stream(columns: tuple[str, ...], broken: BrokenCounter) -> Iterator[Any]:
        with readable(path), parquet.ParquetFile(path) as file:
            yield from file.iter_batches(BATCH_ROWS, columns=list(columns))

    if _is_gzip(path):
        raise InputError("a Parquet file inside gzip cannot be read: unpack it first", Where(str(path)))
    with parquet.ParquetFile(path) as file:
        return ArrowFile(tuple(file.schema_arrow.names), stream)


def _open_text(path: Path, layout: TextFormat) -> ArrowFile:
    names = _header(path, layout)

    def stream(columns: tuple[str, ...], broken: BrokenCounter) -> Iterator[Any]:
        rows = int(layout.header)
        with readable(path):
            for batch in _csv_reader(path, layout, names, broken, columns):
                rows += batch.num_rows
                yield batch
            _count_swallowed(path, rows + broken.misshapen, broken)

    return ArrowFile(names, stream)


def _count_swallowed(path: Path, known: int, broken: BrokenCounter) -> None:
    """Count the lines that the reader took for parts of quoted values: it does not report them."""
    with _bytes(path) as file:
        swallowed = sum(1 for line in file if line.strip(b"\r\n")) - known
    if swallowed > 0:
        broken.add("lines lie inside a quoted value: a quote may be left open", swallowed)


def _bytes(path: Path) -> IO[bytes]:
    """Return the file opened for reading, decompressed if need be."""
    return gzip.open(path, "rb") if _is_gzip(path) else path.open("rb")  # type: ignore[return-value]


def _header(path: Path, layout: TextFormat) -> tuple[str, ...]:
    """Return the column names; without a header they are `column_1`, `column_2`, ..."""
    from pyarrow import csv

    read = csv.ReadOptions(block_size=BLOCK_BYTES, autogenerate_column_names=not layout.header)
    with _csv_open(path, layout, BrokenCounter(), read, csv.ConvertOptions()) as reader:
        names = tuple(reader.schema.names)
    if not layout.header:
        return tuple(f"column_{place}" for place in range(1, len(names) + 1))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f'the header names column "{twice}" twice', Where(str(path), line=1))
    return names


def _csv_reader(
    path: Path, layout: TextFormat, names: tuple[str, ...], broken: BrokenCounter, columns: tuple[str, ...]
) -> Iterator[Any]:
    """Yield record batches of byte strings, so that a key stays what was written."""
    import pyarrow
    from pyarrow import csv

    renamed = None if layout.header else list(names)
    read = csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False, column_names=renamed)
    kinds = {name: pyarrow.binary() for name in names}
    convert = csv.ConvertOptions(column_types=kinds, include_columns=list(columns))
    with _csv_open(path, layout, broken, read, convert) as reader:
        yield from reader


def _csv_open(path: Path, layout: TextFormat, broken: BrokenCounter, read: Any, convert: Any) -> Any:
    import pyarrow
    from pyarrow import csv

    source = pyarrow.input_stream(str(path), compression="gzip" if _is_gzip(path) else None)
    parse = csv.ParseOptions(delimiter=layout.delimiter, invalid_row_handler=broken.skip)
    return csv.open_csv(source, read_options=read, parse_options=parse, convert_options=convert)


def chosen(columns: tuple[str, ...] | None, file: ArrowFile, path: Path) -> tuple[str, ...]:
    """Return `columns`, or all of the file's; raise InputError for one that it does not have."""
    for column in columns or ():
        if column not in file.names:
            hint = did_you_mean(column, file.names)
            raise InputError(f'there is no column "{column}"{hint}', Where(str(path)))
    return file.names if columns is None else tuple(dict.fromkeys(columns))
