"""Where points run: processes of this machine, or a Dask scheduler; both behind `concurrent.futures`."""

import multiprocessing
import os
import threading
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing.connection import wait
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

    def start(self) -> Executor:
        """Return a pool of processes."""
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.count, mp_context=context, initializer=end_with_parent)


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
