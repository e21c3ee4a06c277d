"""The page of the dashboard, run by Streamlit without a browser: controls, numbers, errors in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("streamlit", reason="needs the extra dashboard")
pytest.importorskip("plotly", reason="needs the extra dashboard")

from streamlit.testing.v1 import AppTest

import analysis.dashboard
from analysis.dashboard import Choice, show
from simulator.errors import RecscaleError

PAGE = Path(str(analysis.dashboard.__file__)).with_name("page.py")
SECONDS = 120  # loading the libraries on a busy machine


@pytest.fixture
def page() -> AppTest:
    return AppTest.from_file(str(PAGE), default_timeout=SECONDS).run()


def numbers(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def control(page: AppTest, kind: str, label: str) -> Any:
    return next(one for one in getattr(page.sidebar, kind) if one.label == label)


def errors(page: AppTest) -> list[str]:
    assert not page.exception
    return [error.value for error in page.error]


def step_of(choice: Choice) -> str:
    return f"{show(choice).report.step_ms['mean']:,.4g} ms"


def test_the_page_opens_with_the_smallest_scenario(page: AppTest) -> None:
    assert errors(page) == []
    assert numbers(page)["Step"] == step_of(Choice("quickstart"))


def test_moved_controls_change_the_numbers(page: AppTest) -> None:
    control(page, "number_input", "Workers").set_value(16)
    control(page, "number_input", "Bandwidth, GB/s").set_value(5.0)
    control(page, "slider", "Skew of the keys").set_value(0.8)
    control(page, "number_input", "Batch per worker").set_value(4096).run()
    choice = Choice("quickstart", workers=16, bandwidth=5e9, skew=0.8, batch=4096)
    assert errors(page) == []
    assert numbers(page)["Step"] == step_of(choice)


def test_another_scenario_brings_its_own_values(page: AppTest) -> None:
    control(page, "number_input", "Workers").set_value(16)
    control(page, "selectbox", "Scenario").select("nestpipe/npu").run()
    assert control(page, "number_input", "Workers").value == 1536
    assert numbers(page)["Step"] == step_of(Choice("nestpipe/npu"))
    assert numbers(page)["USD per million"] == "-"


def test_a_policy_with_micro_batches_gets_a_control_for_them(page: AppTest) -> None:
    assert all(one.label != "Micro-batches" for one in page.sidebar.number_input)
    control(page, "selectbox", "Policy").select("nestpipe").run()
    control(page, "number_input", "Micro-batches").set_value(4).run()
    assert errors(page) == []
    assert numbers(page)["Step"] == step_of(Choice("quickstart", policy="nestpipe", micro_batches=4))


@pytest.mark.parametrize(
    ("move", "told"),
    [
        (lambda page: control(page, "number_input", "Workers").set_value(13), "13"),
        (lambda page: control(page, "number_input", "Batch per worker").set_value(10**8), "memory"),
        (lambda page: control(page, "selectbox", "Hardware").select("dgx_1"), "tf32"),
        (lambda page: control(page, "selectbox", "Policy").select("bagpipe"), "servers"),
    ],
    ids=["workers", "batch", "hardware", "policy"],
)
def test_what_cannot_be_is_said_in_one_line(page: AppTest, move: Callable[[AppTest], Any], told: str) -> None:
    move(page).run()
    (error,) = errors(page)
    assert told in error
    assert "\n" not in error
    assert "Traceback" not in error
    assert not page.metric


def test_the_page_recovers_from_a_wrong_value(page: AppTest) -> None:
    control(page, "number_input", "Workers").set_value(13).run()
    control(page, "number_input", "Workers").set_value(24).run()
    assert errors(page) == []
    assert numbers(page)["Step"] == step_of(Choice("quickstart", workers=24))


def test_a_folder_that_is_no_sweep_is_refused_and_the_rest_stays(page: AppTest, tmp_path: Path) -> None:
    page.text_input[0].set_value(str(tmp_path / "*none*"))
    page.button[0].click().run()
    (error,) = errors(page)
    assert "is not a folder of results" in error
    assert numbers(page)["Step"] == step_of(Choice("quickstart"))


def test_an_error_leaves_out_files_that_nobody_has_written() -> None:
    with pytest.raises(RecscaleError) as caught:
        show(Choice("quickstart", batch=10**9))
    page = AppTest.from_file(str(PAGE), default_timeout=SECONDS).run()
    control(page, "number_input", "Batch per worker").set_value(10**9).run()
    assert ".yaml" in str(caught.value)
    assert ".yaml" not in errors(page)[0]
