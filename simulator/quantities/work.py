"""The base of every kind of work, how works combine, and the one that is a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Amount = float | FloatArray


@dataclass(frozen=True, eq=False)
class Work:
    """The base of every kind of work; compared by identity because amounts may be arrays."""

    @property
    def rendezvous(self) -> bool:
        """Whether ranks must meet to do it: true for collectives."""
        return False


@dataclass(frozen=True, eq=False)
class HoldWork(Work):
    """`seconds` measured on a real system, held without using any resource; `why` says what it is.

    The one exception to "never seconds": quantities that were measured as times and that no
    resource of ours explains. Every report flags the stages that contain it. `setting` is the path of
    the scenario's number that it is proportional to, if there is one.
    """

    seconds: Amount
    why: str
    setting: str = ""


@dataclass(frozen=True, eq=False)
class InTurn(Work):
    """Parts done one after the other within one stage."""

    parts: tuple[Work, ...]

    @property
    def rendezvous(self) -> bool:
        """Whether any part is a collective."""
        return any(part.rendezvous for part in self.parts)


@dataclass(frozen=True, eq=False)
class Together(Work):
    """Parts that stream through each other in chunks: the slowest sets the time."""

    parts: tuple[Work, ...]

    @property
    def rendezvous(self) -> bool:
        """Whether any part is a collective."""
        return any(part.rendezvous for part in self.parts)


NOTHING = InTurn(())


def leaves(work: Work) -> Iterator[Work]:
    """Yield the parts of `work` that have no parts."""
    if isinstance(work, InTurn | Together):
        for part in work.parts:
            yield from leaves(part)
    else:
        yield work


def busiest(amount: Amount) -> float:
    """Return the amount of the rank that has most."""
    return float(np.max(amount))
