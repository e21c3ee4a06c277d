"""Ranks that are slower than their model says: worn hosts, hot accelerators, bad cables."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.quantities import Amount

RESOURCES = ("compute", "memory", "host", "copy", "network")


@dataclass(frozen=True)
class Slowdown:
    """The share of its nominal speed that each of `ranks` reaches, by resource (1 = as specified).

    Raises InputError on a share outside (0, 1] and on a list without ranks.
    """

    ranks: tuple[int, ...]
    compute: float = 1.0
    memory: float = 1.0
    host: float = 1.0
    copy: float = 1.0
    network: float = 1.0

    def __post_init__(self) -> None:
        """Check the shares."""
        if not self.ranks:
            raise InputError("a slowdown needs at least one rank")
        checks.shares("slow", **{name: getattr(self, name) for name in RESOURCES})


def speed(slowdowns: Iterable[Slowdown], resource: str, ranks: int) -> Amount:
    """Return each rank's share of nominal speed: 1.0, or an array of shape (ranks,) if any is slow.

    Several slowdowns of one rank multiply. Raises InputError when a rank is not in the cluster.
    """
    touched = [(one.ranks, getattr(one, resource)) for one in slowdowns if getattr(one, resource) != 1.0]
    if not touched:
        return 1.0
    shares = np.ones(ranks)
    for members, share in touched:
        if max(members) >= ranks or min(members) < 0:
            raise InputError(f"rank {max(members)} is not in a cluster of {ranks} (counted from 0)")
        shares[list(members)] *= share
    return shares
