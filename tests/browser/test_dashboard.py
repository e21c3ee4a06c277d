"""The dashboard in a real browser, served as people serve it: it answers, refuses, and stays at home."""

import re
import shutil
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from analysis.dashboard import Choice, show
from analysis.sweep import Dataset, read_grid
from analysis.sweep.points import Task, run_task
from simulator.scenario import load, run_scenario

METRICS = """return Object.fromEntries([...document.querySelectorAll('[data-testid="stMetric"]')].map(one => [
  one.querySelector('[data-testid="stMetricLabel"]').innerText,
  one.querySelector('[data-testid="stMetricValue"]').innerText]))"""
ERRORS = """return [...document.querySelectorAll('[data-testid="stAlert"]')].map(one => one.innerText)"""
LISTENING = "0A"


@pytest.fixture
def page(browser: Any, server: Any) -> Iterator[Any]:
    """The page, freshly loaded; afterwards nothing must have complained or asked elsewhere."""
    browser.look(1280, 1400)
    browser.open(server.address)
    browser.until(lambda: step(browser) == step_of(Choice("quickstart")), "the first step")
    yield browser
    assert browser.complaints() == []
    for address in browser.asked():
        assert re.match(rf"(http|ws)://127\.0\.0\.1:{server.port}/|data:|blob:|about:|chrome:", address), (
            address
        )


def step(browser: Any) -> str:
    return str(browser.run(METRICS).get("Step", ""))


def step_of(choice: Choice) -> str:
    return f"{show(choice).report.step_ms['mean']:,.4g} ms"


def errors(browser: Any) -> list[str]:
    return list(browser.run(ERRORS))


def put(browser: Any, label: str, text: str) -> None:
    """Type into the field with this label, and leave it with Enter."""
    from selenium.webdriver.common.keys import Keys

    field = browser.until(
        lambda: browser.driver.find_elements("css selector", f'input[aria-label^="{label}"]'),
        f"a field {label}",
    )[0]
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(text, Keys.ENTER)


def test_a_moved_control_changes_the_numbers(page: Any) -> None:
    put(page, "Workers", "16")
    page.until(lambda: step(page) == step_of(Choice("quickstart", workers=16)), "the step on 16 workers")
    put(page, "Bandwidth", "5")
    moved = Choice("quickstart", workers=16, bandwidth=5e9)
    page.until(lambda: step(page) == step_of(moved), "the step at 5 GB/s")
    page.until(
        lambda: page.run("return document.querySelectorAll('.js-plotly-plot').length") == 4, "four charts"
    )
    assert errors(page) == []


def test_a_value_that_cannot_be_is_said_in_the_page_and_can_be_mended(page: Any) -> None:
    put(page, "Workers", "13")
    (said,) = page.until(lambda: errors(page), "an error")
    assert "13" in said
    assert "Traceback" not in page.text
    put(page, "Workers", "24")
    page.until(lambda: step(page) == step_of(Choice("quickstart", workers=24)), "the step on 24 workers")
    assert errors(page) == []


def test_another_policy_can_be_picked(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    field = page.driver.find_element("css selector", 'input[aria-label*="Policy"]')
    field.click()
    field.send_keys("dual_buffer", Keys.ENTER)
    wanted = step_of(Choice("quickstart", policy="dual_buffer"))
    page.until(lambda: step(page) == wanted, "the step under dual_buffer")


def test_the_downloaded_scenario_gives_the_step_of_the_screen(page: Any, tmp_path: Path) -> None:
    put(page, "Workers", "32")
    wanted = step_of(Choice("quickstart", workers=32))
    page.until(lambda: step(page) == wanted, "the step on 32 workers")
    allow = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", allow)
    page.driver.find_element("css selector", '[data-testid="stDownloadButton"] button').click()
    path = tmp_path / "quickstart.yaml"
    page.until(path.exists, "the download")
    report = run_scenario(load(path), "vector").report
    assert report.ranks == 32
    assert f"{report.step_ms['mean']:,.4g} ms" == wanted


def test_a_sweep_is_loaded_and_what_is_none_refused(page: Any, checkout: Path, tmp_path: Path) -> None:
    sweep_tab = next(
        one for one in page.driver.find_elements("css selector", '[role="tab"]') if one.text == "Sweep"
    )
    sweep_tab.click()
    put(page, "Folder", str(tmp_path / "nothing"))
    (said,) = page.until(lambda: errors(page), "an error")
    assert "is not a folder of results" in said
    put(page, "Folder", str(sweep_in(checkout, tmp_path)))
    page.until(lambda: "2 points" in page.text, "the sweep")
    assert errors(page) == []


def sweep_in(checkout: Path, folder: Path) -> Path:
    shutil.copy(checkout / "scenarios/quickstart.yaml", folder)
    (folder / "a.grid.yaml").write_text(
        "scenario: quickstart.yaml\nvary: [{path: workers, values: [8, 16]}]\n"
    )
    grid = read_grid(folder / "a.grid.yaml")
    Dataset(folder / "out").add(run_task(Task(grid.base, "vector", grid.points)))
    return folder / "out"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_and_follows_its_scheme(browser: Any, server: Any, scheme: str) -> None:
    browser.look(390, 844, scheme)
    browser.open(server.address)
    browser.until(lambda: step(browser), "the first step")
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    paper = "return getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor"
    red = int(re.findall(r"\d+", browser.run(paper))[0])
    assert (red > 200) is (scheme == "light")


def test_only_this_machine_can_ask_the_server(server: Any) -> None:
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    if not tables[0].exists():
        pytest.skip("needs /proc/net/tcp to see who listens")
    lines = [
        line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]
    ]
    mine = [
        line[1]
        for line in lines
        if line[3] == LISTENING and int(line[1].rpartition(":")[2], 16) == server.port
    ]
    assert mine == [f"0100007F:{server.port:04X}"]


@pytest.mark.parametrize(
    "told", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Host": "192.0.2.7"}]
)
def test_another_site_that_resolves_to_this_machine_is_refused(server: Any, told: dict[str, str]) -> None:
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for path, more in (("/", {}), ("/_stcore/stream", {**upgrade, **key})):
        own = HTTPConnection("127.0.0.1", server.port, timeout=30)
        own.request("GET", path, headers={**told, **more})
        assert own.getresponse().status == 403
