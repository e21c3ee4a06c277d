"""Who may ask the dashboard: no page of another site, whatever its name resolves to."""

import asyncio
from typing import Any

import pytest

from analysis.dashboard.gatekeeping import Gate, Message, Names, Receive, Send, without_port
from analysis.dashboard.serving import address

HERE = Names("127.0.0.1")


def answer(
    kind: str, host: str | list[str], origin: str | None = None, names: Names = HERE
) -> list[dict[str, Any]]:
    """Return what a gate sends for one request; `inner` stands for what the page would answer."""
    sent: list[dict[str, Any]] = []

    async def inner(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "inner"})

    async def send(message: Message) -> None:
        sent.append(dict(message))

    async def receive() -> Message:
        return {}

    hosts = [host] if isinstance(host, str) else host
    headers = [(b"host", one.encode()) for one in hosts]
    headers += [(b"origin", origin.encode())] if origin is not None else []
    asyncio.run(Gate(inner, names)({"type": kind, "headers": headers}, receive, send))
    return sent


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("evil.example", None),
        ("evil.example:8501", "http://evil.example:8501"),
        ("127.0.0.1:8501", "http://evil.example"),
        ("127.0.0.1:8501", "http://127.0.0.1:3000"),
        ("127.0.0.1:8501", "null"),
        ("localhost.evil.example", None),
        ("127.0.0.1.nip.io", None),
        ("10.1.2.3:8501", None),
        ([], None),
        (["127.0.0.1", "evil.example"], None),
        ("[evil]", None),
    ],
)
def test_a_page_of_another_site_gets_no_answer(kind: str, host: str, origin: str | None) -> None:
    first = answer(kind, host, origin)[0]
    assert first.get("status") == 403 or first == {"type": "websocket.close", "code": 1008, "reason": ""}


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8501", None),
        ("localhost:9000", "http://localhost:9000"),
        ("LocalHost", "http://localhost"),
        ("[::1]:8501", "http://[::1]:8501"),
    ],
)
def test_the_own_page_is_answered_under_every_name_of_this_machine(
    kind: str, host: str, origin: str | None
) -> None:
    assert answer(kind, host, origin) == [{"type": "inner"}]


def test_a_server_for_others_takes_addresses_and_the_names_it_is_given() -> None:
    names = Names("0.0.0.0", frozenset({"Lab.example"}))
    assert names.allow("10.1.2.3") and names.allow("lab.example") and names.allow("localhost")
    assert not names.allow("evil.example")
    assert Names("gpu7").allow("gpu7") and Names("gpu7").allow("192.168.1.7")


def test_what_is_no_request_passes() -> None:
    assert answer("lifespan", "evil.example") == [{"type": "inner"}]


def test_ports_and_brackets_are_no_part_of_a_name() -> None:
    assert [without_port(one) for one in ("a:1", "a", "[::1]:2", "[::1]")] == ["a", "a", "::1", "::1"]
    told = [address(host, 1) for host in ("127.0.0.1", "0.0.0.0", "::1", "gpu7")]
    assert told == ["http://127.0.0.1:1", "http://127.0.0.1:1", "http://[::1]:1", "http://gpu7:1"]
