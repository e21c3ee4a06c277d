"""A worker's side of parameter servers: one call per table, in turn or all at once, or one for all tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from simulator.calibration.measure.channel import Array
from simulator.calibration.train.messages import FETCH, PUSH, RESET, SERVICE, WRITE, Message, by_table, joined
from simulator.calibration.train.row_server import OPTIONS
from simulator.calibration.train.settings import Settings
from simulator.errors import InfeasibleError
from simulator.quantities import IntArray

READY_S = 30.0


class Calls(StrEnum):
    """How tables are asked for."""

    in_turn = "in_turn"
    at_once = "at_once"
    coalesced = "coalesced"


@dataclass(frozen=True, eq=False)
class Request:
    """One call to one server: places of some tables, in parts, and values that go with them."""

    server: int
    group: int
    parts: tuple[IntArray, ...]
    values: Array | None = None


@dataclass(eq=False)
class RowClient:
    """Worker `sender` of several, connected to all servers. `calls` says how it asks."""

    addresses: Sequence[str]
    settings: Settings
    sender: int
    calls: Calls

    def __post_init__(self) -> None:
        """Connect. Raises InfeasibleError when a server does not answer."""
        import grpc

        self._methods: list[dict[str, Any]] = []
        self._open = [grpc.insecure_channel(address, options=OPTIONS) for address in self.addresses]
        for address, channel in zip(self.addresses, self._open, strict=True):
            try:
                grpc.channel_ready_future(channel).result(timeout=READY_S)
            except grpc.FutureTimeoutError:
                raise InfeasibleError(f"the parameter server at {address} does not answer") from None
            names = (FETCH, PUSH, WRITE, RESET)
            self._methods.append({name: channel.unary_unary(f"/{SERVICE}/{name}") for name in names})

    def reset(self, workers: int) -> None:
        """Let all servers make their shards anew."""
        import orjson

        told = orjson.dumps({"settings": self.settings.to_dict(), "workers": workers})
        for methods in self._methods:
            methods[RESET](told)

    def fetch(self, places: Sequence[IntArray]) -> list[Array]:
        """Return the rows at `places` of each server, as rows of one array per server."""
        requests = [one for server, wanted in enumerate(places) for one in self._requests(server, wanted)]
        answers = self._ask(FETCH, requests, 0)
        width = self.settings.model.dimension
        found: list[list[Array]] = [[np.empty(0, dtype=np.float32)] for _ in places]
        for request, answer in zip(requests, answers, strict=True):
            found[request.server].append(np.frombuffer(answer, dtype=np.float32))
        return [joined(parts, width) for parts in found]

    def fetch_with_state(self, places: Sequence[IntArray]) -> list[list[Array]]:
        """Return, for each server, the rows at `places` and then their optimizer state."""
        requests = [Request(server, -1, (wanted,)) for server, wanted in enumerate(places)]
        answers = self._ask(FETCH, requests, -1)
        width, copies = self.settings.model.dimension, 2 if self.settings.optimizer == "adagrad" else 1
        flat = [np.frombuffer(answer, dtype=np.float32) for answer in answers]
        return [list(one.reshape(copies, -1, width)) for one in flat]

    def push(self, step: int, places: Sequence[IntArray], gradients: Sequence[Array]) -> None:
        """Send a gradient for each place of each server."""
        pairs = zip(places, gradients, strict=True)
        requests = [
            one for server, (at, values) in enumerate(pairs) for one in self._requests(server, at, values)
        ]
        self._ask(PUSH, requests, step)

    def write(self, places: Sequence[IntArray], values: Sequence[Array]) -> None:
        """Overwrite rows (with state, below each other) at `places` of each server."""
        pairs = zip(places, values, strict=True)
        self._ask(WRITE, [Request(server, -1, (at,), rows) for server, (at, rows) in enumerate(pairs)], 0)

    def close(self) -> None:
        """Close the connections."""
        for channel in self._open:
            channel.close()

    def _requests(self, server: int, places: IntArray, values: Array | None = None) -> list[Request]:
        """Return the calls that ask one server for these places: one, or one for each table of the model.

        Tables that a batch does not touch are called for as well, as real trainers do.
        """
        model, count = self.settings.model, len(self.addresses)
        present = dict(by_table(places, server, count, model.rows))
        if self.calls is Calls.coalesced:
            return [Request(server, -1, tuple(places[part] for part in present.values()), values)]
        nothing = slice(0, 0)
        parts = [(table, present.get(table, nothing)) for table in range(model.tables)]
        return [
            Request(server, table, (places[part],), None if values is None else values[part])
            for table, part in parts
        ]

    def _ask(self, method: str, requests: Sequence[Request], step: int) -> list[bytes]:
        """Make the calls and return the answers in their order."""
        call = self._in_turn if self.calls is Calls.in_turn else self._at_once
        return call(method, requests, step)

    def _in_turn(self, method: str, requests: Sequence[Request], step: int) -> list[bytes]:
        return [self._method(one, method)(self._packed(one, step)) for one in requests]

    def _at_once(self, method: str, requests: Sequence[Request], step: int) -> list[bytes]:
        going = [self._method(one, method).future(self._packed(one, step)) for one in requests]
        return [one.result() for one in going]

    def _method(self, request: Request, name: str) -> Any:
        method: Callable[[bytes], bytes] = self._methods[request.server][name]
        return method

    def _packed(self, request: Request, step: int) -> bytes:
        return Message(step, self.sender, request.group, request.parts, request.values).packed()
