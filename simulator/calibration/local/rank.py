"""The program of a rank: `python -m simulator.calibration.local.rank JOB RANK` (MPI numbers ranks itself)."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.calibration.local.job import Job
from simulator.calibration.measure.channel import Channel
from simulator.errors import RecscaleError

MOST_CHANNELS = 5


def main(arguments: Sequence[str]) -> int:
    """Do the job; say in one line on standard error what the user can mend, and return the exit code."""
    job = Job.read(Path(arguments[0]))
    try:
        _do(job, int(arguments[1]) if len(arguments) > 1 else -1)
    except RecscaleError as error:
        print(f"recscale: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _do(job: Job, rank: int) -> None:
    from simulator.calibration.local.work import Work
    from simulator.calibration.measure.environment import environment

    where = environment()  # before this rank is pinned, when it sees all cores
    channels = _opened(job, rank)
    core = _placed(job, channels[0].rank)
    result = Work(job, channels, max(1.0, job.ranks / where["cores"])).done()
    if channels[0].rank == 0:
        _write(Path(job.result), {**result, "environment": where, "first_core": core})
    for channel in channels:
        channel.close()


def _placed(job: Job, rank: int) -> int | None:
    from simulator.calibration.measure.pinning import apart, pin

    if job.isolated:
        apart()
    return pin(rank) if job.pinned else None


def _write(path: Path, result: Mapping[str, Any]) -> None:
    import orjson

    path.write_bytes(orjson.dumps(result, option=orjson.OPT_SERIALIZE_NUMPY))


def _opened(job: Job, rank: int) -> list[Channel]:
    """Return the channels of this rank: the first for measuring, one for each network stream."""
    return OPENERS[job.substrate.partition(":")[0]](job, rank)


def _over_sockets(job: Job, rank: int) -> list[Channel]:
    from simulator.calibration.measure.sockets import Mesh, connect

    mesh = Mesh(job.addresses, job.first_port)
    return [connect(mesh, rank, channel) for channel in range(MOST_CHANNELS)]


def _over_mpi(job: Job, rank: int) -> list[Channel]:
    from simulator.calibration.measure.mpi import channels

    return list(channels(MOST_CHANNELS))


def _over_torch(job: Job, rank: int) -> list[Channel]:
    from simulator.calibration.measure.sockets import Mesh
    from simulator.calibration.measure.torch_group import Backend, channels

    backend = Backend(job.substrate.partition(":")[2])
    return list(channels(Mesh(job.addresses, job.first_port), rank, MOST_CHANNELS, backend))


OPENERS: Mapping[str, Callable[[Job, int], list[Channel]]] = {
    "tcp": _over_sockets,
    "openmpi": _over_mpi,
    "torch": _over_torch,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
