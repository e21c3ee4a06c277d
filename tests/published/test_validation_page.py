"""The validation page is up to date and stays readable."""

from pathlib import Path

import pytest

from analysis.validation_page import page


@pytest.fixture(scope="module")
def text(checkout: Path) -> str:
    return page(checkout / "scenarios")


def test_the_validation_page_is_up_to_date(text: str, checkout: Path) -> None:
    shipped = (checkout / "docs/validation.md").read_text(encoding="utf-8")
    assert shipped == text, "run: python -m analysis.validation"


def test_no_line_of_the_validation_page_is_wider_than_110_characters(text: str) -> None:
    assert [line for line in text.splitlines() if len(line) > 110] == []


def test_predictions_stand_worst_first(text: str) -> None:
    table = text.split("## Predictions")[1].split("What this is worth")[0]
    lines = [line.split("|") for line in table.splitlines() if line.startswith("| T")]
    errors = [abs(float(cells[6])) for cells in lines if cells[6].strip() != "-"]
    assert len(errors) > 20
    assert errors == sorted(errors, reverse=True)
