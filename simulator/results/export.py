"""Result files: JSON and Parquet, each complete or not there, the same bytes for the same run."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any

from simulator.errors import InputError, Where

LIBRARIES = ("recscale", "numpy", "scipy", "simpy", "pandas", "pyarrow", "pydantic", "networkx")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; the file takes its name when the block succeeds.

    Folders that are missing are made. A pipe, a device and a link stay what they are: the finished file is
    written into them. Raises InputError for a directory, OSError, naming `path`, when the writing fails.
    """
    if path.is_dir():
        raise InputError("is a directory; the name of a file is needed", Where(str(path)))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and (path.is_symlink() or not path.is_file()):
        with TemporaryDirectory() as folder, _named(path, Path(folder, f"finished{path.suffix}")) as finished:
            yield finished
            with finished.open("rb") as source, path.open("wb") as target:
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
