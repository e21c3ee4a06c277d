"""The notebooks run, each in a kernel of its own and an empty folder, and show what they promise.

They are kept as jupytext sources (percent format), so that a change of one reads like any other change.
"""

import ast
import base64
import os
import resource
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jupytext
import pytest
from nbclient import NotebookClient
from tiers import at_night

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = sorted((CHECKOUT / "notebooks").glob("*.py"))
SECONDS_PER_CELL = 180  # of a loaded machine
CPU_SECONDS = 90  # of all notebooks together
PAPERS = {"nestpipe": "fig_nestpipe_", "google": "fig_google_", "bagpipe": "fig_bagpipe_"}
WHAT_IFS = {"policy_by_scale", "nic_bandwidth", "deadline"}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
LONG = ("bagpipe", "deadline", "google")
BYTES_OF_A_PICTURE = 10_000  # one that shows something has more


def cells(source: Path, kind: str) -> list[str]:
    return [cell.source for cell in jupytext.read(source).cells if cell.cell_type == kind]


def by_name(source: Path) -> str:
    return source.stem


@dataclass
class Executed:
    """Notebooks with their outputs, each run once, and the CPU seconds that its kernel took."""

    folder: Path
    done: dict[str, Any] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)

    def __call__(self, source: Path) -> Any:
        if source.stem not in self.done:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            (self.folder / source.stem).mkdir()
            self.done[source.stem] = run(source, self.folder / source.stem)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            self.cpu_seconds[source.stem] = spent
        return self.done[source.stem]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    return Executed(tmp_path_factory.mktemp("notebooks"))


def run(source: Path, folder: Path) -> Any:
    """Execute one notebook; nothing is written outside of `folder`."""
    homes = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    kept = dict(os.environ)
    os.environ.update({name: str(folder / ".jupyter") for name in homes})
    try:
        notebook = jupytext.read(source)
        client = NotebookClient(notebook, timeout=SECONDS_PER_CELL, kernel_name="python3")
        return client.execute(cwd=str(folder))
    finally:
        os.environ.clear()
        os.environ.update(kept)


def shown(notebook: Any, kind: str) -> list[str]:
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


def test_there_is_a_notebook_per_paper_and_per_question() -> None:
    assert {source.stem for source in SOURCES} == {*PAPERS, *WHAT_IFS}


@pytest.mark.parametrize("source", SOURCES, ids=by_name)
def test_a_notebook_asks_one_question_and_begins_with_its_settings(source: Path) -> None:
    title, code = cells(source, "markdown")[0].splitlines()[0], cells(source, "code")
    assert title.startswith("# ") and title.endswith("?")
    assert not any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(ast.parse(code[0])))
    assert all(isinstance(node, ast.Assign) for node in ast.parse(code[0]).body)


@pytest.mark.parametrize("source", SOURCES, ids=by_name)
def test_a_notebook_imports_analysis_and_defines_nothing(source: Path) -> None:
    tree = ast.parse("\n".join(cells(source, "code")))
    assert not [node for node in ast.walk(tree) if isinstance(node, DEFINITIONS)]
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert any(module.startswith("analysis") for module in modules)


@pytest.mark.parametrize("source", SOURCES, ids=by_name)
def test_each_setting_of_the_first_cell_is_used(source: Path) -> None:
    first, *rest = (ast.parse(code) for code in cells(source, "code"))
    set_there = {target.id for node in first.body for target in node.targets}  # type: ignore[attr-defined]
    read = {node.id for tree in rest for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert set_there <= read


@pytest.mark.parametrize(("name", "prefix"), PAPERS.items())
def test_a_paper_s_notebook_shows_every_figure_of_it(name: str, prefix: str) -> None:
    from analysis.figures import figures

    code = "\n".join(cells(CHECKOUT / "notebooks" / f"{name}.py", "code"))
    wanted = [figure for figure in figures() if figure.startswith(prefix)]
    assert wanted
    for figure in wanted:
        assert f'figure("{figure}").compute(*settings)' in code


def test_what_the_published_values_are_is_said() -> None:
    said = {name: "\n".join(cells(CHECKOUT / "notebooks" / f"{name}.py", "markdown")) for name in PAPERS}
    assert "from summaries of the paper" in said["nestpipe"].replace("\n", " ")
    assert "no evidence" in said["google"].replace("\n", " ")
    assert "Gloo" in said["bagpipe"]


@pytest.mark.parametrize(
    "source", [at_night(one) if one.stem in LONG else one for one in SOURCES], ids=by_name
)
def test_a_notebook_runs_and_shows_its_numbers(executed: Executed, source: Path) -> None:
    notebook = executed(source)
    pictures = [base64.b64decode(picture) for picture in shown(notebook, "image/png")]
    assert all(len(picture) > BYTES_OF_A_PICTURE for picture in pictures)
    assert shown(notebook, "text/html"), "no table"
    if source.stem in PAPERS:
        assert len(pictures) == len([cell for cell in cells(source, "code") if "figure(" in cell])


@pytest.mark.nightly
def test_the_notebooks_are_quick(executed: Executed) -> None:
    for source in SOURCES:
        executed(source)
    assert min(executed.cpu_seconds.values()) > 0
    assert sum(executed.cpu_seconds.values()) < CPU_SECONDS, executed.cpu_seconds
