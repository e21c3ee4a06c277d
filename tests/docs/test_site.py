"""The documentation site: it builds without a warning, and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOREIGN = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']?(https?:)?//""")
OWN_LINKS = re.compile(r"""<link\b[^>]*rel=["']?(?:canonical|next|prev)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_of_docs_has_a_page_of_the_site(site: Path) -> None:
    sources = sorted((CHECKOUT / "docs").rglob("*.md"))
    names = [path.relative_to(CHECKOUT / "docs").with_suffix("") for path in sources]
    pages = [site / ("" if name.name == "index" else str(name)) / "index.html" for name in names]
    assert [page for page in pages if not page.is_file()] == []


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page.read_text(encoding="utf-8"))
        foreign = [tag for tag in tags if FOREIGN.match(tag) and not OWN_LINKS.match(tag)]
        assert foreign == [], page


def test_the_reference_tells_what_a_stage_and_a_report_hold(site: Path) -> None:
    policies = (site / "reference/policies/index.html").read_text(encoding="utf-8")
    scenario = (site / "reference/scenario/index.html").read_text(encoding="utf-8")
    assert "issues the stage that many batches early" in policies
    assert "exposed_ms" in scenario
