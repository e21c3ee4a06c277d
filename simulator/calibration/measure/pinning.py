"""Rank i belongs on core i mod cores: two ranks that meet on one core take exactly twice as long."""

import contextlib
import ctypes
import os
import platform
from pathlib import Path


def pin(rank: int) -> int | None:
    """Pin this process to a core by its rank; return the core, or None where that is not possible."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    usable = sorted(os.sched_getaffinity(0))
    core = usable[rank % len(usable)]
    os.sched_setaffinity(0, {core})
    return core


def apart(nice: int = -20) -> bool:
    """Give this process and its children a scheduling group of their own, at priority `nice`.

    With autogroups, `nice` counts only among tasks started from one terminal; the priority of such a
    group as a whole is set in `/proc/self/autogroup`. Returns whether the kernel let us.
    """
    with contextlib.suppress(OSError):
        os.setsid()
    try:
        Path("/proc/self/autogroup").write_text(str(nice))
    except OSError:
        return False
    return True


SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
SLICE_NS = 100_000


class _Attributes(ctypes.Structure):
    """The kernel's `struct sched_attr`, first version."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def short_turns(nanoseconds: int = SLICE_NS) -> bool:
    """Ask for short turns for the calling thread, which lets it run as soon as it wakes up.

    Otherwise a thread that computes keeps the core to the end of its turn (about 3 ms), and a message that
    has come waits as long. Linux 6.12 and later; returns whether the kernel took it.
    """
    number = SCHED_SETATTR.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return False
    told = _Attributes(size=ctypes.sizeof(_Attributes), runtime=nanoseconds)
    return bool(ctypes.CDLL(None).syscall(number, 0, ctypes.byref(told), 0) == 0)
