"""One sweep at a time in a folder: a file names who is at work there."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simulator.errors import InputError, Where, printable

NAME = ".in_use"
LONGEST = 400


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold `folder` for the block. Raises InputError naming the process that holds it already.

    The system lets go of the lock when a process ends, however it ends; what one that was killed has left
    behind is taken over. Where files cannot be locked (Windows, some network disks), two sweeps are not kept
    apart.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = _taken(folder)
    try:
        yield
        if descriptor is not None:
            (folder / NAME).unlink(missing_ok=True)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _taken(folder: Path) -> int | None:
    """Return the open lock of `folder`, with who holds it; None where nothing can be written anyway."""
    while True:
        try:
            descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        except PermissionError:
            return None
        if not _locked(descriptor):
            told = _holder(descriptor)
            os.close(descriptor)
            raise InputError(f"another sweep is at work there: {told}", Where(str(folder)))
        if _is_at(descriptor, folder / NAME):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
            return descriptor
        os.close(descriptor)  # its holder has just removed it


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _locked(descriptor: int) -> bool:
    """Lock the file if nobody else has; return whether nobody had."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True


def _holder(descriptor: int) -> str:
    told = os.pread(descriptor, LONGEST, 0).decode("utf-8", "replace").strip()
    return printable(told) or "a process that has not said which"
