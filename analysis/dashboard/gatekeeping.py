"""Who may speak to the dashboard: pages that it served itself, under a name that is its own.

A page of another site can have its name resolved to this machine (DNS rebinding) and then ask our server as
if it were that site's; the browser tells the name all the same, in `Host` and `Origin`. Numeric addresses
cannot be rebound.
"""

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

REFUSED = 403
POLICY_VIOLATION = 1008  # the code with which a websocket is closed
WHY = b"This is not a name of this dashboard; recscale dashboard --name NAME allows one more.\n"


@dataclass(frozen=True)
class Names:
    """The names under which a server on `host` is asked: its own, those `given`, and any numeric address.

    A server on this machine alone has no address but those of this machine.
    """

    host: str
    given: frozenset[str] = field(default_factory=frozenset)

    def allow(self, name: str) -> bool:
        """Whether a browser may ask for the server under `name`, a host without its port."""
        known = {"localhost", self.host.lower(), *(one.lower() for one in self.given)}
        address = _address(name)
        if address is None or name.lower() in known:
            return name.lower() in known
        own = _address(self.host)
        return address.is_loopback or not (self.host == "localhost" or (own is not None and own.is_loopback))


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


@dataclass(frozen=True)
class Gate:
    """An ASGI application that passes on what may ask `inner` and refuses the rest with 403."""

    inner: Application
    names: Names

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request or connection."""
        if scope["type"] not in ("http", "websocket") or self._may_pass(scope["headers"]):
            await self.inner(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": ""})
        else:
            headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(WHY)).encode())]
            await send({"type": "http.response.start", "status": REFUSED, "headers": headers})
            await send({"type": "http.response.body", "body": WHY})

    def _may_pass(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether the one `Host` is ours, and `Origin`, where there is one, the same."""
        told = [(name.lower(), value.decode("latin-1").lower()) for name, value in headers]
        hosts = [value for name, value in told if name == b"host"]
        origins = [value.partition("://")[2] for name, value in told if name == b"origin"]
        return len(hosts) == 1 and self.names.allow(without_port(hosts[0])) and set(origins) <= set(hosts)


def without_port(host: str) -> str:
    """Return the name or address in a `Host`, which may end in a port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
