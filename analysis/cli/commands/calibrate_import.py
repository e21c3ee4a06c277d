"""`recscale calibrate import`: measurements by other programs."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysis.cli.options import Format, FormatName, takes
from analysis.cli.output import tell
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from simulator.calibration.imports.collective_folder import Labels
    from simulator.calibration.imports.collective_rows import Imported

app = typer.Typer(
    help="Read measurements of other programs: collectives, traces, wiring.", rich_markup_mode=None
)

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files, gzip or not.")]
FolderOut = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Write tables.csv and rows.csv there, for fit; never over others."
    ),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write everything there as JSON.")]


@dataclass(frozen=True)
class CollectiveOptions:
    """What the imports of collectives take."""

    files: Files
    out: FolderOut = None
    collective: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which collective, where a log does not say.")
    ] = None
    ranks: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Ranks, where a log does not say.")
    ] = None
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Hosts, where a log does not say.")
    ] = None
    accelerator: Annotated[str, typer.Option(metavar="NAME", help="Device, where a log does not say.")] = ""
    cluster: Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster in the tables.")] = (
        "imported"
    )
    network: Annotated[str, typer.Option(metavar="TEXT", help="What joins the hosts.")] = ""
    source: Annotated[str, typer.Option(metavar="TEXT", help="Where the numbers come from.")] = (
        "own measurement"
    )
    licence: Annotated[str, typer.Option(metavar="TEXT", help="Under which licence.")] = "own"
    format: FormatName = Format.table

    def labels(self) -> "Labels":
        """Return what is written beside the numbers."""
        from simulator.calibration.imports.collective_folder import Labels

        return Labels(self.cluster, self.network, self.source, self.licence)


def _collectives(kind: str, options: CollectiveOptions) -> None:
    from analysis.cli.output import Answer
    from analysis.cli.views.imported import draw_tables
    from simulator.calibration.imports.collective_folder import refuse_kept, table_rows, write_folder

    if options.out is not None:
        refuse_kept(options.out)
    tables, notes = _read(kind, options)
    if options.out is not None:
        write_folder(options.out, tables, options.labels())
        tell(f"wrote tables.csv and rows.csv to {options.out}")
    rows = table_rows(tables, options.labels())
    data = {"kind": kind, "tables": rows, "notes": notes}
    Answer(data, rows, lambda console: draw_tables(rows, notes, console)).show(options.format)


def _read(kind: str, options: CollectiveOptions) -> tuple[Sequence["Imported"], list[str]]:
    from simulator.calibration.imports.collective_rows import Facts, completed, merged
    from simulator.calibration.imports.kinds import COLLECTIVES

    given = Facts(options.collective, options.ranks, options.nodes, options.accelerator)
    tables: list[Imported] = []
    notes: list[str] = []
    for file in options.files:
        with progress(f"reading {file.name}"):
            log = COLLECTIVES[kind](str(file))
        found = completed(log.tables, given)
        assumed = dict.fromkeys(one.note for one in found if one.note)
        tables += found
        notes += [f"{file}: {note}" for note in (*log.notes, *assumed)]
    return merged(tables), notes


@takes(CollectiveOptions)
def nccl_tests(options: CollectiveOptions) -> None:
    """Read the output of nccl-tests, as printed or as JSON."""
    _collectives("nccl-tests", options)


@takes(CollectiveOptions)
def rccl_tests(options: CollectiveOptions) -> None:
    """Read the output of rccl-tests."""
    _collectives("rccl-tests", options)


@takes(CollectiveOptions)
def hccl_test(options: CollectiveOptions) -> None:
    """Read the output of hccl_test (Ascend)."""
    _collectives("hccl-test", options)


@takes(CollectiveOptions)
def param_comms(options: CollectiveOptions) -> None:
    """Read the output of PARAM's communication benchmark, as printed or its metrics as JSON."""
    _collectives("param-comms", options)


@dataclass(frozen=True)
class TraceOptions:
    """What the imports of traces take."""

    files: Files
    out: Out = None
    format: FormatName = Format.table


@takes(TraceOptions)
def kineto(options: TraceOptions) -> None:
    """Read profiler traces (PyTorch, Kineto), one file per rank.

    Says per step what the device did: computing, communicating, copying, idle.
    """
    from analysis.cli.views.imported import draw_traces
    from simulator.calibration.imports.kineto import read_traces

    with progress(f"reading {len(options.files)} traces"):
        traces = read_traces([str(file) for file in options.files])
    _answer(traces.data(), traces.rows(), options, lambda console: draw_traces(traces, console))


@takes(TraceOptions)
def chakra(options: TraceOptions) -> None:
    """Read execution traces (Chakra protobuf or JSON, or PyTorch's).

    Says which operators, products and collectives they hold.
    """
    from analysis.cli.views.imported import draw_execution
    from simulator.calibration.imports.execution_trace import read_execution_trace

    found = []
    for file in options.files:
        with progress(f"reading {file.name}"):
            found.append(read_execution_trace(str(file)).data())
    rows = [{"file": one["file"], **row} for one in found for row in one["collectives"]]
    _answer(found, rows, options, lambda console: draw_execution(found, console))


def _answer(data: Any, rows: list[dict[str, Any]], options: TraceOptions, draw: Any) -> None:
    from analysis.cli.output import Answer
    from simulator.results.export import write_json

    if options.out is not None:
        write_json(options.out, data)
        tell(f"wrote {options.out}")
    Answer(data, rows, draw).show(options.format)


@dataclass(frozen=True)
class TopologyOptions:
    """What the import of a wiring takes."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `nvidia-smi topo -m` printed.")]
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the YAML there.")] = None
    nvlink: Annotated[str | None, typer.Option(metavar="RATE", help="One NVLink, per direction.")] = None
    pcie: Annotated[str | None, typer.Option(metavar="RATE", help="PCIe, per direction.")] = None
    card: Annotated[str | None, typer.Option(metavar="RATE", help="One network card, as 200 Gb/s.")] = None


@takes(TopologyOptions)
def topo(options: TopologyOptions) -> None:
    """Read `nvidia-smi topo -m`; write the fabric of a scenario.

    Rates are not in the matrix: give them, or they are assumed and said to be.
    """
    from simulator.calibration.imports.topology import Rates, fragment, read_topology
    from simulator.results.export import replacing

    given = (_rate(name, getattr(options, name)) for name in ("nvlink", "pcie", "card"))
    text = fragment(read_topology(str(options.file)), Rates(*given))
    if options.out is None:
        sys.stdout.write(text)
        return
    with replacing(options.out) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    tell(f"wrote {options.out}")


def _rate(name: str, text: str | None) -> float | None:
    from simulator.errors import InputError, Where
    from simulator.units import parse_quantity

    try:
        return None if text is None else parse_quantity(text, "bandwidth")
    except ValueError as problem:
        raise InputError(str(problem), Where(f"--{name}")) from None


app.command("nccl-tests")(nccl_tests)
app.command("rccl-tests")(rccl_tests)
app.command("hccl-test")(hccl_test)
app.command("param-comms")(param_comms)
app.command("kineto")(kineto)
app.command("chakra")(chakra)
app.command("topo")(topo)


@app.callback(invoke_without_command=True)
def imports(context: typer.Context) -> None:
    """Read measurements of other programs: collectives, traces, wiring."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
