"""Collectives of MPI, through mpi4py: exchanges of any length as `Alltoallv` after their lengths."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from simulator.calibration.measure.channel import Array, Channel, slices


class MpiChannel(Channel):
    """A communicator of mpi4py; channels that run at the same time need one each (`Dup`)."""

    def __init__(self, communicator: Any) -> None:
        """Take over a communicator."""
        self._communicator = communicator
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()

    def all_to_all(self, parts: Sequence[Array]) -> list[Array]:
        """Exchange lengths, then bytes."""
        kind = parts[0].dtype
        sent = np.array([part.nbytes for part in parts], dtype=np.int64)
        coming = np.empty_like(sent)
        self._communicator.Alltoall(sent, coming)
        flat = np.concatenate([np.ascontiguousarray(part).reshape(-1).view(np.uint8) for part in parts])
        received = np.empty(int(coming.sum()), dtype=np.uint8)
        self._communicator.Alltoallv(self._described(flat, sent), self._described(received, coming))
        return [part.view(kind) for part in np.split(received, np.cumsum(coming)[:-1])]

    def all_gather(self, part: Array) -> list[Array]:
        """Gather parts of equal length."""
        gathered = np.empty((self.size, part.size), dtype=part.dtype)
        self._communicator.Allgather(np.ascontiguousarray(part).reshape(-1), gathered)
        return list(gathered)

    def all_reduce(self, vector: Array) -> Array:
        """Add up vectors."""
        total = np.empty_like(vector)
        self._communicator.Allreduce(vector, total)
        return total

    def reduce_scatter(self, vector: Array) -> Array:
        """Add up vectors; keep a slice."""
        lengths = [part.stop - part.start for part in slices(len(vector), self.size)]
        part = np.empty(lengths[self.rank], dtype=vector.dtype)
        self._communicator.Reduce_scatter(vector, part, lengths)
        return part

    def broadcast(self, vector: Array) -> Array:
        """Send the vector of rank 0 to all."""
        copy = vector.copy()
        self._communicator.Bcast(copy)
        return copy

    def barrier(self) -> None:
        """Wait for all."""
        self._communicator.Barrier()

    @staticmethod
    def _described(buffer: Array, lengths: Array) -> list[Any]:
        from mpi4py import MPI

        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        return [buffer, lengths, starts, MPI.BYTE]


def channels(count: int) -> list[MpiChannel]:
    """Return `count` channels over all ranks of this MPI job, usable from as many threads."""
    import mpi4py

    mpi4py.rc.thread_level = "multiple"
    from mpi4py import MPI

    return [MpiChannel(MPI.COMM_WORLD.Dup()) for _ in range(count)]
