"""One command, run in this process within limits of time and memory; and what no answer may ever show."""

import io
import resource
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from analysis.cli.running import run

LONGEST_S = 10.0  # of this process's CPU: other work on the machine does not count
MOST_BYTES = 1 << 30  # more than before
SLACK_BYTES = 1 << 30  # address space is reserved without being used
CODES = (0, 1, 2)


class TooLongError(BaseException):
    """The alarm; no handler of ordinary errors may swallow it."""


@dataclass(frozen=True)
class Answer:
    """What a command said, and what it took."""

    code: int
    out: str
    err: str
    cpu_s: float
    grown_bytes: int

    def faults(self) -> list[str]:
        """Say what is wrong with this answer whatever the input was; nothing for a good one."""
        told = self.err.splitlines()
        found = {
            f"exit code {self.code}": self.code not in CODES,
            "a traceback": "Traceback (most recent call last)" in self.out + self.err,
            "a warning of Python": "Warning:" in self.out + self.err,
            "a line of others on standard error": any(not x.startswith("recscale: ") for x in told),
            "no reason": self.code != 0 and not told,
            "memory ran out": "not enough memory" in self.err,
            f"{self.cpu_s:.1f} s": self.cpu_s > LONGEST_S,
            f"{self.grown_bytes / 1e6:.0f} MB": self.grown_bytes > MOST_BYTES,
        }
        return [fault for fault, is_so in found.items() if is_so]


class InThisProcess(Executor):
    """Stands for a pool of processes: runs tasks at once, here, so that limits hold for them as well."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take whatever a pool of processes takes."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the task and return its result."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def judged(words: Sequence[str]) -> Answer:
    """Run one command line; warnings are errors, pools are this process, too much time or memory ends it."""
    with warnings.catch_warnings(), _limits():
        warnings.simplefilter("error")
        return answered(words)


def answered(words: Sequence[str]) -> Answer:
    """Run one command line in this process, with what it says caught; pools are this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before, begun = _peak_bytes(reset=True), time.process_time()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        mock.patch("analysis.sweep.executors.ProcessPoolExecutor", InThisProcess),
    ):
        try:
            code = run(words)
        except TooLongError:
            code = 124
    taken, grown = time.process_time() - begun, _peak_bytes() - before
    return Answer(code, _text(out), _text(err), taken, grown)


def _text(stream: io.TextIOWrapper) -> str:
    return stream.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined, no-any-return]


@contextmanager
def _limits() -> Iterator[None]:
    """End what runs longer, and give no memory to what takes more."""

    def alarm(number: int, frame: Any) -> None:
        raise TooLongError

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_virtual_bytes() + MOST_BYTES + SLACK_BYTES, hard))
    previous = signal.signal(signal.SIGPROF, alarm)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S + 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _virtual_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _peak_bytes(reset: bool = False) -> int:
    """Most memory that was resident since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
