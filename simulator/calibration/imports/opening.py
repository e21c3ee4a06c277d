"""Files of others, opened with care: compressed or not, never a pipe, never more than a limit at once."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from simulator.errors import InputError, Where, regular_file

LONGEST_LINE = 1 << 20
MOST_BYTES = 64 << 30  # unpacked; a gzip file may grow a thousandfold


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Give the bytes of a regular file, unpacked when it is gzip.

    Raises InputError for what is no file, empty, or damaged as gzip, also while the block reads.
    """
    where = Where(str(path))
    try:
        with regular_file(path).open("rb") as file:
            head = file.peek(2)[:2]
            if not head:
                raise InputError("is empty", where)
            packed = head == b"\x1f\x8b"
            yield cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError("is a damaged or cut-off gzip file", where) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where) from None


def lines(path: Path, what: str) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text) of the lines of a text file; `what` was expected there.

    Raises InputError for binary files, and for lines or files beyond all reason.
    """
    total = 0
    with opened(path) as file:
        for number in range(1, 1 << 62):
            line = file.readline(LONGEST_LINE)
            if not line:
                return
            total += len(line)
            _check(line, total, Where(str(path), number), what)
            yield number, line.decode("utf-8", "replace").rstrip("\r\n")


def _check(line: bytes, total: int, where: Where, what: str) -> None:
    if b"\0" in line:
        raise InputError(f"is a binary file, not {what}", Where(where.file))
    if len(line) == LONGEST_LINE or total > MOST_BYTES:
        raise InputError(f"a line of a megabyte or more: that is not {what}", where)
