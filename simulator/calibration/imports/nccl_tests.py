"""The output of nccl-tests and rccl-tests, in any of its layouts, with whatever a log puts around it.

A row is `size count type [redop] [root]`, then time, algbw, busbw and, in most releases, a column of
errors, once or twice (out of place, in place). Which columns there are follows from the numbers: the
size over the time is the algbw (doc/PERFORMANCE.md of nccl-tests).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from simulator.calibration.imports.collective_rows import (
    MOST_ROWS,
    Facts,
    Found,
    Log,
    Row,
    is_operation,
    whole,
)
from simulator.calibration.imports.opening import lines
from simulator.errors import InputError, Where

WHAT = "the output of nccl-tests or rccl-tests"
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ROW = re.compile(r"(?<![\w.:/-])(\d+)\s+(\d+)\s+([a-z]\w*)\s+(\S.*)$")
_HEADER = re.compile(r"\bsize\s+count\s+type\b.*\balgbw\b")
_DEVICE = re.compile(
    r"Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*)"
)
_PROGRAM = re.compile(r"([A-Za-z_]+?)_perf(?:_mpi)?\b")
_LIBRARY = re.compile(r"\b([NR]CCL)\s+version\s*:?\s*([0-9][\w.]*)|nccl-library=(\d+)")
_RUN = re.compile(r"#\s*nThread\s+(\d+)\s+nGpus\s+(\d+)")
_BLANK = "N/A"
_ROUNDING = 0.006  # GB/s, of two printed decimals
_TOLERANCE = 0.03  # of times printed with two digits
FEWEST = 3  # numbers of a row: time, algbw, busbw


@dataclass
class _State:
    """What the log has said so far about the table that comes next."""

    program: str | None = None
    library: str = ""
    devices: dict[int, tuple[str, str]] = field(default_factory=dict)

    def facts(self) -> Facts:
        hosts = {host for host, _ in self.devices.values()}
        names = {name for _, name in self.devices.values()}
        ranks = max(self.devices) + 1 if self.devices else None
        accelerator = names.pop() if len(names) == 1 else ""
        return Facts(self.program, ranks, len(hosts) or None, accelerator, self.library)


def read_nccl_tests(path: str) -> Log:
    """Return the tables of a log. Raises InputError when there is none, or it is no text."""
    reader = _Reader(path)
    for number, text in lines(Path(path), WHAT):
        reader.take(number, _ESCAPES.sub("", text))
    return reader.log()


class _Reader:
    """Goes through a log line by line; `take` each of them, then ask for the `log`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._state = _State()
        self._tables: list[Found] = []
        self._rows: list[Row] = []
        self._start = Where(path)
        self._total = self._damaged = 0
        self._named = _named_in(path)

    def take(self, number: int, text: str) -> None:
        """Read one line."""
        match = _ROW.search(text)
        if _HEADER.search(text):
            self._close()
            self._start = Where(self._path, number)
        elif match and not text.lstrip().startswith("#"):
            self._row(match, Where(self._path, number))
        else:
            self._said(text, Where(self._path, number))

    def log(self) -> Log:
        """Return what was found."""
        self._close()
        if not self._tables:
            raise InputError(
                f"has no row of measurements: it is not {WHAT}, or was cut short", Where(self._path)
            )
        cut = f"{self._damaged} damaged lines were left out"
        return Log(tuple(self._tables), (cut,) if self._damaged else ())

    def _row(self, match: re.Match[str], where: Where) -> None:
        size = whole(match[1], where)
        found = row(size, match[3], match[4].split())
        if found is None:
            self._damaged += size > 0
            return
        self._rows.append(found)
        self._total += 1
        if self._total > MOST_ROWS:
            raise InputError(f"more than {MOST_ROWS:,} rows", Where(self._path))

    def _said(self, text: str, where: Where) -> None:
        state = self._state
        if _RUN.search(text):
            self._close()
            state.devices = {}
        if device := _DEVICE.search(text):
            state.devices[whole(device[1], where)] = device[2], device[3].strip()
        if library := _LIBRARY.search(text):
            self._close()
            name, number, code = library.groups()
            state.library = f"{name}{number.split('+')[0]}" if name else release(whole(code, where))
        if program := _program(text):
            self._close()
            state.program = program

    def _close(self) -> None:
        """End the table that is being read."""
        if self._rows:
            self._tables.append(Found(self._state.facts(), tuple(self._rows), self._start, self._named))
        self._rows = []


def row(size: int, dtype: str, words: Sequence[str]) -> Row | None:
    """Return a row from what follows the type, or None where no reading of the numbers is consistent."""
    numbers = list(_numbers(words[1:] if words and not _is_number(words[0]) else words))
    for root in (0, 1):
        for width in (4, 3):
            halves = _halves(numbers[root:], width)
            if halves and all(_agrees(size, half) for half in halves):
                return _row_of(size, dtype, halves)
    return None


def _halves(numbers: list[str], width: int) -> list[list[str]]:
    if len(numbers) not in (width, 2 * width):
        return []
    return [numbers[at : at + width] for at in range(0, len(numbers), width)]


def _row_of(size: int, dtype: str, halves: list[list[str]]) -> Row:
    out, *rest = halves
    wrong = out[3] if len(out) > FEWEST and re.fullmatch(r"\d+", out[3]) else ""
    return Row(size, float(out[0]), wrong, float(rest[0][0]) if rest else None, dtype)


def _agrees(size: int, half: Sequence[str]) -> bool:
    """Whether time and algbw belong together; printed times may have two digits only."""
    if _BLANK in half[:FEWEST]:
        return False
    time, bandwidth = float(half[0]), float(half[1])
    if time <= 0:
        return False
    expected = size / time / 1e3
    return abs(bandwidth - expected) <= _ROUNDING + _TOLERANCE * expected


def _numbers(words: Sequence[str]) -> Iterator[str]:
    """Yield numbers up to the first word that is none, such as a time stamp."""
    for word in words:
        if not (_is_number(word) or word == _BLANK):
            return
        yield word


def _is_number(word: str) -> bool:
    return re.fullmatch(r"[-+]?\d+(\.\d*)?(e[-+]?\d+)?", word) is not None


def _program(text: str) -> str | None:
    found = _PROGRAM.search(text)
    return found[1] if found and is_operation(found[1].strip("_")) else None


def _named_in(path: str) -> str | None:
    """Return a collective that the name of the file tells."""
    stem = Path(path).name.lower().replace("-", "_")
    names = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "all_to_all", "sendrecv", "broadcast")
    return next((name for name in names if name in stem), None)


def release(code: int) -> str:
    """Return NCCL's version from its number: 22606 is 2.26.6, 2804 is 2.8.4."""
    major, rest = divmod(code, 10_000) if code >= 10_000 else divmod(code, 1000)
    return f"NCCL{major}.{rest // 100}.{rest % 100}"
