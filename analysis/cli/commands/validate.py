"""`recscale validate`: predictions against measured cases."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from analysis.cli.options import Format, FormatName, takes
from analysis.cli.progress import progress


@dataclass(frozen=True)
class ValidateOptions:
    """What `validate` takes."""

    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder with training, collectives, kernels, traces, local_runs (default: published).",
        ),
    ] = None
    format: FormatName = Format.table


@takes(ValidateOptions)
def validate(options: ValidateOptions) -> None:
    """Predict measured cases and compare, worst first.

    Training steps, collectives, matrix products, profiled steps and local runs of a folder; without one, the
    published figures that the shipped scenarios reproduce. Rows that a parameter was fitted on are marked.
    """
    from analysis.cli.output import Answer, flat
    from analysis.cli.views.validation import draw_validation, worst_first
    from analysis.validating import published, validate_folder

    with progress("predicting measured cases", unit="") as work:
        given, watch = options.data, work.within
        cases = worst_first(published(watch) if given is None else validate_folder(given, watch))
    rows = [case.record() for case in cases]
    Answer(rows, [flat(row) for row in rows], lambda console: draw_validation(cases, console)).show(
        options.format
    )
