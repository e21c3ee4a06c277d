"""The charts of policies in the documents show what the simulator says today."""

from pathlib import Path

import pytest

from analysis.policy_charts import CHARTS, DIGEST, FOLDER, digest, draw
from simulator.policies import catalog


def told(path: Path) -> str:
    from PIL import Image

    with Image.open(path) as picture:
        return str(picture.info[DIGEST])


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_shows_the_schedule_of_today(name: str, checkout: Path) -> None:
    chart = CHARTS[name]
    assert told(checkout / FOLDER / f"{name}.png") == digest(chart.run(), chart.steps), (
        "draw the charts anew: python -m analysis.policy_charts"
    )


def test_every_chart_is_of_a_policy_and_stands_in_a_document(checkout: Path) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (checkout / "docs" / "concepts").glob("*.md"))
    for name in CHARTS:
        assert name in catalog.BUILT_IN
        assert f"(charts/{name}.png)" in text
    drawn = {path.stem for path in (checkout / FOLDER).glob("*.png")}
    assert set(CHARTS) <= drawn


def test_a_picture_carries_the_digest_of_what_it_shows(tmp_path: Path) -> None:
    chart = CHARTS["hugectr"]
    assert told(draw("hugectr", tmp_path)) == digest(chart.run(), chart.steps)
    assert digest(chart.run(), chart.steps) != digest(chart.run(), chart.steps - 1)
