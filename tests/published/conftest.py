"""Predictions that several files of this folder ask about, made once."""

from pathlib import Path
from typing import Any

import pytest

from analysis.validation import rows


@pytest.fixture(scope="session")
def published_rows(checkout: Path) -> list[dict[str, Any]]:
    """One record per published row, in the order of the file."""
    return rows(checkout / "scenarios")
