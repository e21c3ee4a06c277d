"""`recscale import`: what other programs have written, in our words."""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysis.cli.commands.keys import LogFile, statistics_data
from analysis.cli.options import Format, FormatName, takes
from analysis.cli.output import tell

if TYPE_CHECKING:
    from simulator.sharding.placement.torchrec import TorchRecPlan, TorchRecTable

app = typer.Typer(help="Read plans and key logs of others.", rich_markup_mode=None)


@dataclass(frozen=True)
class TorchRecOptions:
    """What `import torchrec` takes."""

    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A plan as JSON, as printed, or in the planner's log.")
    ]
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it: .json as it is, .yaml for a scenario.")
    ] = None
    format: FormatName = Format.table


@takes(TorchRecOptions)
def torchrec(options: TorchRecOptions) -> None:
    """Read a sharding plan of TorchRec.

    Says which tables lie where, and what is unusual about that.
    """
    from analysis.cli.output import Answer
    from analysis.cli.views.torchrec import draw_plan
    from simulator.sharding.placement.torchrec import read_torchrec_plan

    _refuse_suffix(options.out)
    plan = read_torchrec_plan(options.file)
    data = _told(options.file, plan)
    if options.out is not None:
        _write(options.out, plan, data)
    rows = [{**row, "ranks": "; ".join(map(str, row["ranks"]))} for row in map(_row, plan.tables)]
    Answer(data, rows, lambda console: draw_plan(options.file, plan, console)).show(options.format)


@dataclass(frozen=True)
class KeysImportOptions(LogFile):
    """What `import keys` takes."""

    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write there instead of standard output (.json).")
    ] = None


@takes(KeysImportOptions)
def keys(options: KeysImportOptions) -> None:
    """Read a key log; write its statistics as JSON.

    They are those of `recscale keys --format json`.
    """
    from analysis.cli.output import to_json
    from simulator.results.export import write_json

    data = statistics_data(options.statistics(), options.replayed(options.caches))
    if options.out is None:
        sys.stdout.write(to_json(data))
        return
    write_json(options.out, data)
    tell(f"wrote {options.out}")


app.command("torchrec")(torchrec)
app.command("keys")(keys)


@app.callback(invoke_without_command=True)
def imports(context: typer.Context) -> None:
    """Read plans and key logs of others."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _refuse_suffix(path: Path | None) -> None:
    from simulator.errors import InputError

    if path is not None and path.suffix not in (".json", ".yaml", ".yml"):
        raise InputError(f'a plan is written to .json or .yaml, "{path.name}" is neither')


def _told(file: Path, plan: "TorchRecPlan") -> dict[str, Any]:
    from analysis.sharding_parts import oddities

    tables = [{**_row(table), "shards": [asdict(shard) for shard in table.shards]} for table in plan.tables]
    return {"file": str(file), "ranks": plan.ranks, "unusual": list(oddities(plan)), "tables": tables}


def _row(table: "TorchRecTable") -> dict[str, Any]:
    """Return what a plan says of a table, without the shards."""
    rows, columns = table.size or (None, None)
    return {
        "module": table.module,
        "table": table.name,
        "sharding": table.sharding,
        "kernel": table.kernel,
        "rows": rows,
        "columns": columns,
        "shard_count": len(table.shards),
        "ranks": list(table.ranks),
    }


def _write(path: Path, plan: "TorchRecPlan", data: dict[str, Any]) -> None:
    from analysis.sharding_parts import torchrec_part, written
    from simulator.results.export import replacing, write_json

    if path.suffix == ".json":
        write_json(path, data)
    else:
        with replacing(path) as unfinished:
            title = f"{Path(data['file']).name}: a sharding plan of TorchRec for {plan.ranks} ranks"
            unfinished.write_text(written(torchrec_part(plan), title), encoding="utf-8")
    tell(f"wrote {path}")
