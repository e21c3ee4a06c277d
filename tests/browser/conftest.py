"""A real browser for the tests of this folder: Chromium as the system has it, headless, in a new profile."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
START_S = 120  # a busy machine


@dataclass
class Browser:
    """Chromium under the hand of a test."""

    driver: Any

    def open(self, address: str) -> None:
        """Load a page; what was logged before is forgotten."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(address)

    def look(self, width: int, height: int, scheme: str = "light") -> None:
        """Take the size of a screen, and its owner's wish for a light or dark page."""
        wish = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def run(self, script: str, *values: Any) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(script, *values)

    @property
    def text(self) -> str:
        """What a reader sees."""
        return str(self.run("return document.body.innerText"))

    def until(self, wanted: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
        """Return what `wanted` gives as soon as that is something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = wanted()
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"{what} did not happen within {seconds:g} s; the page says: {self.text[:2000]}")

    def complaints(self) -> list[str]:
        """Return the errors that the page has written to its console."""
        return [one["message"] for one in self.driver.get_log("browser") if one["level"] == "SEVERE"]

    def asked(self) -> list[str]:
        """Return the addresses that the page has asked for, sockets included."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            told = message["params"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(told["request"]["url"])
            if message["method"] == "Network.webSocketCreated":
                found.append(told["url"])
        return found


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start Chromium; the tests are skipped where there is none."""
    pytest.importorskip("selenium", reason="needs selenium (the extra dev)")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    started = start(program, driver, tmp_path_factory.mktemp("profile"))
    yield Browser(started)
    started.quit()


def start(program: str, driver: str, profile: Path) -> Any:
    """Start the browser with an empty profile; as root it cannot have its sandbox."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else [])):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


@dataclass(frozen=True)
class Server:
    """A dashboard that is running."""

    port: int
    process: "subprocess.Popen[str]"

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start `recscale dashboard` on a free port of this machine."""
    pytest.importorskip("streamlit", reason="needs the extra dashboard")
    pytest.importorskip("plotly", reason="needs the extra dashboard")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, "-m", "simulator", "dashboard", "--port", str(port)]
    with log.open("w") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, text=True)
    try:
        wait_for(port, process, log)
        yield Server(port, process)
    finally:
        process.terminate()
        process.wait(30)


def wait_for(port: int, process: "subprocess.Popen[str]", log: Path) -> None:
    """Return when the server answers."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the dashboard did not start:\n{log.read_text()}")
