"""Reading Parquet and Arrow files, which know their columns and types."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Where
from simulator.workload.keys.reading import BATCH_ROWS, ArrowFile, BrokenCounter, Progress, readable
from simulator.workload.keys.recognition import Layout

PARQUET, ARROW_FILE, ARROW_STREAM, FEATHER_1 = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"FEA1"
LAYOUT = Layout(",", True)  # only its knowledge of column names is used


def is_columnar(start: bytes) -> bool:
    """Return whether a file that begins with `start` is Parquet, Arrow or Feather."""
    return start.startswith((PARQUET, ARROW_FILE, ARROW_STREAM, FEATHER_1))


def open_columnar(path: Path, start: bytes) -> ArrowFile:
    """Return the file with its columns. Raises InputError for Feather version 1."""
    if start.startswith(FEATHER_1):
        raise InputError("is Feather version 1, which is no longer read: save it again", Where(str(path)))
    return _parquet(path) if start.startswith(PARQUET) else _arrow(path, start.startswith(ARROW_FILE))


def _known(names: list[str], stream: Any, path: Path) -> ArrowFile:
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise InputError(f'two columns are named "{twice}"', Where(str(path)))
    return ArrowFile(tuple(names), stream, LAYOUT.keys(names), LAYOUT.events(names))


def _parquet(path: Path) -> ArrowFile:
    from pyarrow import parquet

    def stream(columns: tuple[str, ...], broken: BrokenCounter, progress: Progress) -> Iterator[Any]:
        done = 0
        with readable(path), parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=list(columns)):
                done += batch.num_rows
                progress(done, file.metadata.num_rows)
                yield batch

    with readable(path), parquet.ParquetFile(path) as file:
        return _known(file.schema_arrow.names, stream, path)


def _arrow(path: Path, is_file: bool) -> ArrowFile:
    def stream(columns: tuple[str, ...], broken: BrokenCounter, progress: Progress) -> Iterator[Any]:
        import pyarrow

        with readable(path), pyarrow.memory_map(str(path)) as source:
            for batch in _batches(source, is_file):
                batch.validate(full=True)  # else forged offsets are believed, and other memory is read
                progress(source.tell(), source.size())
                yield from _pieces(batch.select(list(columns)))
            progress(source.size(), source.size())

    return _known(_arrow_names(path, is_file), stream, path)


def _arrow_names(path: Path, is_file: bool) -> list[str]:
    import pyarrow
    from pyarrow import ipc

    with readable(path), pyarrow.memory_map(str(path)) as source:
        opened = ipc.open_file(source) if is_file else ipc.open_stream(source)
        return list(opened.schema.names)


def _batches(source: Any, is_file: bool) -> Iterator[Any]:
    from pyarrow import ipc

    if not is_file:
        yield from ipc.open_stream(source)
        return
    file = ipc.open_file(source)
    for place in range(file.num_record_batches):
        yield file.get_batch(place)


def _pieces(batch: Any) -> Iterator[Any]:
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)
