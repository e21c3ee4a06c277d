"""`recscale sweep`: many scenarios from one grid file."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.cli.options import Engine, Format, FormatName, takes
from analysis.cli.output import tell
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from analysis.sweep.executors import Workers
    from analysis.sweep.grid import Grid
    from analysis.sweep.points import Record


@dataclass(frozen=True)
class SweepOptions:
    """What `sweep` takes."""

    grid: Annotated[
        Path, typer.Argument(metavar="GRID", help="A grid file (YAML): what to vary, and in what.")
    ]
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where results go (default: GRID's name).")
    ] = None
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1024, help="Processes (default: one per core).")
    ] = None
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask scheduler, tcp://HOST:PORT.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Keep what DIR holds and run what is missing.")] = (
        False
    )
    engine: Annotated[Engine | None, typer.Option(help="Instead of the engine of the grid file.")] = None
    format: FormatName = Format.table


@takes(SweepOptions)
def sweep(options: SweepOptions) -> None:
    """Run every point of a grid of scenarios, side by side; a killed sweep resumes."""
    from analysis.cli.output import Answer
    from analysis.cli.views.sweep import draw_sweep
    from analysis.sweep.checking import check_values
    from analysis.sweep.dataset import with_settings
    from analysis.sweep.grid import read_grid
    from simulator.errors import InputError

    if options.dask is not None and options.jobs is not None:
        raise InputError("--jobs and --dask exclude each other: a scheduler has its own workers")
    grid = read_grid(options.grid)
    check_values(grid)
    if options.engine is not None:
        grid = grid.on(options.engine.value)
    folder = _nameable(options.out or Path(options.grid.stem))
    records = _run(grid, folder, options)
    tell(f"{len(records):,} points in {folder}")
    flat = [with_settings(record) for record in records]
    Answer(flat, flat, lambda console: draw_sweep(grid, records, console)).show(options.format)
    _say_what_is_no_answer(records)


def _say_what_is_no_answer(records: "list[Record]") -> None:
    """Say how many points are no answer: refused settings, and defects of ours.

    Raises InputError when all are refused, InfeasibleError when no point can run, and RuntimeError, as a
    defect, when points failed and none ran.
    """
    from analysis.sweep.points import DONE, FAILED, WRONG
    from simulator.errors import InfeasibleError, InputError

    by_status = {status: [one for one in records if one["status"] == status] for status in (WRONG, FAILED)}
    ran = any(record["status"] == DONE for record in records)
    for status, those in by_status.items():
        if those and ran:
            told = f"{len(those):,} of {len(records):,} points are {status}; the first: {those[0]['error']}"
            tell(told)
    if ran:
        return
    if by_status[FAILED]:
        raise RuntimeError(f"no point could run; the first that failed: {by_status[FAILED][0]['error']}")
    problem = f"no point could run; the first: {records[0]['error']}"
    raise InputError(problem) if len(by_status[WRONG]) == len(records) else InfeasibleError(problem)


def _nameable(folder: Path) -> Path:
    """Return `folder`. Raises InputError where a Parquet file cannot be named in it."""
    from simulator.errors import InputError

    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise InputError(f"--out: {folder}: the name must be UTF-8") from None
    return folder


def _run(grid: "Grid", folder: Path, options: SweepOptions) -> "list[Record]":
    from analysis.sweep.running import SweepRequest
    from analysis.sweep.running import sweep as run_all

    with progress("sweeping", len(grid.points), unit="points") as work:

        def found(points: int) -> None:
            work.total = max(1, work.total - points)  # what is kept took no time

        def finished(points: int) -> None:
            work.done += points
            work.settled += points

        return run_all(grid, SweepRequest(folder, _workers(options), options.resume, finished, found))


def _workers(options: SweepOptions) -> "Workers":
    from os import cpu_count

    from analysis.sweep.executors import DaskCluster, LocalProcesses

    if options.dask is not None:
        return DaskCluster(options.dask)
    return LocalProcesses(options.jobs or cpu_count() or 1)
