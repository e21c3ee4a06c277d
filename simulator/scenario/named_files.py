"""What the files hold that a scenario names: key logs, curves, graphs; they decide results as it does."""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from simulator.errors import InputError
from simulator.scenario.places import inside

FIELD = "file"  # every part of a scenario that names one calls it so
CHUNK = 1 << 20


def named_files(part: Any) -> Iterator[str]:
    """Yield the files that a scenario, or a part of one, names, as they are written there."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == FIELD and isinstance(value, str):
                yield value
            else:
                yield from named_files(value)
    elif isinstance(part, list | tuple):
        for item in part:
            yield from named_files(item)


def contents(part: Any, folder: Path) -> dict[str, str]:
    """Return a digest of each file that `part` names; the files lie in `folder`.

    A file that is not there, or lies elsewhere, has none: what builds the part refuses it.
    """
    found = ((name, _digest_of(folder, name)) for name in sorted(set(named_files(part))))
    return {name: digest for name, digest in found if digest}


def _digest_of(folder: Path, name: str) -> str:
    try:
        path = inside(folder, name)
        state = path.stat()
        return _digest(path, state.st_mtime_ns, state.st_size) if path.is_file() else ""
    except (InputError, OSError, ValueError):  # ValueError: text that is no name of a file
        return ""


@lru_cache(maxsize=1024)
def _digest(path: Path, changed_ns: int, size: int) -> str:
    """Return the digest of a file, read once for each state of it."""
    found = hashlib.blake2b(digest_size=12)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()
