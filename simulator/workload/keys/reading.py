"""What the readers of all formats share: broken lines, errors, progress, and opened files."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Where
from simulator.quantities import IntArray
from simulator.workload.keys.statistics import BrokenLines

BATCH_ROWS = 1 << 17
Progress = Callable[[int, int], None]  # called with what is done and the total, in one unit


def unwatched(done: int, total: int) -> None:
    """Ignore the progress."""


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

    def skip(self, row: Any, lines: int) -> str:
        """Count a row that has too few or too many fields; `lines` lie before what is parsed."""
        line = f"line {lines + row.number}: " if row.number is not None else ""
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
    except InputError as error:
        raise InputError(error.problem, Where(str(path), error.where.line)) from None
    except (OSError, zlib.error, UnicodeDecodeError, pyarrow.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        if isinstance(error, UnicodeDecodeError):
            reason = "it is not text in UTF-8"
        elif "truncated" in reason.lower():
            reason = "the compressed file is cut off before its end"
        elif "straddl" in reason:
            reason = "a line is longer than the reader's block of a few MB, or a quote is left open"
        raise InputError(f"cannot be read as a key log: {reason}", Where(str(path))) from None


@dataclass(frozen=True)
class EventColumns:
    """The columns of a log of events that were recognised by their names."""

    user: str
    item: str
    time: str | None


@dataclass(frozen=True)
class ArrowFile:
    """A file of samples or events, one per row; `names` are its columns.

    `stream(columns, broken, progress)` reads it piece by piece. `keys` are the columns that hold
    keys in a known layout, `events` those of a recognised log of events; None where unknown.
    """

    names: tuple[str, ...]
    stream: Callable[[tuple[str, ...], BrokenCounter, Progress], Iterator[Any]] = field(compare=False)
    keys: tuple[str, ...] | None = None
    events: EventColumns | None = None


@dataclass(frozen=True, eq=False)
class BagPart:
    """Consecutive samples of one table: `lengths` keys per sample, from sample `start` on.

    `indices` has shape (sum of lengths,).
    """

    table: str
    start: int
    lengths: IntArray
    indices: IntArray


@dataclass(frozen=True)
class BagFile:
    """A file of bags of keys, table after table; `stream(tables, progress)` reads those of `tables`."""

    names: tuple[str, ...]
    stream: Callable[[tuple[str, ...], Progress], Iterator[BagPart]] = field(compare=False)


KeyFile = ArrowFile | BagFile
