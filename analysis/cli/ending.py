"""Ending at once when asked to: Ctrl-C and SIGTERM stop any command within seconds, and all that it started.

A signal is raised as an exception in the main thread, so that what is open is closed. Where that thread is
deep in compiled code, or waits for somebody, a second thread ends the process `GRACE_S` later all the same.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
GRACE_S = 2.0
SHOW_CURSOR = "\x1b[?25h"

_caught: list[int] = []
_over = threading.Event()


def caught() -> int | None:
    """Return the number of the signal that asked this process to end; None where none did."""
    return _caught[0] if _caught else None


def word(number: int | None) -> str:
    """Return what is said of a signal, or of an interrupt that came without one."""
    return WORDS.get(signal.Signals(number or signal.SIGINT), "interrupted")


@contextmanager
def on_signals(say: Callable[[int], object]) -> Iterator[None]:
    """Raise KeyboardInterrupt at the first signal; should that not end the block in time, `say` it and leave.

    A signal that whoever started us has told us to ignore stays ignored.
    """
    for number in WORDS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _raise)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_insist, args=(reader, say), daemon=True).start()
    try:
        yield
    finally:
        _over.set()


def _raise(number: int, frame: FrameType | None) -> None:
    if not _caught:  # the first: what it set off is not to be interrupted again
        _caught.append(number)
        raise KeyboardInterrupt


def _insist(reader: int, say: Callable[[int], object]) -> None:
    """Wait for a signal, then give the main thread time to end by itself, then end the process for it.

    The number comes through the pipe as soon as the signal does, also while the main thread runs no Python.
    """
    numbers: set[int] = set()
    while not numbers & set(WORDS):
        numbers = set(os.read(reader, 64))
    if not _over.wait(GRACE_S):
        number = min(numbers & set(WORDS))
        say(number)
        leave(128 + number)


def leave(code: int) -> None:
    """End this process and all that it has started, without waiting for any of them."""
    if sys.stderr.isatty():
        with suppress(OSError):
            os.write(sys.stderr.fileno(), SHOW_CURSOR.encode())
    for child in descendants(os.getpid()):
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
    os._exit(code)


def descendants(process: int) -> list[int]:
    """Return the processes that `process` started, those that these started, and so on."""
    try:
        lists = [path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:
        lists = []
    found = [int(child) for numbers in lists for child in numbers]
    if process == os.getpid() and not found:  # a system without /proc
        found = [child.pid for child in multiprocessing.active_children() if child.pid]
    return found + [each for child in found for each in descendants(child)]
