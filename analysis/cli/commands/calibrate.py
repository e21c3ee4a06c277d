"""`recscale calibrate`: parameters from measurements."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.cli.options import Format, FormatName, takes
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from simulator.calibration.collectives import CollectiveFit

app = typer.Typer(help="Fit parameters to measurements.", rich_markup_mode=None)


@dataclass(frozen=True)
class FitOptions:
    """What `calibrate fit` takes."""

    collectives: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder with tables.csv and rows.csv (nccl-tests).")
    ]
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the curves as a catalog file (YAML).")
    ] = None
    format: FormatName = Format.table


@takes(FitOptions)
def fit(options: FitOptions) -> None:
    """Fit collective curves to measured tables.

    Says for each system what the fit got wrong about sizes and scales that were held out.
    """
    from analysis.cli.output import Answer, flat
    from analysis.cli.views.fit import draw_fit
    from simulator.calibration.collectives import fit_folder

    with progress(f"fitting {options.collectives.name or options.collectives}"):
        fitted = fit_folder(options.collectives)
    if options.out is not None:
        _write(fitted, options.out)
    rows = fitted.rows()
    data = {"systems": rows, "left_out": list(fitted.left_out)}
    Answer(data, [flat(row) for row in rows], lambda console: draw_fit(fitted, console)).show(options.format)


app.command("fit")(fit)


@app.callback(invoke_without_command=True)
def calibrate(context: typer.Context) -> None:
    """Fit parameters to measurements."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _write(fitted: "CollectiveFit", path: Path) -> None:
    from simulator.results.export import replacing

    with progress("writing the curves"), replacing(path) as unfinished:
        unfinished.write_text(fitted.to_yaml(), encoding="utf-8")
    print(f"recscale: wrote {path}", file=sys.stderr)
