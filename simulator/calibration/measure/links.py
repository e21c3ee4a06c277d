"""The links between ranks on one machine: as they are, or shaped to a rate in network namespaces.

Shaped links need root and iproute2: a namespace per rank, a bridge between them, and a token bucket
(`tc tbf`) on both ends of each virtual cable, so that a rank's link has a rate in each direction.
The rate can be set, a delay cannot. Everything is deleted on the way out.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from simulator.errors import InfeasibleError, InputError
from simulator.units import parse_quantity

BURST_BYTES = 64_000
SEGMENT_BYTES = 48_000  # one must fit into the bucket, or the kernel cuts it into packets of 1,500 bytes
QUEUE_BYTES = 64_000_000
OPEN_WINDOWS = ("initcwnd", "10000", "initrwnd", "10000")
NO_CAUTION = {"tcp_slow_start_after_idle": 0, "tcp_no_metrics_save": 1, "tcp_early_retrans": 0}
IN_TURN = {"tcp_limit_output_bytes": 128 << 10}  # of a connection in the queue: so connections share a link
DEVICE = "eth0"  # a rank's end of its cable
SUBNET = "10.213.77"


@dataclass(frozen=True)
class Placed:
    """How to start each rank (`prefix` before its command) and the `addresses` at which ranks listen."""

    prefixes: tuple[tuple[str, ...], ...]
    addresses: tuple[str, ...]


class Links(ABC):
    """A kind of links between ranks of one machine."""

    @property
    def rate(self) -> float | None:
        """Bytes/s in each direction, where it is set."""
        return None

    @property
    def burst(self) -> float:
        """Bytes that a rested link lets through at once."""
        return 0.0

    @abstractmethod
    def up(self, ranks: int) -> contextlib.AbstractContextManager[Placed]:
        """Return a context in which `ranks` ranks can reach each other."""


@dataclass(frozen=True)
class Loopback(Links):
    """The loopback device: memory copies through the kernel."""

    def __str__(self) -> str:
        """Return the name on the command line."""
        return "loopback"

    @contextlib.contextmanager
    def up(self, ranks: int) -> Iterator[Placed]:
        """Return at once: loopback is always up."""
        yield Placed(((),) * ranks, ("127.0.0.1",) * ranks)


@dataclass(frozen=True)
class Shaped(Links):
    """Links of `rate` bytes/s in each direction. `text` is how the user wrote it."""

    bytes_per_s: float
    text: str

    def __str__(self) -> str:
        """Return the name on the command line."""
        return f"shaped:{self.text}"

    @property
    def rate(self) -> float:
        """Bytes/s in each direction."""
        return self.bytes_per_s

    @property
    def burst(self) -> float:
        """The size of the token bucket."""
        return BURST_BYTES

    @contextlib.contextmanager
    def up(self, ranks: int) -> Iterator[Placed]:
        """Build the namespaces, and delete them whatever happens. Raises InfeasibleError without rights."""
        _refuse_without_rights()
        names = [f"recscale-{os.getpid()}-{rank}" for rank in range(ranks)]
        bridge = f"recscale-{os.getpid()}-b"
        _sweep()
        try:
            with _interruptible():
                self._build(bridge, names)
                addresses = tuple(f"{SUBNET}.{rank + 1}" for rank in range(ranks))
                yield Placed(tuple(("ip", "netns", "exec", name) for name in names), addresses)
        finally:
            for name in (*names, bridge):
                subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def _build(self, bridge: str, names: list[str]) -> None:
        _run("ip", "netns", "add", bridge)
        _run("ip", "-n", bridge, "link", "add", "br0", "type", "bridge")
        _run("ip", "-n", bridge, "link", "set", "br0", "up")
        for rank, name in enumerate(names):
            port = f"port{rank}"
            _run("ip", "netns", "add", name)
            _run("ip", "link", "add", DEVICE, "netns", name, "type", "veth", "peer", port, "netns", bridge)
            _run("ip", "-n", bridge, "link", "set", port, "master", "br0", "up")
            _run("ip", "-n", name, "addr", "add", f"{SUBNET}.{rank + 1}/24", "dev", DEVICE)
            _run("ip", "-n", name, "link", "set", "lo", "up")
            _run("ip", "-n", name, "link", "set", DEVICE, "up")
            _unthrottle(name)
            self._shape(name, DEVICE)
            self._shape(bridge, port)

    def _shape(self, namespace: str, device: str) -> None:
        bucket = ("burst", str(BURST_BYTES), "limit", str(QUEUE_BYTES))
        _run("ip", "-n", namespace, "link", "set", device, "gso_max_size", str(SEGMENT_BYTES))
        bits = f"{round(8 * self.bytes_per_s)}bit"
        _run("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", "rate", bits, *bucket)


def _unthrottle(namespace: str) -> None:
    """Let links alone pace what is sent, as on fabrics without TCP, and connections share them evenly.

    Otherwise the congestion window that a connection happens to have found, which no two launches share,
    may take a third longer than the link; and a message waits for all that others have put into the queue.
    """
    _run("ip", "-n", namespace, "route", "change", f"{SUBNET}.0/24", "dev", DEVICE, *OPEN_WINDOWS)
    settings = [f"net.ipv4.{name}={value}" for name, value in {**NO_CAUTION, **IN_TURN}.items()]
    _run("ip", "netns", "exec", namespace, "sysctl", "-q", "-w", *settings)


def parse_links(text: str) -> Links:
    """Return the links called `loopback` or `shaped:RATE`. Raises InputError for anything else."""
    kind, _, rate = text.partition(":")
    if kind == "loopback" and not rate:
        return Loopback()
    if kind == "shaped" and rate:
        bytes_per_s = _rate(rate)
        if not 1e5 <= bytes_per_s <= 1.25e10:
            raise InputError(f"links can be shaped to 1 Mb/s to 100 Gb/s, not {rate}")
        return Shaped(bytes_per_s, rate)
    raise InputError(f'unknown links "{text}" (allowed: loopback, shaped:RATE such as shaped:1Gbit/s)')


def _rate(text: str) -> float:
    try:
        return parse_quantity(text, "bandwidth")
    except ValueError as error:
        raise InputError(f"--links shaped:{text}: {error}") from None


def _refuse_without_rights() -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise InfeasibleError("shaped links need root on Linux (network namespaces); take loopback")
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if missing:
        raise InfeasibleError(f"shaped links need {' and '.join(missing)} (package iproute2)")


def _sweep() -> None:
    """Delete what a process has left behind that was killed before it could."""
    listed = subprocess.run(["ip", "netns", "list"], check=False, capture_output=True, text=True).stdout
    for name in (line.split()[0] for line in listed.splitlines() if line.startswith("recscale-")):
        owner = name.split("-")[1]
        if owner.isdigit() and not Path("/proc", owner).exists():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise InfeasibleError(
            f"links cannot be shaped here: {' '.join(command[:4])}: {(said or ['failed'])[0]}"
        )


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Turn a request to end into an exception, so that what was built is taken down.

    Whoever called us may have seen to that.
    """

    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread: nobody can be asked
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
