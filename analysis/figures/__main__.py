"""`python -m analysis.figures DIR [NAME...] [--set path=value]` writes figures as PNG, SVG and CSV."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from analysis.figures import figure, figures
from simulator.errors import RecscaleError


def main(words: list[str]) -> int:
    """Write the figures that `words` name, or all, to the folder that stands first; return the exit code."""
    asked = _parse(words)
    try:
        for one in [figure(name) for name in asked.names or figures()]:
            for path in one.compute(*asked.settings).write(asked.folder):
                print(path)
    except RecscaleError as error:
        print(f"recscale: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _parse(words: list[str]) -> Namespace:
    parser = ArgumentParser(prog="python -m analysis.figures", description="Recompute figures of papers.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="where NAME.png, NAME.svg and NAME.csv go")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(figures())}")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="change the scenarios behind the figures; may be repeated",
    )
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
