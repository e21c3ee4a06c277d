"""The chosen plan as files: its scenario, which `recscale run` repeats, and the whole answer."""

from pathlib import Path
from shutil import copyfile
from typing import Any

from analysis.plan.answering import Answered
from analysis.plan.basis import Figure
from analysis.plan.question import Question
from analysis.sweep.points import at_point
from simulator.results.export import replacing, write_json
from simulator.scenario.named_files import named_files
from simulator.scenario.places import inside

ANSWER, SCENARIO = "answer.json", "scenario.yaml"


def save_plan(question: Question, answered: Answered, folder: Path) -> list[Path]:
    """Write answer.json, and the chosen plan as scenario.yaml with the files that it names.

    Returns the paths. Raises OSError when the folder cannot be written to.
    """
    write_json(folder / ANSWER, answered.to_dict())
    if answered.chosen is None:
        return [folder / ANSWER]
    scenario = at_point(question.base, answered.plans[answered.chosen].candidate.settings)
    data = {"name": scenario.name, **scenario.document.data}
    home = Path(question.base.file).parent
    copied = [_copied(inside(home, name), inside(folder, name)) for name in _named(data)]
    _write_scenario(folder / SCENARIO, data, _head(answered))
    return [folder / SCENARIO, folder / ANSWER, *copied]


def costs_of_its_own(answered: Answered) -> str:
    """Say what a run of the chosen plan cannot know: prices and powers that stand in the question alone."""
    if answered.chosen is None:
        return ""
    plan = answered.plans[answered.chosen]
    rate = next(one for one in answered.basis.rates if one.hardware == plan.candidate.hardware)
    pairs = ((rate.usd_per_hour, "USD/h"), (rate.watts, "W"))
    own = [f"{one.amount:,.6g} {unit}" for one, unit in pairs if one.amount is not None and _asked(one)]
    told = f"the plan counts {' and '.join(own)} per accelerator, as the question says"
    return f"{told}; a run of this file counts what its cluster says" if own else ""


def _asked(figure: Figure) -> bool:
    """Whether it is the question that says so (see `basis`)."""
    return figure.of.startswith("money.")


def _head(answered: Answered) -> str:
    """Return the comment at the head of the scenario."""
    what = f"Plan {(answered.chosen or 0) + 1} of {len(answered.plans)} for a question"
    costs = costs_of_its_own(answered)
    return "".join(f"# {line}.\n" for line in (f"{what}; `recscale plan --out` wrote it", costs) if line)


def _write_scenario(path: Path, data: dict[str, Any], head: str) -> None:
    import yaml

    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
    with replacing(path) as unfinished:
        unfinished.write_text(head + text, encoding="utf-8")


def _named(data: dict[str, Any]) -> list[str]:
    """Return the files that a scenario names, each once."""
    return list(dict.fromkeys(named_files(data)))


def _copied(source: Path, target: Path) -> Path:
    if source != target.resolve():
        target.parent.mkdir(parents=True, exist_ok=True)
        copyfile(source, target)
    return target
