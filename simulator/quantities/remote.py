"""Work with parameter servers: calls, and what the servers do for them."""

from dataclasses import dataclass

from simulator.quantities.work import Work


@dataclass(frozen=True, eq=False)
class RpcWork(Work):
    """Calls of this rank to parameter servers: `calls` to each of `servers`, `bytes` to and from all of them.

    Calls are made one after the other (`in_turn`), or all at once. As many are made by `ranks` ranks at
    the same time. The busiest server has `hottest` times the mean load. With `meets`, servers answer
    when all ranks have called.
    """

    calls: float
    bytes: float
    servers: int = 1
    ranks: int = 1
    in_turn: bool = False
    hottest: float = 1.0
    meets: bool = False

    @property
    def rendezvous(self) -> bool:
        """Whether servers wait for all ranks."""
        return self.meets


@dataclass(frozen=True, eq=False)
class ServerWork(Work):
    """Work of one host of the servers' kind for all ranks.

    `core_seconds` and the decisions on `keys` go over its cores, `sent_bytes` out of its network card.
    """

    core_seconds: float
    sent_bytes: float = 0.0
    keys: float = 0.0
