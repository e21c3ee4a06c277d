"""`recscale init`: the shipped scenarios, copied out to be read and changed."""

from pathlib import Path
from typing import Annotated

import typer


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to.", show_default=True)] = Path(
        "scenarios"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there already.")] = False,
) -> None:
    """Copy the shipped scenarios into a folder.

    The data that they need comes along. What is there already stays, unless --force.
    """
    from analysis.shipped import copy_out

    for line in copy_out(folder, force):
        typer.echo(line)
