"""Parameter servers: hosts without accelerators, their network cards, and what a remote call costs."""

from dataclasses import dataclass

from simulator.hardware import checks
from simulator.hardware.parts import Host


@dataclass(frozen=True)
class Rpc:
    """What the software of a remote procedure call costs, seconds; no two libraries agree on it.

    At the client: `first` is a round of calls to all servers at once, however small; `pipelined` each
    further call while others are under way; `in_turn` each call when the next one waits for its answer;
    `per_byte` every byte sent or received. At the server, in seconds of one core: `server_call` and
    `server_per_byte`. Zero, the default, is a call that costs nothing beyond its bytes on the wire.
    """

    first: float = 0.0
    in_turn: float = 0.0
    pipelined: float = 0.0
    per_byte: float = 0.0
    server_call: float = 0.0
    server_per_byte: float = 0.0

    def __post_init__(self) -> None:
        """Raise InputError on a time below zero."""
        checks.not_negative("rpc", **vars(self))


@dataclass(frozen=True)
class Servers:
    """`host` of each parameter server, `bandwidth` of its network card in bytes/s and direction, its `rpc`.

    `key_time` is what one core takes to decide what becomes of one looked-up key in a lookahead, seconds.
    """

    host: Host
    bandwidth: float
    rpc: Rpc = Rpc()
    key_time: float = 0.0

    def __post_init__(self) -> None:
        """Raise InputError on an impossible value."""
        checks.positive("servers", bandwidth=self.bandwidth)
        checks.not_negative("servers", key_time=self.key_time)
