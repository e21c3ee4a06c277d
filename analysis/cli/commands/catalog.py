"""`recscale catalog` and `recscale schema`: what may be written into a scenario."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from analysis.cli.options import Format, FormatName

app = typer.Typer(help="Look up hardware: each number with its source.", rich_markup_mode=None)

Kind = Annotated[
    str | None,
    typer.Argument(
        metavar="KIND", help="accelerator, host, nic, fabric, machine, collective, gemm, software."
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A name from the list.")]


@app.callback(invoke_without_command=True)
def catalog(context: typer.Context) -> None:
    """Look up hardware: each number with its source."""
    if context.invoked_subcommand is None:
        list_names(None, Format.table)


@app.command("list")
def list_names(kind: Kind = None, format: FormatName = Format.table) -> None:
    """List all kinds with how many there are, and hardware by name; or one kind with what each entry is."""
    from analysis.cli.output import Answer
    from analysis.cli.views.hardware import draw_kinds, draw_names
    from simulator.hardware import catalog

    kinds = [kind] if kind else list(catalog.KINDS)
    told = draw_names if kind else draw_kinds
    found = {one: {name: catalog.entry(one, name) for name in catalog.names(one)} for one in kinds}
    rows = [{"kind": one, "name": name} for one, entries in found.items() for name in entries]
    names = {one: list(entries) for one, entries in found.items()}
    Answer(names, rows, lambda console: told(found, console)).show(format)


@app.command("show")
def show(name: Name, format: FormatName = Format.table) -> None:
    """Show one piece of hardware: each number with its source, and how a scenario writes it out."""
    from analysis.cli.output import Answer
    from analysis.cli.views.hardware import draw_entries
    from simulator.errors import InputError, did_you_mean
    from simulator.hardware import catalog
    from simulator.scenario.written_out import written_out

    found = {kind: catalog.entry(kind, name) for kind in catalog.KINDS if name in catalog.names(kind)}
    if not found:
        known = {one for kind in catalog.KINDS for one in catalog.names(kind)}
        near = {one for one in known if name.lower() in one}
        raise InputError(f'the catalog has no "{name}"{did_you_mean(name, near or known)}')
    rows = [row for kind, entry in found.items() for row in _records(kind, name, entry)]
    parts = {kind: part for kind in found if (part := written_out(kind, name)) is not None}
    data = {"name": name, **found, "written_out": parts}
    Answer(data, rows, lambda console: draw_entries(name, found, parts, console)).show(format)


def _records(kind: str, name: str, entry: Any) -> Iterator[dict[str, Any]]:
    """Yield one flat record per number."""
    from analysis.cli.views.hardware import numbers

    for field, number in numbers(entry):
        limits = "; ".join(map(str, number.get("range", [])))
        cells = {key: number.get(key) for key in ("value", "confidence", "source", "note")}
        yield {"kind": kind, "name": name, "field": field, **cells, "range": limits}


def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    import sys

    from analysis.cli.output import to_json
    from simulator.scenario.scenario import ScenarioSpec

    described = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ScenarioSpec.model_json_schema(),
    }
    sys.stdout.write(to_json({**described, "title": "recscale scenario"}))
