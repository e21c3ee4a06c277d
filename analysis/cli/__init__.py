"""The command line: words become calls, answers become text. `main` is the command `recscale`."""

from analysis.cli.running import main

__all__ = ["main"]
