"""Starting the dashboard's server: on this machine only, unless told otherwise, and silent to the world."""

import ipaddress
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from simulator.errors import InputError

LOOPBACK = "127.0.0.1"
PORT = 8501
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


def serve(host: str = LOOPBACK, port: int = PORT) -> None:
    """Serve the dashboard until interrupted. Raises InputError when it cannot start."""
    check(host, port)
    from streamlit.web import bootstrap

    flags = {name.replace(".", "_"): value for name, value in settings(host, port).items()}
    bootstrap.load_config_options(flags)
    bootstrap.run(str(Path(__file__).with_name("page.py")), False, [], flags)
