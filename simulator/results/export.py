"""Result files: JSON and Parquet, each complete or not there, the same bytes for the same run."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LIBRARIES = ("recscale", "numpy", "scipy", "simpy", "pandas", "pyarrow", "pydantic", "networkx")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` to write to; the file takes its name when the block succeeds.

    Folders that are missing are made. Raises OSError when that, or the writing, is not possible.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.stem}.{os.getpid()}.unfinished{path.suffix}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


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
