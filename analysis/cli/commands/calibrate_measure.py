"""`recscale calibrate measure`: what this machine takes for the primitives of training, by size."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysis.cli.options import Format, FormatName, takes
from analysis.cli.output import tell
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from simulator.calibration.local.job import Job
    from simulator.calibration.local.recording import Recorder

Ranks = Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Ranks, pinned to cores in turn.")]
Substrate = Annotated[
    str, typer.Option(metavar="NAME", help="tcp, openmpi, torch:gloo, torch:nccl or torch:hccl.")
]
LinksName = Annotated[
    str, typer.Option("--links", metavar="KIND", help="loopback, or shaped:RATE (tcp or gloo, needs root).")
]
Isolate = Annotated[
    bool, typer.Option("--isolate", help="Run in a scheduling group of its own, before all others (root).")
]
NoPin = Annotated[bool, typer.Option("--no-pin", help="Leave it to the kernel which core a rank runs on.")]
AllowLoad = Annotated[
    bool, typer.Option("--allow-load", help="Measure beside other work, and mark the result as such.")
]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the measurement there (JSON).")]


@dataclass(frozen=True)
class MeasureOptions:
    """What `calibrate measure` takes."""

    ranks: Ranks = 2
    substrate: Substrate = "tcp"
    links: LinksName = "loopback"
    network: Annotated[
        list[str] | None,
        typer.Option(metavar="WIDTHS", help="Widths of a dense network, such as 512-256-1; may be repeated."),
    ] = None
    dimension: Annotated[int, typer.Option(metavar="N", min=1, help="Values of an embedding row.")] = 32
    rpc: Annotated[bool, typer.Option("--rpc", help="Measure calls to parameter servers (gRPC) as well.")] = (
        False
    )
    quick: Annotated[
        bool, typer.Option("--quick", help="Few sizes and repeats: a look, not a calibration.")
    ] = False
    record: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Instead, make the standard local runs and record them in DIR."),
    ] = None
    rounds: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=20, help="Rounds of measuring (and running): a machine drifts."),
    ] = 2
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="With --record: only this launch; may be repeated."),
    ] = None
    allow_load: AllowLoad = False
    isolate: Isolate = False
    no_pin: NoPin = False
    out: Out = None
    format: FormatName = Format.table

    def recorder(self) -> "Recorder":
        """Return what takes the measurement. Raises InputError."""
        from simulator.calibration.local.launch import Launcher
        from simulator.calibration.local.recording import Recorder
        from simulator.calibration.measure.links import parse_links

        return Recorder(Launcher(self.substrate, parse_links(self.links)), self.allow_load)

    def job(self) -> "Job":
        """Return what the ranks are to do. Raises InputError."""
        from dataclasses import replace

        from simulator.calibration.local.job import Job
        from simulator.calibration.measure.grids import QUICK, Grid

        base = QUICK if self.quick else Grid()
        networks = tuple(map(parse_widths, self.network)) if self.network else base.networks
        grid = replace(base, networks=networks, dimension=self.dimension)
        job = Job(self.ranks, self.substrate, "", grid)
        return replace(job, pinned=not self.no_pin, isolated=self.isolate, rounds=self.rounds)

    def refuse_contradictions(self) -> None:
        """Raise InputError for options that would be ignored."""
        from simulator.errors import InputError

        if self.record is None and self.only:
            raise InputError("--only names launches of --record; give --record DIR as well")
        own = ("ranks", "substrate", "links", "network", "dimension", "rpc", "quick", "no_pin", "out")
        usual = MeasureOptions()
        given = [name for name in own if getattr(self, name) != getattr(usual, name)]
        if self.record is not None and given:
            option = "--" + given[0].replace("_", "-")
            raise InputError(f"--record makes the standard launches: {option} is fixed in them, leave it out")


def parse_widths(text: str) -> tuple[int, ...]:
    """Return the widths in `512-256-1`. Raises InputError unless they are two whole numbers or more."""
    from simulator.errors import InputError

    parts = text.split("-")
    if len(parts) < 2 or not all(part.isascii() and part.isdigit() and 0 < int(part) < 1e6 for part in parts):
        raise InputError(f'"{text}" are no widths of a dense network; write them like 512-256-1')
    return tuple(map(int, parts))


@takes(MeasureOptions)
def measure(options: MeasureOptions) -> None:
    """Measure this machine: dense networks, rows, copies, collectives, calls, each by size.

    Refuses to measure beside other work (exit code 1) unless --allow-load.
    """
    from analysis.cli.output import Answer
    from analysis.cli.views.measurement import curve_rows, draw_measurement

    options.refuse_contradictions()
    if options.record is not None:
        _record(options, options.record)
        return
    with progress("measuring"):
        measurement = options.recorder().take(options.job())
    if options.rpc:
        with progress("measuring calls"):
            measurement = {**measurement, "rpc": _calls(options)}
    save(measurement, options.out)
    rows = curve_rows(measurement)
    Answer(measurement, rows, lambda console: draw_measurement(measurement, console)).show(options.format)


def _calls(options: MeasureOptions) -> Any:
    from simulator.calibration.local.job import Job
    from simulator.calibration.local.launch import Launcher
    from simulator.calibration.local.recording import Recorder
    from simulator.calibration.measure.links import Loopback
    from simulator.calibration.measure.rpc import QUICK_CALLS, RpcGrid

    grid = QUICK_CALLS if options.quick else RpcGrid()
    job = Job(1, "tcp", "", rpc=grid, pinned=not options.no_pin, isolated=options.isolate)
    return Recorder(Launcher("tcp", Loopback()), options.allow_load).take(job)["rpc"]


def _record(options: MeasureOptions, folder: Path) -> None:
    """Make every launch of the standard suite, write a file for each, and show how well it is predicted."""
    from analysis.cli.output import Answer
    from analysis.cli.views.training import draw_compared, rows_of_file
    from simulator.calibration.local.recording import Recorder, write

    rows: list[dict[str, Any]] = []
    for launch in _chosen(options.only):
        job = launch.job(options.isolate, options.rounds)
        with progress(f"recording {launch.name}"):
            taken = Recorder(launch.launcher, options.allow_load).take(job)
        path = folder / f"{launch.name}.json"
        write(taken, path)
        tell(f"wrote {path}")
        rows += rows_of_file(launch.name, taken)
    Answer(rows, rows, lambda console: draw_compared(rows, console)).show(options.format)


def _chosen(only: list[str] | None) -> list[Any]:
    from simulator.calibration.local.suite import SUITE
    from simulator.errors import InputError, did_you_mean

    names = [launch.name for launch in SUITE]
    for name in only or ():
        if name not in names:
            raise InputError(f'no launch is called "{name}"{did_you_mean(name, names)}')
    return [launch for launch in SUITE if not only or launch.name in only]


def save(measurement: Mapping[str, Any], path: Path | None) -> None:
    """Write a measurement if a file is named, and say so."""
    from simulator.calibration.local.recording import write

    if path is not None:
        write(measurement, path)
        tell(f"wrote {path}")
