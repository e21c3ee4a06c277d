"""`recscale plan`: from a question to plans that nothing beats."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from analysis.cli.options import Format, FormatName, takes
from analysis.cli.output import tell
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from analysis.plan import Answered, Question


@dataclass(frozen=True)
class PlanOptions:
    """What `plan` takes."""

    question: Annotated[Path, typer.Argument(metavar="QUESTION", help="A planning question (YAML).")]
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1024, help="Processes (default: one per core).")
    ] = None
    choose: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The plan to improve (default: the cheapest).")
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the chosen plan there as a scenario, and the answer."),
    ] = None
    format: FormatName = Format.table


@takes(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Search hardware, size, policy and sharding for a target; print what nothing beats, or would help."""
    from analysis.cli.output import Answer, flat
    from analysis.cli.views.plan import draw_answer

    question, found = _answered(options)
    data = found.to_dict()
    rows = [flat(row) for row in data["plans"]]
    Answer(data, rows, lambda console: draw_answer(found, console)).show(options.format)
    if options.out is not None:
        _save(question, found, options.out)
    if not found.plans:
        _no_plan(found)
    if found.wrong:
        told = f"{found.wrong:,} of {found.tried:,} candidates are refused as input; the answer says why"
        tell(told)


def _no_plan(found: "Answered") -> NoReturn:
    """Raise what there is instead of plans.

    RuntimeError, as a defect, when candidates failed for no fault of theirs: then the answer is not "no".
    InputError when all are refused as input, and InfeasibleError otherwise.
    """
    from simulator.errors import InfeasibleError, InputError

    if found.defects:
        raise RuntimeError(f"{found.defects:,} of {found.tried:,} candidates failed: {found.reasons[0]}")
    if found.tried == found.failed:
        problem = f"no candidate can run: {found.reasons[0]}"
        raise InputError(problem) if found.wrong == found.tried else InfeasibleError(problem)
    nearest = next(iter(found.changes), None)
    would = "" if nearest is None else f"; {nearest.what}{' would do' if nearest.known else ''}"
    raise InfeasibleError(f"no plan meets the target{would}")


def _answered(options: PlanOptions) -> "tuple[Question, Answered]":
    from os import cpu_count

    from analysis.plan import answer, read_question
    from analysis.sweep.executors import LastingProcesses

    question = read_question(options.question)
    choose = None if options.choose is None else options.choose - 1
    processes = LastingProcesses(options.jobs or cpu_count() or 1)
    with processes as executor, progress("planning", unit="candidates") as work:
        return question, answer(question, executor, choose, work.within)


def _save(question: "Question", found: "Answered", folder: Path) -> None:
    from analysis.plan.saving import costs_of_its_own, save_plan

    written = save_plan(question, found, folder)
    tell(f"wrote {', '.join(path.name for path in written)} to {folder}")
    if costs := costs_of_its_own(found):
        tell(costs)
