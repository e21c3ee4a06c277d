"""Starting the dashboard's server: on this machine only, unless told otherwise, and silent to the world."""

import ipaddress
import socket
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from analysis.dashboard.gatekeeping import Gate, Names
from simulator.errors import InputError

LOOPBACK = "127.0.0.1"
PORT = 8501
CLOSING_S = 1  # that open pages are given when the server ends
NEEDED = ("streamlit", "plotly")
OPEN = "anybody who reaches {host} can use the dashboard and read results in folders of this machine"


def settings(host: str, port: int) -> dict[str, Any]:
    """Return the server's settings: nothing is reported, watched, opened or fetched."""
    return {
        "server.address": host,
        "server.port": port,
        "server.headless": True,
        "server.fileWatcherType": "none",
        "server.runOnSave": False,
        "browser.gatherUsageStats": False,
        "browser.serverAddress": host,
        "client.showErrorDetails": "none",
        "client.toolbarMode": "minimal",
        "global.developmentMode": False,
    }


def warning(host: str) -> str | None:
    """Return what must be said about a host that others can reach, or None for one that they cannot."""
    return None if is_loopback(host) else OPEN.format(host=host)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check(host: str, port: int) -> None:
    """Raise InputError when the libraries are missing, or when nobody can listen there."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        what = ", ".join(missing)
        raise InputError(f'the dashboard needs {what}: pip install "recscale[dashboard]"')
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"--host {host} --port {port}: {reason}; name another one") from None


def serve(host: str = LOOPBACK, port: int = PORT, names: Sequence[str] = ()) -> None:
    """Serve the dashboard until interrupted, under `names` as well. Raises InputError if it cannot start."""
    check(host, port)
    import uvicorn
    from streamlit import App
    from streamlit.web import bootstrap

    flags = {name.replace(".", "_"): value for name, value in settings(host, port).items()}
    bootstrap.load_config_options(flags)
    page = App(Path(__file__).with_name("page.py"))
    gate = Gate(page, Names(host, frozenset(names)))
    print(f"recscale: the dashboard is at {address(host, port)}", file=sys.stderr, flush=True)
    server = uvicorn.Config(
        gate, host, port, log_level="warning", access_log=False, timeout_graceful_shutdown=CLOSING_S
    )
    uvicorn.Server(server).run()


def address(host: str, port: int) -> str:
    """Return where a browser finds a server that listens on `host`."""
    name = {"0.0.0.0": LOOPBACK, "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}"
