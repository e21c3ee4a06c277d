"""Answers on standard output, as a table for people, as JSON or as CSV; all else goes to standard error."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO, cast

from analysis.cli.options import Format
from simulator.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@dataclass(frozen=True)
class Answer:
    """One answer in its three forms: plain data, flat records, and a drawing for a console."""

    data: Any
    rows: Sequence[Mapping[str, Any]]
    draw: "Callable[[Console], None]"

    def show(self, form: Format) -> None:
        """Write the answer on standard output."""
        shown = {Format.json: self._json, Format.csv: self._csv, Format.table: self._table}
        shown[form]()

    def _json(self) -> None:
        sys.stdout.write(to_json(self.data))

    def _csv(self) -> None:
        from simulator.results.csv_writing import write_csv

        write_csv(list(self.rows[0]) if self.rows else [], self.rows, sys.stdout)

    def _table(self) -> None:
        self.draw(console())


def to_json(data: Any) -> str:
    """Return `data` as indented JSON with a newline at the end; the same data gives the same text."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(data, option=options).decode()


def flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one record with dotted names; lists become text, `; ` between items."""
    record: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            record.update(flat(value, f"{prefix}{name}."))
        else:
            record[prefix + name] = "; ".join(map(_item, value)) if isinstance(value, list) else value
    return record


def _item(value: Any) -> str:
    return str(value.get("name", value)) if isinstance(value, Mapping) else str(value)


def console(stream: TextIO | None = None) -> "Console":
    """Return a console on `stream` (default: standard output, without blanks at the ends of lines).

    Escape codes reach terminals only.
    """
    from rich.console import Console

    plain = "NO_COLOR" in os.environ
    return Console(
        file=stream or cast(TextIO, _Trimmed(sys.stdout)),
        highlight=False,
        emoji=False,
        color_system=None if plain else "auto",
    )


class _Trimmed:
    """A stream without the blanks that tables are filled up with; what names hide is shown escaped."""

    _CODE = r"\x1b\[[0-9;]*m"
    _END = re.compile(rf"(?: |{_CODE})+$", re.MULTILINE)
    _KEPT = re.compile(rf"(\n|{_CODE})")

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write whole lines, as consoles do."""
        trimmed = self._END.sub(lambda end: "".join(re.findall(self._CODE, end[0])), text)
        parts = enumerate(self._KEPT.split(trimmed))  # every second one is what it was split at
        self._stream.write("".join(part if place % 2 else printable(part) for place, part in parts))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def table(*columns: str, left: int = 1, gap: int = 2) -> "Table":
    """Return an empty table, `gap` spaces between columns; the first `left` hold text, the others numbers."""
    from rich.box import SIMPLE
    from rich.table import Table

    padding = (0, gap - 1, 0, 0)
    drawn = Table(box=SIMPLE, pad_edge=False, padding=padding, header_style="bold", show_edge=False)
    for place, name in enumerate(columns):
        numbers = place >= left
        drawn.add_column(name, justify="right" if numbers else "left", no_wrap=numbers, overflow="fold")
    return drawn


def pairs(entries: Iterable[tuple[str, str]]) -> "Table":
    """Return two columns without lines: names, and what is to be said of them."""
    from rich.table import Table

    drawn = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    drawn.add_column(no_wrap=True, style="bold")
    drawn.add_column(overflow="fold")
    for name, text in entries:
        drawn.add_row(plain(name), lines(text))  # all beside the name
    return drawn


def plain(text: str) -> Any:
    """Return text that is shown as it is: square brackets in it are no markup, control characters escaped.

    A line feed is one of them: a name that holds one begins no line of its own.
    """
    from rich.text import Text

    return Text(printable(text))


def lines(text: str) -> Any:
    """Return text of our own making that has several lines, each as `plain` shows it."""
    from rich.text import Text

    return Text("\n").join(map(plain, text.split("\n")))


def tell(text: str) -> None:
    """Write one line for people on standard error; a name in it that holds line feeds stays in that line."""
    print(f"recscale: {printable(text)}", file=sys.stderr)


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share as per cent."""
    return "-" if share is None else f"{100 * share:.{digits}f}%"


def count(number: float | None) -> str:
    """Return a large number with four significant digits: `419.7 k`."""
    if number is None:
        return "-"
    for factor, prefix in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= 0.99995 * factor:
            return f"{number / factor:.4g}{prefix}"
    return f"{number:.4g}"
