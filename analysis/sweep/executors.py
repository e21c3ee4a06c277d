"""Where points run: processes of this machine, or a Dask scheduler; both behind `concurrent.futures`."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, Protocol

from simulator.errors import InputError


class Workers(Protocol):
    """Something that can start an executor, more than once if one breaks."""

    @property
    def count(self) -> int:
        """How many points run at the same time."""

    def start(self) -> Executor:
        """Return a fresh executor."""


class LocalProcesses:
    """`count` processes of this machine, started afresh so that they share no state with ours."""

    def __init__(self, count: int) -> None:
        """Take the number of processes."""
        self.count = count

    def start(self) -> "_Pool":
        """Return a pool of processes."""
        context = multiprocessing.get_context("spawn")
        return _Pool(self.count, mp_context=context, initializer=end_with_parent)


class _Pool(ProcessPoolExecutor):
    """A pool whose processes leave interrupts to the one that started them, and that can be ended at once."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send work to a process, and start one if all are at work."""
        with _without_interrupts():
            return super().submit(fn, *args, **kwargs)

    def end(self) -> None:
        """Kill the processes, whatever they are at."""
        for process in list((self._processes or {}).values()):
            process.kill()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold interrupts back for a moment; processes started in it never see one, on any terminal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class LastingProcesses(Executor):
    """Local processes that start again after one of them was killed; what was with them is lost and told."""

    def __init__(self, count: int) -> None:
        """Take the number of processes."""
        self._processes = LocalProcesses(count)
        self._pool = self._processes.start()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send work to a process."""
        try:
            return self._pool.submit(fn, *args, **kwargs)
        except BrokenExecutor:
            self._pool.shutdown(wait=False)
            self._pool = self._processes.start()
            return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the processes; after an error or an interrupt at once, since nobody waits for their answers."""
        if error is not None:
            self._pool.end()
        self.shutdown(wait=error is None, cancel_futures=error is not None)


def end_with_parent() -> None:
    """Make this process end when the one that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)  # nobody is left to read an error, and the main thread waits for work for ever


class DaskCluster:
    """The workers of a running Dask scheduler; the scheduler sends work of a lost worker to another."""

    def __init__(self, address: str) -> None:
        """Connect to `address` (`tcp://HOST:PORT`). Raises InputError when that is not possible."""
        self.client = _connected(address)
        self.count = max(1, sum(self.client.nthreads().values()))

    def start(self) -> Executor:
        """Return an executor on the scheduler."""
        executor: Executor = self.client.get_executor(pure=False, retries=3)
        return executor


def _connected(address: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError('--dask needs the extra "cluster": pip install "recscale[cluster]"') from None
    try:
        client = _client(distributed, address)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"--dask: no scheduler answers at {address!r}: {reason}") from None
    _check_workers(client, address)
    return client


def _client(distributed: Any, address: str) -> Any:
    return distributed.Client(address, timeout=10, set_as_default=False)


def _check_workers(client: Any, address: str) -> None:
    """Refuse a cluster without workers, and one whose workers lack this program in this version."""
    from simulator.results.export import versions

    if not client.nthreads():
        raise InputError(f"--dask: the scheduler at {address!r} has no workers")
    try:
        found = client.run(versions)
    except Exception as error:  # whatever a remote machine lacks
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"--dask: the workers cannot import recscale: {reason}") from None
    mine = versions()
    for worker, theirs in found.items():
        other = [name for name in ("recscale", "numpy") if theirs.get(name) != mine.get(name)]
        if other:
            told = ", ".join(f"{name} {theirs.get(name)}, here {mine.get(name)}" for name in other)
            raise InputError(f"--dask: worker {worker} has {told}; results would depend on the machine")
