"""The validation page is up to date and stays readable."""

from pathlib import Path
from typing import Any

import pytest

from analysis.validation_page import page


@pytest.fixture(scope="module")
def text(checkout: Path, published_rows: list[dict[str, Any]]) -> str:
    return page(checkout / "scenarios", published_rows)


def test_the_validation_page_is_up_to_date(text: str, checkout: Path) -> None:
    shipped = (checkout / "docs/validation.md").read_text(encoding="utf-8")
    assert shipped == text, "run: python -m analysis.validation"


def test_no_line_of_the_validation_page_is_wider_than_110_characters(text: str) -> None:
    assert [line for line in text.splitlines() if len(line) > 110] == []


def lines_between(text: str, start: str, end: str) -> list[list[str]]:
    """Return the cells of the rows of figures between two phrases."""
    table = text.split(start)[1].split(end)[0]
    return [
        [cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("| T")
    ]


@pytest.mark.parametrize(
    ("start", "end", "at_least"),
    [("## Clean predictions", "## Predictions", 4), ("## Predictions", "What this is worth", 15)],
)
def test_predictions_stand_worst_first(start: str, end: str, at_least: int, text: str) -> None:
    lines = lines_between(text, start, end)
    errors = [abs(float(cells[6])) for cells in lines if cells[6] != "-"]
    assert len(lines) >= at_least
    assert errors == sorted(errors, reverse=True)


def test_clean_predictions_and_those_that_share_with_the_fit_stand_apart(text: str) -> None:
    clean = lines_between(text, "## Clean predictions", "## Predictions")
    shared = lines_between(text, "## Predictions", "What this is worth")
    assert {cells[-2] for cells in clean} == {"-"}
    assert all(cells[-2].startswith("T") for cells in shared)
    assert ", ".join(sorted((cells[1] for cells in clean), key=lambda name: int(name[1:3]))) in text
