"""`recscale plan`: from a question to plans that nothing beats."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.cli.options import Format, FormatName, takes
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from analysis.plan import Answered


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
    format: FormatName = Format.table


@takes(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Search hardware, size, policy and sharding for a target; print what nothing beats, or would help."""
    from analysis.cli.output import Answer, flat
    from analysis.cli.views.plan import draw_answer
    from simulator.errors import InfeasibleError

    found = _answered(options)
    data = found.to_dict()
    rows = [flat(row) for row in data["plans"]]
    Answer(data, rows, lambda console: draw_answer(found, console)).show(options.format)
    if found.tried and found.tried == found.failed:
        raise InfeasibleError(f"no candidate can run: {found.reasons[0]}")
    if not found.plans:
        why = f"; {found.changes[0].what} would do" if found.changes else ""
        raise InfeasibleError(f"no plan meets the target{why}")
    if options.choose is not None and options.choose > len(found.plans):
        plans = "plan" if len(found.plans) == 1 else "plans"
        raise InfeasibleError(
            f"--choose: {options.choose} is more than the {len(found.plans)} {plans}; shown: the last"
        )


def _answered(options: PlanOptions) -> "Answered":
    from os import cpu_count

    from analysis.plan import answer, read_question
    from analysis.sweep.executors import LocalProcesses

    question = read_question(options.question)
    choose = None if options.choose is None else options.choose - 1
    workers = LocalProcesses(options.jobs or cpu_count() or 1)
    with workers.start() as executor, progress("planning", unit="candidates") as work:
        return answer(question, executor, choose, work.within)
