"""What an uneven exchange leaves on links, and when each rank is done with it: worked out once, remembered.

Only the shape of an exchange counts: with twice the bytes everything takes twice as long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simulator.costs.joint import ROUNDED, arrivals
from simulator.costs.phases import Flows
from simulator.hardware import Cluster, Fabric
from simulator.hardware.crossings import Crossings, Exchange
from simulator.quantities import FloatArray, Group, IntArray

MESSAGE_BY_MESSAGE = 512
"""Up to this many ranks each message is followed; above, an exchange lasts as its busiest link does."""


@dataclass(frozen=True, eq=False)
class Crossed:
    """`flows` of an exchange, one class for each part of its messages, all there are on the busiest links.

    `finish` is the share of the time of the flows after which each rank is done; None: all at the end.
    """

    flows: tuple[Flows, ...]
    finish: FloatArray | None


@dataclass(frozen=True)
class Lanes:
    """The links of `cluster` one by one, at the rates that messages in a `group` find there."""

    cluster: Cluster
    group: Group | None

    @property
    def ranks(self) -> int:
        """The ranks of the whole job: amounts have an entry for each."""
        return self.cluster.ranks

    def crossed(self, exchange: Exchange, rates: Mapping[str, float]) -> Crossed:
        """Return what an exchange leaves on links whose classes have these `rates` (bytes/s)."""
        scale = float(max(exchange.sent.max(), exchange.received.max()))
        if not scale:
            return Crossed((), None)
        shape = _Shape.of(self._key, exchange, scale)
        flows = []
        for part in np.flatnonzero(shape.moved):
            crossing = {
                name: float(each[part]) * rates[name] / shape.bytes
                for name, each in shape.seconds.items()
                if each[part] > 0.0
            }
            near, far = (0.0, shape.sent[part]) if part else (shape.sent[part], 0.0)
            flows.append(Flows(shape.bytes * scale, crossing, near, far, shape.latest[part] * scale))
        return Crossed(tuple(flows), shape.finish)

    @property
    def _key(self) -> "_Key":
        cluster = self.cluster
        speed = np.broadcast_to(np.asarray(cluster.speed("network"), float), self.ranks)
        return _Key(cluster.fabric, self.ranks, cluster.per_host, self.group, speed.tobytes())


@dataclass(frozen=True)
class _Key:
    """What the links depend on; `speed` is that of each rank's own links, as bytes of an array."""

    fabric: Fabric
    ranks: int
    per_host: int
    group: Group | None
    speed: bytes


@lru_cache(maxsize=8)
def _links(key: _Key) -> Crossings:
    links, speed = key.fabric.crossings(key.ranks, key.per_host, key.group), np.frombuffer(key.speed)
    return links if (speed == 1.0).all() else links.paced(speed)


@dataclass(frozen=True, eq=False)
class _Shape:
    """Of an exchange whose busiest rank has one byte: seconds by class of link and part of the messages.

    `bytes` are those of a mean message; of each part, `moved` says whether there is any, and `latest` when
    the last one ends, s. `sent` counts mean messages of the rank that sends or receives most of each part.
    """

    seconds: Mapping[str, FloatArray]
    bytes: float
    moved: NDArray[np.bool_]
    sent: tuple[float, float]
    latest: tuple[float, ...]
    finish: FloatArray | None

    @classmethod
    def of(cls, key: _Key, exchange: Exchange, scale: float) -> "_Shape":
        """Return the shape of `exchange`; equal shapes are worked out once."""
        columns = [np.round(amount / scale, 12).tobytes() for amount in (exchange.sent, exchange.received)]
        return _shape(key, columns[0], columns[1], exchange.group.tobytes())


@lru_cache(maxsize=64)
def _shape(key: _Key, sent: bytes, received: bytes, group: bytes) -> _Shape:
    exchange = Exchange(np.frombuffer(sent), np.frombuffer(received), np.frombuffer(group, np.int64))
    links = _links(key)
    loads = links.spread(exchange)
    seconds = _both_ways(links.seconds(loads))
    size = float(exchange.sent.mean()) / float(np.bincount(exchange.group).mean())
    domain = np.arange(key.ranks, dtype=np.int64) // key.fabric.domain_size(key.per_host)
    near, far = _most(exchange, domain)
    sent_by = (near / size, far / size)
    shape = _Shape(seconds, size, np.asarray(loads.any(axis=1)), sent_by, (0.0,) * links.parts, None)
    return shape if key.ranks > MESSAGE_BY_MESSAGE else _followed(shape, links, exchange)


def _most(exchange: Exchange, domain: IntArray) -> tuple[float, float]:
    """Return the most bytes that a rank sends or receives inside its domain, and out of it."""
    group = exchange.group
    both = np.unique(np.stack([group, domain]), axis=1, return_inverse=True)[1].reshape(-1)
    near, far = 0.0, 0.0
    for mine, other in ((exchange.sent, exchange.received), (exchange.received, exchange.sent)):
        here, all_of = np.bincount(both, other)[both], np.bincount(group, other)[group]
        near = max(near, float((mine / exchange.totals * (here - other)).max()))
        far = max(far, float((mine / exchange.totals * (all_of - here)).max()))
    return near, far


def _both_ways(seconds: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
    """Return the same with links of both directions as busy as the busier one.

    Two levels have one class of links for both; what opposite directions leave idle is not lent out.
    """
    found = dict(seconds)
    for out, into in (("out", "in"), ("up", "down")):
        for name, there in seconds.items():
            back = f" {into} ".join(f"{name} ".split(f" {out} ", 1)).rstrip()
            if back != name and back in seconds:
                found[name] = found[back] = max(there, seconds[back], key=lambda one: float(one.sum()))
    return found


def _followed(shape: _Shape, links: Crossings, exchange: Exchange) -> _Shape:
    """Return the shape with the ends of messages, followed one by one.

    What ends no later than the busiest link, or only by as much as following rounds, is taken to end with it.
    """
    arrived = arrivals(links, exchange.messages)
    busiest, last = max(float(each.sum()) for each in shape.seconds.values()), float(arrived.max())
    if last <= (1.0 + ROUNDED) * busiest:
        arrived *= busiest / last
    latest = [float((arrived * part).max()) for part in (1.0 - links.far, links.far)]
    by_rank = np.maximum(arrived.max(axis=0), arrived.max(axis=1))
    finish = np.round(by_rank / max(busiest, *latest), 9)
    told = None if np.ptp(finish) == 0.0 else finish
    return replace(shape, latest=tuple(latest[: links.parts]), finish=told)
