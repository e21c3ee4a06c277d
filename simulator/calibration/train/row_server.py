"""A parameter server: `python -m ...row_server PORT NUMBER SERVERS ADDRESS CORE ISOLATED`.

It holds one shard of the tables and answers over gRPC. A push is applied when all workers have pushed,
in the order of workers, so that a run gives the same weights every time.
"""

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.calibration.measure.kernels import distinct, gather, scatter, segment_sum
from simulator.calibration.train.messages import FETCH, PUSH, RESET, SERVICE, WRITE, Message, unpacked
from simulator.calibration.train.settings import Settings
from simulator.calibration.train.shards import Shard

THREADS = 8
OPTIONS = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))


@dataclass(eq=False)
class RowServer:
    """Server `number` of `servers`; `workers` push in every step."""

    number: int
    servers: int
    shard: Shard | None = None
    workers: int = 1
    waiting: dict[tuple[int, int], dict[int, Message]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self, request: bytes, context: Any = None) -> bytes:
        """Make the shard anew from the settings of a run."""
        import orjson

        told = orjson.loads(request)
        self.workers = int(told["workers"])
        self.shard = Shard.seeded(Settings.of(told["settings"]), self.number, self.servers)
        self.waiting.clear()
        return b""

    def fetch(self, request: bytes, context: Any = None) -> bytes:
        """Return the rows asked for; with step -1, their optimizer state behind them."""
        message = unpacked(request)
        arrays = self._shard.arrays if message.step == -1 else self._shard.arrays[:1]
        return b"".join(gather(array, message.places).tobytes() for array in arrays)

    def push(self, request: bytes, context: Any = None) -> bytes:
        """Keep gradients until all workers have pushed, then update each row once."""
        message = unpacked(request)
        with self.lock:
            pushed = self.waiting.setdefault((message.step, message.group), {})
            pushed[message.sender] = message
            if len(pushed) == self.workers:
                self._apply([pushed[sender] for sender in sorted(pushed)])
                del self.waiting[message.step, message.group]
        return b""

    def _apply(self, messages: Sequence[Message]) -> None:
        places = np.concatenate([message.places for message in messages])
        if not len(places):
            return
        width = self._shard.arrays[0].shape[1]
        values = np.concatenate([m.values for m in messages if m.values is not None]).reshape(-1, width)
        into = distinct(places)
        rows = tuple(gather(array, into.values) for array in self._shard.arrays)
        self._shard.update(rows, segment_sum(values, into))
        for array, updated in zip(self._shard.arrays, rows, strict=True):
            scatter(array, into.values, updated)

    def write(self, request: bytes, context: Any = None) -> bytes:
        """Overwrite rows and their state."""
        message = unpacked(request)
        if message.values is not None:
            parts = message.values.reshape(len(self._shard.arrays), len(message.places), -1)
            for array, values in zip(self._shard.arrays, parts, strict=True):
                scatter(array, message.places, values)
        return b""

    @property
    def _shard(self) -> Shard:
        assert self.shard is not None, "a server is told what to hold before it is asked"
        return self.shard


def serve(server: RowServer, address: str) -> Any:
    """Start answering at `address`; return the gRPC server, which answers until it is stopped."""
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    answers = {FETCH: server.fetch, PUSH: server.push, WRITE: server.write, RESET: server.reset}
    handlers = {name: grpc.unary_unary_rpc_method_handler(answer) for name, answer in answers.items()}
    listening = grpc.server(ThreadPoolExecutor(THREADS), options=OPTIONS)
    listening.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    listening.add_insecure_port(address)
    listening.start()
    return listening


def main(arguments: Sequence[str]) -> None:
    """Serve until somebody ends the process."""
    import os

    from simulator.calibration.measure.pinning import apart

    port, number, servers, host, core, isolated = arguments
    if int(isolated):
        apart()
    if int(core) >= 0:
        os.sched_setaffinity(0, {int(core)})
    serve(RowServer(int(number), int(servers)), f"{host}:{port}").wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1:])
