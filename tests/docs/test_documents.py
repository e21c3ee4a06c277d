"""Every `bash` and `python` block of README.md and docs/ is run, page by page, from top to bottom.

The blocks of a page share one empty folder, so a page may make a file in one block and use it in the next;
each block is a process of its own that starts in that folder. In the gate, `recscale` and `python` are
forked off a process that has imported the product; at night they start as anywhere else.

A `console` fence, and a block right after a line `<!-- not run -->`, is shown and not run. Other languages
are shown too, but only those named below: a fence marked `sh` or not at all would look like a tested
example and be none.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tiers import TIER, at_night
from warm import warm_commands

CHECKOUT = Path(__file__).resolve().parents[2]
NOT_RUN = "<!-- not run -->"
SECONDS_PER_BLOCK = 180
LONG_PAGES = ("docs/guides/calibrate.md", "docs/guides/planning.md", "docs/guides/stragglers.md")
SHOWN = {
    "console",
    "csv",
    "diff",
    "html",
    "ini",
    "json",
    "latex",
    "make",
    "markdown",
    "mermaid",
    "text",
    "toml",
    "yaml",
}
OPENING = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+.-]*)")


@dataclass(frozen=True)
class Block:
    """One fenced block: the line of its fence (from 1), its language, its text, and whether it is run."""

    line: int
    language: str
    text: str
    run: bool


def pages() -> list[Path]:
    return [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order; ValueError when one is never closed."""
    lines = text.splitlines()
    at, before = 0, ""
    while at < len(lines):
        opening = OPENING.match(lines[at])
        if not opening:
            before = lines[at].strip() or before
            at += 1
            continue
        end = closing_line(lines, at, opening["fence"])
        body = "\n".join(line.removeprefix(opening["indent"]) for line in lines[at + 1 : end])
        run = opening["language"] in RUNNERS and before != NOT_RUN
        yield Block(at + 1, opening["language"], body + "\n", run)
        at, before = end + 1, ""


def closing_line(lines: list[str], opened: int, fence: str) -> int:
    for number in range(opened + 1, len(lines)):
        line = lines[number].strip()
        if line.startswith(fence) and not line.strip(fence[0]):
            return number
    raise ValueError(f"the fence opened in line {opened + 1} is never closed")


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the commands that the blocks run, to stand first on PATH."""
    if TIER == "nightly":
        yield Path(sys.executable).parent
    else:
        with warm_commands(tmp_path_factory.mktemp("warm")) as folder:
            yield folder


def bash_command(block: Block, folder: Path) -> list[str]:
    return ["bash", "-euo", "pipefail", "-c", block.text]


def python_command(block: Block, folder: Path) -> list[str]:
    script = folder.with_name(f"{folder.name}_line_{block.line}.py")
    script.write_text(block.text, encoding="utf-8")
    return ["python", str(script)]


RUNNERS: dict[str, Callable[[Block, Path], list[str]]] = {"bash": bash_command, "python": python_command}


def run_block(block: Block, folder: Path, commands: Path) -> subprocess.CompletedProcess[str]:
    """Run one block in `folder`, the tested commands first on PATH, with nothing on standard input."""
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        RUNNERS[block.language](block, folder),
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS_PER_BLOCK,
    )


def page_name(page: Path) -> str:
    return page.relative_to(CHECKOUT).as_posix()


@pytest.mark.parametrize(
    "page", [at_night(page) if page_name(page) in LONG_PAGES else page for page in pages()], ids=page_name
)
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path, commands: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.run:
            done = run_block(block, folder, commands)
            assert done.returncode == 0, (
                f"{page_name(page)}:{block.line} exits {done.returncode}:\n{done.stdout}"
            )


@pytest.mark.parametrize("page", pages(), ids=page_name)
def test_every_block_of_the_page_says_what_it_is(page: Path) -> None:
    blocks = list(blocks_of(page.read_text(encoding="utf-8")))
    unknown = {f"line {b.line}": b.language for b in blocks if b.language not in {*RUNNERS, *SHOWN}}
    assert not unknown, f"{page_name(page)}: give these blocks one of {sorted({*RUNNERS, *SHOWN})}"


def test_the_readme_runs_something() -> None:
    assert any(block.run for block in blocks_of((CHECKOUT / "README.md").read_text(encoding="utf-8")))


def test_a_block_marked_as_not_run_and_a_console_block_are_not_run() -> None:
    text = f"{NOT_RUN}\n\n```bash\nexit 1\n```\n```console\n$ exit 1\n```\n```bash\ntrue\n```\n"
    assert [(block.line, block.run) for block in blocks_of(text)] == [(3, False), (6, False), (9, True)]


def test_a_block_in_a_list_loses_its_indent() -> None:
    (block,) = blocks_of("1. do\n\n   ```python title=x\n   if 1:\n       print()\n   ```\n")
    assert (block.language, block.text) == ("python", "if 1:\n    print()\n")


def test_a_fence_inside_a_longer_fence_is_text() -> None:
    (block,) = blocks_of("````markdown\n```bash\nexit 1\n```\n````\n")
    assert (block.language, block.run) == ("markdown", False)


def test_a_fence_that_is_never_closed_is_refused() -> None:
    with pytest.raises(ValueError, match="line 2 is never closed"):
        list(blocks_of("text\n```bash\ntrue\n"))


@pytest.mark.parametrize(
    ("language", "text"), [("bash", "false | true\n"), ("python", "raise SystemExit(3)\n")]
)
def test_a_failing_block_is_seen_to_fail(language: str, text: str, tmp_path: Path, commands: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    assert run_block(Block(1, language, text, True), folder, commands).returncode != 0
