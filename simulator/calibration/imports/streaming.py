"""JSON files of any size, one element at a time: memory holds one element, never the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from simulator.calibration.imports.opening import MOST_BYTES, opened
from simulator.errors import InputError, Where

CHUNK = 1 << 16
LARGEST = 4 << 20  # bytes of one element, or between two of them; parsers pay for long texts squared
PRELUDE = 8 << 20  # bytes before the first: a trace of many ranks lists all their groups there
DEEPEST = 10_000  # brackets opened and not closed since an element; parsers pay for depth squared


def elements(path: Path, lists: tuple[str, ...], what: str) -> Iterator[Any]:
    """Yield the elements of the first of `lists` (names at the top level) that a JSON object has.

    A file that is itself a list yields its elements. Raises InputError, naming `what` was expected, for
    files without such a list, with elements larger than a megabyte or two, cut short, or not JSON.
    """
    import ijson

    prefix = _prefix(path, lists, what)
    with opened(path) as file, _explained(path, what):
        metered = _Metered(file, path, what)
        metered.since = -PRELUDE
        for element in ijson.items(metered, prefix, buf_size=CHUNK, use_float=True):
            metered.since = metered.depth = 0
            yield element


def header(path: Path, lists: tuple[str, ...], what: str) -> dict[str, Any]:
    """Return the single values (texts and numbers) that stand before the list, by dotted path."""
    import ijson

    found: dict[str, Any] = {}
    with opened(path) as file, _explained(path, what):
        metered = _Metered(file, path, what)
        metered.since = -PRELUDE
        for prefix, event, value in ijson.parse(metered, buf_size=CHUNK, use_float=True):
            if event == "start_array" and prefix in ("", *lists):
                break
            if event in ("string", "number") and len(found) < CHUNK:
                found.setdefault(prefix, value)
    return found


def _prefix(path: Path, lists: tuple[str, ...], what: str) -> str:
    """Return ijson's name of the elements: the top-level list, or that of the first of `lists` there is."""
    import ijson

    with opened(path) as file, _explained(path, what):
        metered = _Metered(file, path, what)
        metered.since = -PRELUDE
        for prefix, event, _ in ijson.parse(metered, buf_size=CHUNK, use_float=True):
            if event == "start_array" and prefix in ("", *lists):
                return f"{prefix}.item" if prefix else "item"
    raise InputError(f"is JSON, but not {what}: it has no {' or '.join(lists)}", Where(str(path)))


class _Metered:
    """A file that is read in chunks and refuses to give too much between two elements."""

    def __init__(self, file: BinaryIO, path: Path, what: str) -> None:
        self._file, self._where, self._what = file, Where(str(path)), what
        self.since = self.depth = self._total = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next chunk. Raises InputError past the limits."""
        chunk = self._file.read(CHUNK if size < 0 else min(size, CHUNK))
        self.since += len(chunk)
        self._total += len(chunk)
        self.depth += sum(map(chunk.count, (b"[", b"{"))) - sum(map(chunk.count, (b"]", b"}")))
        if self.since > LARGEST + CHUNK:
            problem = f"is not {self._what}: no element ends within {LARGEST >> 20} MiB"
            raise InputError(problem, self._where)
        if self.depth > DEEPEST:
            raise InputError(f"is not {self._what}: it is nested too deeply", self._where)
        if self._total > MOST_BYTES:
            raise InputError(f"is larger than {MOST_BYTES >> 30} GiB", self._where)
        return chunk


@contextmanager
def _explained(path: Path, what: str) -> Iterator[None]:
    """Turn the parser's troubles into one line."""
    import ijson

    try:
        yield
    except ijson.JSONError as error:
        short = "EOF" in str(error) or "ncomplete" in str(error)
        problem = "is cut short: it ends inside a value" if short else f"is not JSON, so not {what}"
        raise InputError(problem, Where(str(path))) from None
    except (ValueError, RecursionError):
        raise InputError(
            f"is damaged: a number or a text that cannot be read, in {what}", Where(str(path))
        ) from None
