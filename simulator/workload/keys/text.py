"""Reading delimited text, compressed or not, as a stream of Arrow record batches."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from simulator.errors import InputError, Where
from simulator.workload.keys.reading import ArrowFile, BrokenCounter, Progress, readable, unwatched
from simulator.workload.keys.recognition import Layout

BLOCK_BYTES, LONGEST_LINE = 1 << 22, 1 << 22
CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\x04\x22\x4d\x18": "lz4"}
LINE_FEED, CARRIAGE_RETURN = 10, 13
BYTE_ORDER = b"\xef\xbb\xbf"


def codec_of(path: Path) -> str | None:
    """Return the name of the file's compression, from its first bytes."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((codec for magic, codec in CODECS.items() if start.startswith(magic)), None)


@dataclass
class _Watched:
    """A file as it lies on disk, which reports how far it was read."""

    file: IO[bytes]
    total: int
    progress: Progress
    done: int = 0
    closed: bool = False

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.done += len(data)
        self.progress(self.done, self.total)
        return data

    def close(self) -> None:
        self.closed = True
        self.file.close()


def opened(path: Path, progress: Progress = unwatched) -> Any:
    """Return the file opened for reading as an Arrow stream, decompressed if need be."""
    import pyarrow

    raw = pyarrow.PythonFile(_Watched(path.open("rb"), path.stat().st_size, progress), mode="r")
    codec = codec_of(path)
    return pyarrow.CompressedInputStream(raw, codec) if codec else raw


def _blocks(path: Path, layout: Layout, progress: Progress) -> Iterator[bytes]:
    """Yield the file in pieces of whole lines. Raises InputError for an endless line.

    Arrow's own streaming reader reads eight blocks ahead, in threads of its own: more memory, and a
    crash when Python ends while such a thread waits for a Python file.
    """
    rest = b""
    with readable(path), opened(path, progress) as stream:
        while data := bytes(stream.read(BLOCK_BYTES)):
            rest += data
            end = rest.rfind(b"\n") + 1 or rest.rfind(b"\r") + 1
            if end:
                yield _plain(rest[:end], layout)
                rest = rest[end:]
            elif len(rest) > LONGEST_LINE:
                raise InputError(f"a line is longer than {LONGEST_LINE / 1e6:.1f} MB")
    if rest:
        yield _plain(rest, layout)


def _plain(block: bytes, layout: Layout) -> bytes:
    """Return the block with tabs for `::`, and line feeds where lines end in carriage returns alone."""
    if b"\n" not in block:
        block = block.replace(b"\r", b"\n")
    return block.replace(b"::", b"\t") if layout.delimiter == "::" else block


def _in_utf8(block: bytes) -> bytes:
    """Return the block with each byte that is not UTF-8 replaced by a letter of its own.

    Arrow prints a traceback when it tells of a misshapen line in another code page. Equal keys stay equal
    and unlike ones unlike, which is all that counts of them; the letters lie in Unicode's private range.
    """
    if block.isascii():
        return block
    try:
        block.decode()
        return block
    except UnicodeDecodeError:
        escaped = block.decode("utf-8", "surrogateescape")
        return escaped.translate({0xDC00 + byte: 0xF700 + byte for byte in range(128, 256)}).encode()


def _filled_lines(block: bytes) -> int:
    """Return the lines of a block that hold something: the CSV reader skips the others."""
    text = np.frombuffer(block + b"\n", np.uint8)
    ends = np.flatnonzero(text == LINE_FEED)
    lengths = np.diff(ends, prepend=-1) - 1
    only_return = (lengths == 1) & (text[np.maximum(ends - 1, 0)] == CARRIAGE_RETURN)
    return int(np.count_nonzero((lengths > 0) & ~only_return))


@dataclass
class _Parser:
    """Parses blocks of whole lines; keys stay the bytes that were written."""

    layout: Layout
    names: tuple[str, ...]
    columns: tuple[str, ...]
    broken: BrokenCounter
    lines: int = 0

    def batches(self, block: bytes) -> Iterator[Any]:
        """Yield the block's rows; count what is broken in it.

        The reader does not report lines that it takes for parts of a quoted value: that more lines
        hold something than there are rows shows them.
        """
        filled = _filled_lines(block)
        if not filled:
            self.lines += block.count(b"\n")
            return
        misshapen = self.broken.misshapen
        table = self._table(block)
        swallowed = filled - table.num_rows - (self.broken.misshapen - misshapen)
        if swallowed > 0:
            self.broken.add("lines lie inside a quoted value: a quote may be left open", swallowed)
        self.lines += block.count(b"\n")
        yield from table.to_batches()

    def _table(self, block: bytes) -> Any:
        import pyarrow
        from pyarrow import csv

        kinds = {name: pyarrow.binary() for name in self.names}
        return csv.read_csv(
            pyarrow.BufferReader(block),
            read_options=_one_block(block, self.names),
            parse_options=csv.ParseOptions(
                delimiter=self.layout.single_delimiter, invalid_row_handler=self._skip
            ),
            convert_options=csv.ConvertOptions(column_types=kinds, include_columns=list(self.columns)),
        )

    def _skip(self, row: Any) -> str:
        return self.broken.skip(row, self.lines)


def _one_block(block: bytes, names: tuple[str, ...] | None) -> Any:
    from pyarrow import csv

    return csv.ReadOptions(
        block_size=len(block) + 1, use_threads=False, column_names=list(names) if names else None
    )


def open_text(path: Path, layout: Layout) -> ArrowFile:
    """Return the text file with its columns; without a header they are named by the layout, or
    `column_1`, `column_2`, ...
    """
    names = layout.names or _header(path, layout)

    def stream(columns: tuple[str, ...], broken: BrokenCounter, progress: Progress) -> Iterator[Any]:
        parser, header = _Parser(layout, names, columns, broken), layout.header
        again: re.Pattern[bytes] | None = None
        for block in _blocks(path, layout, progress):
            if header:
                first = _first_line(block)
                parser.lines, block, header = first.count(b"\n"), block[len(first) :], False
                again = _repeated(first)
            block = _in_utf8(again.sub(b"", block) if again else block)
            with readable(path):
                yield from parser.batches(block)

    return ArrowFile(names, stream, layout.keys(names), layout.events(names))


def _repeated(first: bytes) -> re.Pattern[bytes]:
    """Return what finds the header once more: files that were joined have it several times."""
    header = re.escape(first.strip(b"\r\n").removeprefix(BYTE_ORDER))
    return re.compile(rb"^(?:" + BYTE_ORDER + rb")?" + header + rb"(?=\r?$)", re.MULTILINE)


def _first_line(block: bytes) -> bytes:
    """Return the first line that holds something, with the empty ones before it."""
    start = len(block) - len(block.lstrip(b"\r\n"))
    return block[: block.find(b"\n", start) + 1 or len(block)]


def _header(path: Path, layout: Layout) -> tuple[str, ...]:
    """Return the column names as the file has them. Raises InputError for a name given twice."""
    from pyarrow import BufferReader, csv

    line = _first_line(next(_blocks(path, layout, unwatched)))
    parsing = csv.ParseOptions(delimiter=layout.single_delimiter)
    with readable(path):
        names = tuple(csv.read_csv(BufferReader(line), _one_block(line, None), parsing).schema.names)
    if not layout.header:
        return tuple(f"column_{place}" for place in range(1, len(names) + 1))
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise InputError(f'the header names column "{twice}" twice', Where(str(path), line=1))
    return names
