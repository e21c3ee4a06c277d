"""`recscale report`: one self-contained page about a folder of results."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from analysis.cli.options import takes
from analysis.cli.output import tell


@dataclass(frozen=True)
class ReportOptions:
    """What `report` takes."""

    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What run, sweep and plan left behind.")]
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The page (default: DIR/report.html).")] = (
        None
    )
    title: Annotated[str, typer.Option(metavar="TEXT", help="Its title (default: the folder's name).")] = ""


@takes(ReportOptions)
def report(options: ReportOptions) -> None:
    """Write one HTML file about the results in a folder; it can be sent on and needs no network."""
    from analysis.report import write_report

    target = options.out or options.folder / "report.html"
    write_report(options.folder, target, options.title)
    tell(f"wrote {target}")
