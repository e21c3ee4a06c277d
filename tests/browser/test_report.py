"""The report in a real browser: complete, inert, alone, and readable on any screen."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from analysis.report import write_report
from analysis.saving import save_run
from simulator.scenario import load, run_scenario

HOSTILE = "</title><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"
SCREENS = [(1280, 900), (390, 844)]


@pytest.fixture(scope="module")
def results(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    scenario = load(checkout / "scenarios/quickstart.yaml")
    for workers in (8, 16):
        save_run(run_scenario(scenario.with_workers(workers), "vector"), folder / f"on {workers}")
    return folder


@pytest.fixture(scope="module")
def page(results: Path) -> str:
    write_report(results, results / "report.html")
    return (results / "report.html").as_uri()


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_is_complete_alone_and_fits(
    browser: Any, page: str, width: int, height: int, scheme: str
) -> None:
    browser.look(width, height, scheme)
    browser.open(page)
    assert browser.complaints() == []
    assert {address.partition(":")[0] for address in browser.asked()} <= {"file", "data"}
    assert browser.run("return document.documentElement.scrollWidth") <= width
    broken = "return [...document.images].filter(one => !one.complete || !one.naturalWidth).length"
    assert browser.run("return document.images.length") == 5  # breakdown, scaling, cost, two charts
    assert browser.run(broken) == 0


def test_the_report_is_dark_where_dark_is_asked_for(browser: Any, page: str) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        browser.look(1280, 900, scheme)
        browser.open(page)
        look = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        seen[scheme] = [brightness(color) for color in browser.run(look)]
    (light_ink, light_paper), (dark_ink, dark_paper) = seen["light"], seen["dark"]
    assert light_paper - light_ink > 150
    assert dark_ink - dark_paper > 150


def brightness(color: str) -> float:
    numbers = color[color.index("(") + 1 :].rstrip(")").split(",")
    return sum(float(number) for number in numbers[:3]) / 3


def test_markup_in_a_name_runs_nothing_and_is_read_as_it_is(
    browser: Any, results: Path, tmp_path: Path
) -> None:
    record = orjson.loads((results / "on 8/run.json").read_bytes())
    record["report"]["scenario"] = HOSTILE
    (tmp_path / "run.json").write_bytes(orjson.dumps(record))
    write_report(tmp_path, tmp_path / "report.html", title=HOSTILE)
    browser.open((tmp_path / "report.html").as_uri())
    assert browser.run("return document.title") == HOSTILE
    assert browser.run("return document.scripts.length") == 0
    assert "</title><script>document.title" in browser.text
    assert browser.complaints() == []


def test_the_page_forbids_scripts_even_if_one_got_in(browser: Any, page: str) -> None:
    browser.open(page)
    make = "const one = document.createElement('script'); one.textContent = 'window.ran = 1'"
    browser.run(f"{make}; document.body.append(one)")
    assert browser.run("return window.ran") is None


def test_what_is_folded_opens_without_a_script(browser: Any, page: str) -> None:
    browser.open(page)
    folded = browser.driver.find_element("css selector", "details summary")
    before = browser.run("return document.querySelector('details table').checkVisibility()")
    folded.click()
    assert not before
    assert browser.run("return document.querySelector('details table').checkVisibility()")
