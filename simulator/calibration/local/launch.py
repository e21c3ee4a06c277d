"""Starts the ranks of a job on this machine and collects what they found."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import simulator
from simulator.calibration.local.job import SUBSTRATES, Job
from simulator.calibration.measure.environment import cores, for_ranks
from simulator.calibration.measure.links import Links, Loopback, Placed
from simulator.calibration.measure.sockets import WENT_AWAY
from simulator.calibration.train.plans import needs_servers
from simulator.errors import InfeasibleError, InputError, did_you_mean

RANK = "simulator.calibration.local.rank"
SERVER = "simulator.calibration.train.row_server"
LONGEST_S, ENDING_S = 900.0, 0.5
CHANNELS = 8
SERVERS = 2


@dataclass(frozen=True)
class Launcher:
    """Runs jobs on `substrate` over `links`. Raises InputError for combinations that do not exist."""

    substrate: str
    links: Links

    def __post_init__(self) -> None:
        """Refuse unknown substrates, and shaped links under MPI."""
        if self.substrate not in SUBSTRATES:
            raise InputError(f'no substrate "{self.substrate}"{did_you_mean(self.substrate, SUBSTRATES)}')
        if self.substrate == "openmpi" and not isinstance(self.links, Loopback):
            raise InputError("Open MPI runs over shared memory here: links cannot be shaped; take tcp")

    def run(self, job: Job) -> dict[str, Any]:
        """Run `job` to its end; return what rank 0 wrote.

        Raises InfeasibleError when a library is missing, and the error of a rank that failed.
        """
        self._require_libraries(job)
        with tempfile.TemporaryDirectory(prefix="recscale-") as folder, self.links.up(job.ranks) as placed:
            result = Path(folder) / "result.json"
            port = free_ports(job.ranks * CHANNELS)
            rest = 2.0 * self.links.burst / self.links.rate if self.links.rate else 0.0
            told = replace(job, result=str(result), addresses=placed.addresses, first_port=port, rest=rest)
            servers = _servers(told, placed)
            told = replace(told, servers=tuple(server.address for server in servers))
            told.write(Path(folder) / "job.json")
            with _started([server.command for server in servers], Path(folder), "server"):
                self._start(told, placed.prefixes, Path(folder))
            return _read(result)

    def _require_libraries(self, job: Job) -> None:
        served = job.rpc is not None or any(needs_servers(run) for run in job.runs)
        needed = {"openmpi": "mpi4py", "torch": "torch"}.get(self.substrate.partition(":")[0])
        for library in filter(None, (needed, "grpc" if served else None)):
            if find_spec(library) is None:
                extra = "torch" if library == "torch" else "calibrate"
                raise InfeasibleError(f'{library} is not installed here: pip install "recscale[{extra}]"')

    def _start(self, job: Job, prefixes: Sequence[tuple[str, ...]], folder: Path) -> None:
        program = [sys.executable, "-m", RANK, str(folder / "job.json")]
        if self.substrate == "openmpi":
            commands = [[*mpirun(), "-n", str(job.ranks), *program]]
        else:
            commands = [[*prefix, *program, str(rank)] for rank, prefix in enumerate(prefixes)]
        with _started(commands, folder) as processes:
            _watch(processes, folder)


@dataclass(frozen=True)
class _Server:
    """A parameter server: how it is started, and where it answers."""

    command: tuple[str, ...]
    address: str


def _servers(job: Job, placed: Placed) -> list[_Server]:
    """Return a parameter server beside each rank if any run needs them, two if calls are measured."""
    runs, first = any(needs_servers(run) for run in job.runs), job.first_port + job.ranks * (CHANNELS - 1)
    count = job.ranks if runs else (SERVERS if job.rpc else 0)
    return [_server(job, placed, (number, count), first + number) for number in range(count)]


def _server(job: Job, placed: Placed, which: tuple[int, int], port: int) -> _Server:
    """Return server number `which[0]` of `which[1]`: it shares a core with its rank, or has one to itself."""
    number, count = which
    beside = number % job.ranks
    host, core = placed.addresses[beside], (number if count == job.ranks else job.ranks) % cores()
    told = (port, number, count, host, core if job.pinned else -1, int(job.isolated))
    command = (*placed.prefixes[beside], sys.executable, "-m", SERVER, *map(str, told))
    return _Server(command, f"{host}:{port}")


def mpirun() -> list[str]:
    """Return the start of an mpirun command. Raises InfeasibleError when there is none."""
    scripts = (str(Path(sys.executable).parent), sysconfig.get_path("scripts"))
    found = shutil.which("mpirun", path=os.pathsep.join(scripts)) or shutil.which("mpirun")
    if found is None:
        raise InfeasibleError('Open MPI is not installed here: pip install "recscale[calibrate]"')
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [found, *root, "--oversubscribe", "--bind-to", "none"]


def free_ports(count: int) -> int:
    """Return the first of `count` neighbouring ports that nobody listens on (at the moment)."""
    for first in range(21_000 + os.getpid() % 4_000, 60_000, count):
        if all(_free(port) for port in range(first, first + count)):
            return first
    raise InfeasibleError(f"there are no {count} free ports in a row")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _environment() -> Mapping[str, str]:
    """Return the environment of ranks: one BLAS thread, and this very package to import."""
    root = str(Path(simulator.__file__).resolve().parent.parent)
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
    return {**for_ranks(), "PYTHONPATH": path}


@contextlib.contextmanager
def _started(
    commands: Sequence[Sequence[str]], folder: Path, name: str = "said"
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start the commands, their errors going to files; whatever happens, none is left running."""
    processes: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as stack:
        try:
            for index, command in enumerate(commands):
                said = stack.enter_context((folder / f"{name}{index}").open("wb"))
                processes.append(
                    subprocess.Popen(
                        command, env=_environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said
                    )
                )
            yield processes
        finally:
            _end(processes)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(timeout=ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _watch(processes: Sequence[subprocess.Popen[bytes]], folder: Path) -> None:
    """Wait for all; when one fails, raise what it said."""
    end = time.monotonic() + LONGEST_S
    while any(process.poll() is None for process in processes):
        if any(process.poll() for process in processes):
            break
        if time.monotonic() > end:
            raise InfeasibleError(f"the ranks were not done after {LONGEST_S:.0f} s")
        time.sleep(0.05)
    if any(process.poll() for process in processes):
        time.sleep(0.5)  # those who notice that another one has gone end, too
        raise _failure(processes, folder)


def _failure(processes: Sequence[subprocess.Popen[bytes]], folder: Path) -> InputError | InfeasibleError:
    """Return the error of the rank that failed first, not of those who missed it then."""
    failed = [(index, process.poll()) for index, process in enumerate(processes) if process.poll()]
    errors = [_said(folder / f"said{index}", code or 0, index) for index, code in failed]
    return min(errors, key=lambda error: WENT_AWAY in error.problem)


def _said(path: Path, code: int, rank: int) -> InputError | InfeasibleError:
    """Return what a rank said for people as an error, else the last line of whatever it said."""
    said = path.read_text(encoding="utf-8", errors="replace").splitlines()
    own = [line.removeprefix("recscale: ") for line in said if line.startswith("recscale: ")]
    if own:
        return (InfeasibleError if code == 1 else InputError)(own[0])
    last = [line for line in said if line.strip()][-1:] or ["it said nothing"]
    return InfeasibleError(f"rank {rank} ended with code {code}: {last[0]}")


def _read(path: Path) -> dict[str, Any]:
    import orjson

    result: dict[str, Any] = orjson.loads(path.read_bytes())
    return result
