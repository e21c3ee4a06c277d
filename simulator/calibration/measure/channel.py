"""What ranks can do together, whatever carries their bytes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
STAGED = "staged_"  # how curves of collectives begin whose arrays were copied to a device and back


class Channel(ABC):
    """One communicator: `size` ranks, this one is `rank`. Calls are matched by their order.

    A stream of a pipeline has a channel of its own, so that streams do not have to agree on an order.
    """

    rank: int
    size: int

    @abstractmethod
    def all_to_all(self, parts: Sequence[Array]) -> list[Array]:
        """Send `parts[r]` (any length, one type) to each rank r; return what each sent here, flat."""

    @abstractmethod
    def all_gather(self, part: Array) -> list[Array]:
        """Send `part` to all; return everybody's, in order of rank, flat."""

    @abstractmethod
    def all_reduce(self, vector: Array) -> Array:
        """Return the sum of everybody's `vector`, the same bytes on every rank."""

    @abstractmethod
    def reduce_scatter(self, vector: Array) -> Array:
        """Return this rank's slice of the sum of everybody's `vector` (see `slices`)."""

    @abstractmethod
    def broadcast(self, vector: Array) -> Array:
        """Return the `vector` of rank 0."""

    def curve_name(self, operation: str) -> str:
        """Return what a curve of timed `operation` is called where a channel makes it in another way."""
        return operation

    def barrier(self) -> None:
        """Return once all ranks have come."""
        self.all_gather(np.zeros(1, dtype=np.uint8))

    def close(self) -> None:  # noqa: B027 - most channels hold nothing
        """Give back what the channel holds."""


def slices(length: int, size: int) -> list[slice]:
    """Return `size` slices of as equal a length as can be, in order."""
    cuts = [length * rank // size for rank in range(size + 1)]
    return [slice(low, high) for low, high in pairwise(cuts)]
