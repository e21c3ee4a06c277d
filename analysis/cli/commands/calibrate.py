"""`recscale calibrate`: parameters from measurements."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from analysis.cli.commands import calibrate_import, calibrate_measure, calibrate_train
from analysis.cli.options import Format, FormatName, takes
from analysis.cli.output import tell
from analysis.cli.progress import progress

app = typer.Typer(help="Fit parameters to measurements.", rich_markup_mode=None)


@dataclass(frozen=True)
class FitOptions:
    """What `calibrate fit` takes."""

    collectives: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with tables.csv and rows.csv (nccl-tests).")
    ] = None
    measured: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Measured primitives (JSON or CSV).")
    ] = None
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the curves as a catalog file (YAML).")
    ] = None
    format: FormatName = Format.table


@takes(FitOptions)
def fit(options: FitOptions) -> None:
    """Fit collective curves to measured tables, or primitives to their measurements.

    Says what each fit got wrong about measurements that were held out.
    """
    from simulator.errors import InputError

    if (options.collectives is None) == (options.measured is None):
        raise InputError("give either --collectives DIR or --measured FILE")
    if options.collectives is not None:
        _fit_collectives(options.collectives, options)
    elif options.measured is not None:
        _fit_measured(options.measured, options)


def _fit_measured(file: Path, options: FitOptions) -> None:
    from analysis.cli.output import Answer, flat
    from analysis.cli.views.fit_measured import draw_measured
    from analysis.recording_doubts import fit_doubts
    from simulator.calibration.fit_measurement import fit_measurement
    from simulator.calibration.fit_table import read_json
    from simulator.errors import printable

    with progress(f"fitting {file.name}"):
        fits = replace(fit_measurement(file), doubts=tuple(fit_doubts(read_json(file) or {})))
    for doubt in fits.doubts:
        print(printable(f"recscale: warning: {file}: {doubt}"), file=sys.stderr)
    if options.out is not None:
        _write_text(fits.to_yaml(), options.out)
    data = fits.data()
    rows = [*data["primitives"], *data["gemm"]]
    flattened = [flat({**row, "parameters": _brief(row["parameters"])}) for row in rows]
    Answer(data, flattened, lambda console: draw_measured(fits, console)).show(options.format)


def _brief(parameters: dict[str, dict[str, float]]) -> str:
    return "; ".join(f"{name}={one['value']:.6g}" for name, one in parameters.items())


def _fit_collectives(folder: Path, options: FitOptions) -> None:
    from analysis.cli.output import Answer, flat
    from analysis.cli.views.fit import draw_fit
    from simulator.calibration.collectives import fit_folder

    with progress(f"fitting {folder.name or folder}"):
        fitted = fit_folder(folder)
    if options.out is not None:
        _write_text(fitted.to_yaml(), options.out)
    rows = fitted.rows()
    data = {"systems": rows, "left_out": list(fitted.left_out)}
    Answer(data, [flat(row) for row in rows], lambda console: draw_fit(fitted, console)).show(options.format)


app.command("fit")(fit)
app.add_typer(calibrate_import.app, name="import")
app.command("measure")(calibrate_measure.measure)
app.command("train")(calibrate_train.train)


@app.callback(invoke_without_command=True)
def calibrate(context: typer.Context) -> None:
    """Fit parameters to measurements."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _write_text(text: str, path: Path) -> None:
    from simulator.results.export import replacing

    with progress("writing the fit"), replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    tell(f"wrote {path}")
