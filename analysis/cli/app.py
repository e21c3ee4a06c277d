"""The commands of `recscale`, in the order in which `--help` names them."""

from importlib.metadata import version
from typing import Annotated

import typer

from analysis.cli.commands import (
    calibrate,
    catalog,
    compare,
    dashboard,
    explain,
    imports,
    init,
    keys,
    plan,
    report,
    run,
    shard,
    sweep,
    validate,
)

app = typer.Typer(
    help="Predict how long a training step of a large recommendation model takes, and say why.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("init")(init.init)
app.command("run")(run.run)
app.command("check")(run.check)
app.command("explain")(explain.explain)
app.command("trace")(run.trace)
app.command("compare")(compare.compare)
app.command("sweep")(sweep.sweep)
app.command("plan")(plan.plan)
app.command("report")(report.report)
app.command("dashboard")(dashboard.dashboard)
app.add_typer(calibrate.app, name="calibrate")
app.command("validate")(validate.validate)
app.command("keys")(keys.keys)
app.command("shard")(shard.shard)
app.add_typer(imports.app, name="import")
app.add_typer(catalog.app, name="catalog")
app.command("schema")(catalog.schema)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"recscale {version('recscale')}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Say which version this is.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Predict how long a training step of a large recommendation model takes, and say why."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
