"""The hardware catalog, for people."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from analysis.cli.output import lines, pairs, plain, table
from analysis.cli.views.fabrics import fabric_drawing

if TYPE_CHECKING:
    from rich.console import Console

Entry = Mapping[str, Any]
CURVES = "collective"  # a kind that is no hardware
MORE = "recscale catalog show NAME tells the numbers, with their sources."


def numbers(entry: Entry, prefix: str = "") -> Iterator[tuple[str, Entry]]:
    """Yield every number of an entry with its dotted name."""
    for field, value in entry.items():
        if isinstance(value, Mapping) and "value" in value:
            yield prefix + field, value
        elif isinstance(value, Mapping):
            yield from numbers(value, f"{prefix}{field}.")


def draw_kinds(found: Mapping[str, Mapping[str, Entry]], console: "Console") -> None:
    """Draw each kind with how many entries it has, and the names of hardware."""
    drawn = table("kind", "entries", "names")
    drawn.columns[-1].justify, drawn.columns[-1].no_wrap = "left", False
    for kind, entries in found.items():
        hidden = kind == CURVES
        names = f"(fitted curves: recscale catalog list {kind})" if hidden else ", ".join(entries)
        drawn.add_row(kind, str(len(entries)), plain(names))
    console.print(drawn)
    console.print()
    console.print(plain("recscale catalog list KIND says what each is;"), style="dim")
    console.print(plain(MORE), style="dim")


def draw_names(found: Mapping[str, Mapping[str, Entry]], console: "Console") -> None:
    """Draw the names of each kind with their notes."""
    for kind, entries in found.items():
        console.print(plain(kind), style="bold")
        console.print(pairs((f"  {name}", _summary(entry)) for name, entry in entries.items()))
        console.print()
    console.print(plain(MORE), style="dim")


def _summary(entry: Entry) -> str:
    """Return the note of an entry, or the parts that it names."""
    parts = [str(entry[part]) for part in ("accelerator", "host", "fabric") if part in entry]
    return str(entry.get("note", "")) or " + ".join(dict.fromkeys(parts))


def draw_entries(
    name: str, found: Mapping[str, Entry], parts: Mapping[str, Entry], console: "Console"
) -> None:
    """Draw every number of the entries called `name` with range and confidence, then the sources.

    `parts` are the same entries as a scenario writes them out, by kind.
    """
    if len(found) > 1:
        console.print(plain(f"{name} is the name of several kinds: {', '.join(found)}"))
        console.print()
    for kind, entry in found.items():
        console.print(plain(f"{name} ({kind})"), style="bold")
        for key, value in entry.items():
            if not isinstance(value, Mapping | list):
                console.print(plain(f"{key}: {value}"))
        console.print()
        _draw_numbers(entry, console)
        console.print()
        if kind == "fabric":
            console.print(lines(fabric_drawing(name)))
            console.print()
        if kind in parts:
            _draw_part(kind, parts[kind], console)


def _draw_part(kind: str, part: Entry, console: "Console") -> None:
    """Draw a part of a scenario so that it can be copied into one, long lines unbroken."""
    import yaml

    key = {"machine": "cluster"}.get(kind, kind)
    text = yaml.safe_dump({key: dict(part)}, sort_keys=False, default_flow_style=None, width=1000)
    console.print(plain("written out in a scenario, for the same step:"), style="dim")
    console.print(lines(text), soft_wrap=True)


def _draw_numbers(entry: Entry, console: "Console") -> None:
    sources: dict[str, int] = {}
    drawn = table("number", "value", "range", "confidence", "source", left=4)
    for field, number in numbers(entry):
        limits = " to ".join(map(str, number.get("range", [])))
        source = str(number["source"]) + (f" ({number['note']})" if "note" in number else "")
        place = sources.setdefault(source, len(sources) + 1)
        drawn.add_row(
            plain(field), str(number["value"]), limits, str(number["confidence"]), plain(f"[{place}]")
        )
    console.print(drawn)
    console.print()
    console.print(pairs((f"[{place}]", source) for source, place in sources.items()))
