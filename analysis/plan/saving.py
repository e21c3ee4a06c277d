"""The chosen plan as files: its scenario, which `recscale run` repeats, and the whole answer."""

from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile
from typing import Any

from analysis.plan.answering import Answered
from analysis.plan.question import Question
from analysis.sweep.points import at_point
from simulator.errors import InputError
from simulator.results.export import replacing, write_json
from simulator.scenario.places import inside

ANSWER, SCENARIO = "answer.json", "scenario.yaml"
LONGEST_PATH = 1000


def save_plan(question: Question, answered: Answered, folder: Path) -> list[Path]:
    """Write answer.json, and the chosen plan as scenario.yaml with the files that it names.

    Returns the paths. Raises OSError when the folder cannot be written to.
    """
    write_json(folder / ANSWER, answered.to_dict())
    if answered.chosen is None:
        return [folder / ANSWER]
    scenario = at_point(question.base, answered.plans[answered.chosen].candidate.settings)
    data = {"name": scenario.name, **scenario.document.data}
    copied = [
        _copied(source, folder / name) for name, source in _files(data, Path(question.base.file).parent)
    ]
    _write_scenario(
        folder / SCENARIO, data, f"Plan {answered.chosen + 1} of {len(answered.plans)} for a question"
    )
    return [folder / SCENARIO, folder / ANSWER, *copied]


def _write_scenario(path: Path, data: dict[str, Any], what: str) -> None:
    import yaml

    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
    with replacing(path) as unfinished:
        unfinished.write_text(f"# {what}; `recscale plan --out` wrote it.\n{text}", encoding="utf-8")


def _files(part: Any, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files in `folder` or below that a scenario names, by their names in it."""
    if isinstance(part, dict | list):
        for item in part.values() if isinstance(part, dict) else part:
            yield from _files(item, folder)
    elif isinstance(part, str) and 0 < len(part) <= LONGEST_PATH and ".." not in Path(part).parts:
        try:
            source = inside(folder, part)
            found = source.is_file()
        except (InputError, OSError, ValueError):  # text that is no path
            return
        if found:
            yield part, source


def _copied(source: Path, target: Path) -> Path:
    if source != target.resolve():
        target.parent.mkdir(parents=True, exist_ok=True)
        copyfile(source, target)
    return target
