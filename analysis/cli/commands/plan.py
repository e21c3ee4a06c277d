"""`recscale plan`: from a question to plans that nothing beats."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.cli.options import Format, FormatName, takes
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
    from simulator.errors import InfeasibleError

    question, found = _answered(options)
    data = found.to_dict()
    rows = [flat(row) for row in data["plans"]]
    Answer(data, rows, lambda console: draw_answer(found, console)).show(options.format)
    if options.out is not None:
        _save(question, found, options.out)
    if found.tried and found.tried == found.failed:
        raise InfeasibleError(f"no candidate can run: {found.reasons[0]}")
    if not found.plans:
        why = f"; {found.changes[0].what} would do" if found.changes else ""
        raise InfeasibleError(f"no plan meets the target{why}")


def _answered(options: PlanOptions) -> "tuple[Question, Answered]":
    from os import cpu_count

    from analysis.plan import answer, read_question
    from analysis.sweep.executors import LocalProcesses

    question = read_question(options.question)
    choose = None if options.choose is None else options.choose - 1
    workers = LocalProcesses(options.jobs or cpu_count() or 1)
    with workers.start() as executor, progress("planning", unit="candidates") as work:
        return question, answer(question, executor, choose, work.within)


def _save(question: "Question", found: "Answered", folder: Path) -> None:
    from analysis.plan.saving import save_plan

    written = save_plan(question, found, folder)
    print(f"recscale: wrote {', '.join(path.name for path in written)} to {folder}", file=sys.stderr)
