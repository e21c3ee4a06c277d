"""Result files: JSON and Parquet, each complete or not there, the same bytes for the same run."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from errno import ENXIO
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from simulator.errors import InputError, Where

_kept: ContextVar[tuple[Path, ...]] = ContextVar("_kept", default=())
LIBRARIES = ("recscale", "numpy", "scipy", "simpy", "pandas", "pyarrow", "pydantic", "networkx")
READER_COMES_WITHIN_S = 1.0


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; the file takes its name when the block succeeds.

    Folders that are missing are made. A pipe, a device and a link stay what they are: the finished file is
    written into them. Raises InputError for a directory, for a pipe that nobody reads from and for a file
    that is being kept; OSError, naming `path`, when the writing fails.
    """
    if path.is_dir():
        raise InputError("is a directory; the name of a file is needed", Where(str(path)))
    refuse_kept(path)
    if path.parent.exists() and not path.parent.is_dir():
        raise InputError("is a file; a folder is needed", Where(str(path.parent)))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and (path.is_symlink() or not path.is_file()):
        with (
            TemporaryDirectory() as folder,
            _pipe(path) as pipe,
            _named(path, Path(folder, f"finished{path.suffix}")) as finished,
        ):
            yield finished
            with finished.open("rb") as source, pipe or path.open("wb") as target:
                copyfileobj(source, target)
        return
    unfinished = path.with_name(f".{path.stem[:40]}.{os.getpid()}.unfinished{path.suffix}")
    try:
        with _named(path, unfinished):
            yield unfinished
            os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def keeping(files: Iterable[Path]) -> Iterator[None]:
    """Keep what is read: inside the block nothing is written over these files."""
    before = _kept.set(tuple(files))
    try:
        yield
    finally:
        _kept.reset(before)


def refuse_kept(path: Path) -> None:
    """Raise InputError when `path` is one of the files being kept, under whatever name or link."""
    for file in _kept.get():
        if _are_same(file, path):
            raise InputError("is what this command reads; write to another file", Where(str(path)))


def _are_same(one: Path, other: Path) -> bool:
    try:
        return one.is_file() and one.samefile(other)
    except (OSError, ValueError):  # one of them is not there
        return False


@contextmanager
def _pipe(path: Path) -> Iterator[BinaryIO | None]:
    """Open the named pipe at `path`, or give None for what is none.

    It is opened before there is anything to write, so that whoever reads from it waits for that. Raises
    InputError where nobody does.
    """
    if not path.is_fifo():
        yield None
        return
    with os.fdopen(_with_reader(path), "wb") as pipe:
        yield pipe


def _with_reader(path: Path) -> int:
    """Return the descriptor of a pipe that somebody reads from, at the latest a moment from now.

    A plain opening would wait for a reader that may never come.
    """
    end = time.monotonic() + READER_COMES_WITHIN_S
    while True:
        try:
            number = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != ENXIO:
                raise
        else:
            os.set_blocking(number, True)
            return number
        if time.monotonic() > end:
            raise InputError("is a pipe that nobody reads from", Where(str(path)))
        time.sleep(0.02)


@contextmanager
def _named(path: Path, temporary: Path) -> Iterator[Path]:
    """Blame `path`, which people know, for what goes wrong with the temporary one."""
    try:
        yield temporary
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno, reason, str(path)) from error
    except InputError as error:
        if error.where.file != str(temporary):
            raise
        raise InputError(error.problem, Where(str(path))) from None


def write_json(path: Path, data: Any) -> None:
    """Write `data` as indented JSON, its keys in the order given. Raises OSError."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY
    with replacing(path) as unfinished:
        unfinished.write_bytes(orjson.dumps(data, option=options))


def write_parquet(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns of equal length (arrays or lists); their names carry the units. Raises OSError."""
    import pyarrow
    from pyarrow import parquet

    with replacing(path) as unfinished:
        parquet.write_table(pyarrow.table(dict(columns)), unfinished, compression="zstd", version="2.6")


def versions() -> dict[str, str]:
    """Return the versions of Python, of this distribution and of the libraries that numbers pass through."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a bare checkout
            continue
    return found
