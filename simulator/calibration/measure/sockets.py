"""Collectives over plain TCP: a full mesh of sockets per channel and one poll loop per call.

They are as simple as can be, so that what they cost is known: every message is an 8-byte length and
the bytes. Kernel buffers are made large, so that a transfer goes on while its thread does not run.
"""

import contextlib
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.calibration.measure.channel import Array, Channel, slices
from simulator.errors import InputError

HEADER = struct.Struct("<q")
BUFFER_BYTES = 16 << 20
MOST_AT_ONCE = 1 << 20
CONNECT_S = 30.0
FORCED = {"SO_SNDBUFFORCE": 32, "SO_RCVBUFFORCE": 33}  # Linux: beyond the usual limit, for root only
CONGESTION = b"cubic"
WENT_AWAY = "a rank went away"


def tuned(connection: socket.socket) -> socket.socket:
    """Set large buffers, no delay and a congestion control without pacing, as far as the kernel lets us."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for plain, forced in ((socket.SO_SNDBUF, "SO_SNDBUFFORCE"), (socket.SO_RCVBUF, "SO_RCVBUFFORCE")):
        try:
            connection.setsockopt(socket.SOL_SOCKET, FORCED[forced], BUFFER_BYTES)
        except OSError:
            connection.setsockopt(socket.SOL_SOCKET, plain, BUFFER_BYTES)
    with contextlib.suppress(OSError, AttributeError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION)
    return connection


@dataclass(frozen=True)
class Mesh:
    """Where ranks listen: `addresses` by rank, and a port for each rank and channel."""

    addresses: tuple[str, ...]
    first_port: int

    def place(self, rank: int, channel: int) -> tuple[str, int]:
        """Return the address at which `rank` listens for `channel`."""
        return self.addresses[rank], self.first_port + channel * len(self.addresses) + rank


def connect(mesh: Mesh, rank: int, channel: int) -> "SocketChannel":
    """Return channel `channel` of `rank`; all ranks must call. Raises InputError when one stays away."""
    size, peers = len(mesh.addresses), dict[int, socket.socket]()
    with socket.create_server(mesh.place(rank, channel), backlog=size) as server:
        server.settimeout(CONNECT_S)
        for peer in range(rank):
            peers[peer] = _called(mesh.place(peer, channel))
            peers[peer].sendall(HEADER.pack(rank))
        try:
            while len(peers) < size - 1:
                connection, _ = server.accept()
                peers[HEADER.unpack(_exactly(connection, HEADER.size))[0]] = connection
        except TimeoutError:
            raise InputError(f"rank {rank}: not all ranks came within {CONNECT_S:.0f} s") from None
    return SocketChannel(rank, size, peers)


def _called(place: tuple[str, int]) -> socket.socket:
    end = time.monotonic() + CONNECT_S
    while True:
        try:
            return socket.create_connection(place, timeout=CONNECT_S)
        except OSError as error:
            if time.monotonic() > end:
                raise InputError(f"nobody answers at {place[0]}:{place[1]}: {error}") from None
            time.sleep(0.02)


def _exactly(connection: socket.socket, count: int) -> bytes:
    connection.settimeout(CONNECT_S)
    got = connection.recv(count, socket.MSG_WAITALL)
    if len(got) < count:
        raise InputError(f"{WENT_AWAY} while connecting")
    return got


@dataclass(eq=False)
class _Outgoing:
    """A message that is being sent."""

    left: list[memoryview]

    def go_on(self, connection: socket.socket) -> bool:
        """Send what the kernel takes; return whether all is sent."""
        try:
            sent = connection.sendmsg(self.left)
        except BlockingIOError:
            return False
        except ConnectionError:
            raise InputError(f"{WENT_AWAY} in the middle of a collective") from None
        while self.left and sent >= len(self.left[0]):
            sent -= len(self.left.pop(0))
        if self.left:
            self.left[0] = self.left[0][sent:]
        return not self.left


@dataclass(eq=False)
class _Incoming:
    """A message that is being received: the length, then the bytes."""

    header: bytearray = field(default_factory=lambda: bytearray(HEADER.size))
    payload: Array | None = None
    view: memoryview = field(default_factory=lambda: memoryview(b""))
    asked: int = 1

    def __post_init__(self) -> None:
        """Begin with the header."""
        self.view = memoryview(self.header)

    def go_on(self, connection: socket.socket) -> bool:
        """Receive what has come; return whether all is there."""
        while True:
            if not len(self.view):
                if self.payload is not None:
                    return True
                self.payload = np.empty(HEADER.unpack(self.header)[0], dtype=np.uint8)
                self.view = memoryview(self.payload.data)
                continue
            try:
                count = connection.recv_into(self.view)
            except BlockingIOError:
                return False
            except ConnectionError:
                count = 0
            if not count:
                raise InputError(f"{WENT_AWAY} in the middle of a collective")
            self.view = self.view[count:]

    def wait_for(self, connection: socket.socket) -> None:
        """Ask to be woken when a good part of what is missing is there, not at every packet."""
        least = min(len(self.view), MOST_AT_ONCE) if self.payload is not None else 1
        if least != self.asked:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
            self.asked = least


class SocketChannel(Channel):
    """A full mesh of connected sockets, `peers` by rank."""

    def __init__(self, rank: int, size: int, peers: Mapping[int, socket.socket]) -> None:
        """Take over connected sockets."""
        self.rank, self.size = rank, size
        following = sorted(peers, key=lambda peer: (peer - rank) % size)
        self._peers = {peer: peers[peer] for peer in following}
        for connection in self._peers.values():
            tuned(connection).setblocking(False)

    def all_to_all(self, parts: Sequence[Array]) -> list[Array]:
        """Send to all peers at once; the own part is handed over as it is.

        Every rank begins with the one after it: if all began with the same, the links into the others
        would be idle at first.
        """
        kind, own = parts[self.rank].dtype, parts[self.rank].reshape(-1)
        got = self._exchange({peer: np.ascontiguousarray(parts[peer]) for peer in self._peers})
        return [own if peer == self.rank else got[peer].view(kind) for peer in range(self.size)]

    def all_gather(self, part: Array) -> list[Array]:
        """Everybody sends the same to all."""
        return self.all_to_all([part] * self.size)

    def all_reduce(self, vector: Array) -> Array:
        """Reduce-scatter, then all-gather: 2 (n - 1) / n of the vector leave each rank."""
        return np.concatenate(self.all_gather(self.reduce_scatter(vector)))

    def reduce_scatter(self, vector: Array) -> Array:
        """Everybody gets its slice of all vectors and adds them in the order of ranks."""
        received = self.all_to_all([vector[part] for part in slices(len(vector), self.size)])
        total = received[0].copy()
        for other in received[1:]:
            total += other
        return total

    def broadcast(self, vector: Array) -> Array:
        """Rank 0 sends to each; the others send nothing."""
        empty = vector[:0]
        parts = [vector] * self.size if self.rank == 0 else [empty] * self.size
        return self.all_to_all(parts)[0]

    def close(self) -> None:
        """Close the sockets."""
        for connection in self._peers.values():
            connection.close()

    def _exchange(self, messages: Mapping[int, Array]) -> dict[int, Array]:
        """Send each peer its message and return what each sent, as bytes."""
        going = {peer: _Outgoing(_views(message)) for peer, message in messages.items()}
        coming = {peer: _Incoming() for peer in messages}
        received = dict(coming)
        _advance(going, self._peers)
        _advance(coming, self._peers)
        if going or coming:
            self._poll(going, coming)
        return {peer: _payload(message) for peer, message in received.items()}

    def _poll(self, going: dict[int, _Outgoing], coming: dict[int, _Incoming]) -> None:
        """Go on with whatever can go on until all is sent and received."""
        while going or coming:
            for peer, message in coming.items():
                message.wait_for(self._peers[peer])
            poller = select.poll()
            for peer in going.keys() | coming.keys():
                events = (select.POLLOUT if peer in going else 0) | (select.POLLIN if peer in coming else 0)
                poller.register(self._peers[peer], events)
            poller.poll()
            _advance(coming, self._peers)
            _advance(going, self._peers)
        for connection in self._peers.values():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def _views(message: Array) -> list[memoryview]:
    body = message.reshape(-1).view(np.uint8).data
    header = memoryview(HEADER.pack(len(body)))
    return [header, body] if len(body) else [header]


def _payload(message: _Incoming) -> Array:
    assert message.payload is not None
    return message.payload


def _advance(
    transfers: dict[int, _Outgoing] | dict[int, _Incoming], peers: Mapping[int, socket.socket]
) -> None:
    for peer in list(transfers):
        if transfers[peer].go_on(peers[peer]):
            del transfers[peer]
