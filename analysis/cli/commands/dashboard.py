"""`recscale dashboard`: a scenario on the screen that answers while its controls move."""

from dataclasses import dataclass
from typing import Annotated

import typer

from analysis.cli.options import takes
from analysis.cli.output import tell


@dataclass(frozen=True)
class DashboardOptions:
    """What `dashboard` takes."""

    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; by default, only this machine can ask.")
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="The port to listen on.")] = 8501
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A further name by which browsers may ask, such as a proxy's."),
    ] = None


@takes(DashboardOptions)
def dashboard(options: DashboardOptions) -> None:
    """Serve a page to pick hardware, model and policy, and to see the step change (extra: dashboard)."""
    from analysis.dashboard.serving import check, serve, warning

    check(options.host, options.port)
    told = warning(options.host)
    if told is not None:
        tell(told)
    serve(options.host, options.port, options.name or ())
