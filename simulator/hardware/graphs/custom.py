"""Fabrics from a file: nodes and links as a person lists them, read safely, refused in one line.

    name: two boxes
    nodes:
      - {name: a, kind: accelerator}          # accelerators are ranks, in this order
      - {name: b, kind: accelerator, forwards: false}
      - {name: s, kind: switch}
    links:                                    # both ways unless `one_way: true`
      - {from: a, to: s, bandwidth: 25 GB/s, latency: 1 us, count: 2, kind: nic, cost: 1}
      - {from: b, to: s, bandwidth: 200 Gb/s}

Accelerators pass nothing on unless they say `forwards: true`; all other nodes do. Routes have the least
total cost (1 a link), and traffic is split equally over equal ones, `count` parallel links included.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Where, did_you_mean, printable
from simulator.hardware.graphs import soundness
from simulator.hardware.graphs.fabric_graph import FabricGraph, Sketch
from simulator.units import parse_quantity, shown

KINDS = ("accelerator", "host", "memory", "nic", "port", "switch")
_FILE = ("name", "nodes", "links")
_NODE = ("name", "kind", "forwards")
_LINK = ("from", "to", "bandwidth", "latency", "kind", "cost", "count", "one_way")
_MOST_COPIES = 1024


def from_file(path: str | Path) -> FabricGraph:
    """Return the graph in a YAML file. Raises InputError with file, line and place of what is wrong."""
    from simulator.hardware.graphs.plain_yaml import read

    return from_mapping(read(Path(path)), str(path))


def from_mapping(data: object, file: str | None = None) -> FabricGraph:
    """Return the graph in plain data of the same form; `file` only serves the messages.

    Raises InputError for unknown keys and nodes, bad values, and whatever `FabricGraph` refuses.
    """
    whole = _Entry(data, Where(file), _FILE)
    name = whole.text("name", "fabric")
    sketch = Sketch()
    for entry in whole.entries("nodes", _NODE):
        _add_node(sketch, entry)
    if len(sketch.ranks) > soundness.EVERY_PAIR:
        limit = f"a custom graph holds at most {soundness.EVERY_PAIR}"
        raise InputError(f"{len(sketch.ranks)} accelerators; {limit}", whole.where)
    for entry in whole.entries("links", _LINK):
        _add_link(sketch, entry)
    try:
        return FabricGraph(sketch.graph, tuple(sketch.ranks), name)
    except InputError as error:
        raise InputError(error.problem, whole.where) from None


def _add_node(sketch: Sketch, entry: "_Entry") -> None:
    name, kind = entry.text("name"), entry.text("kind")
    if kind not in KINDS:
        raise entry.wrong("kind", f"no kind {shown(kind)}{did_you_mean(kind, KINDS)}")
    if name in sketch.graph:
        both = "ranks" if kind == sketch.graph.nodes[name]["kind"] == "accelerator" else "nodes"
        raise entry.wrong("name", f"two {both} are named {shown(name)}")
    forwards = entry.flag("forwards", kind != "accelerator")
    if kind == "accelerator":
        sketch.rank(name, forwards)
    else:
        sketch.node(name, kind, forwards)


def _add_link(sketch: Sketch, entry: "_Entry") -> None:
    ends = [_node_named(sketch, entry, end) for end in ("from", "to")]
    numbers = {
        "bandwidth": entry.quantity("bandwidth", "bandwidth"),
        "latency": entry.quantity("latency", "time", "0 s"),
        "cost": entry.whole("cost", 10**6),
    }
    kind, copies = entry.text("kind", "link"), entry.whole("count", _MOST_COPIES)
    ways = [ends] if entry.flag("one_way", False) else [ends, ends[::-1]]
    for tail, head in ways * copies:
        sketch.graph.add_edge(tail, head, kind=kind, **numbers)


def _node_named(sketch: Sketch, entry: "_Entry", field: str) -> str:
    name = entry.text(field)
    if name not in sketch.graph:
        raise entry.wrong(field, f"no node is named {shown(name)}{did_you_mean(name, sketch.graph)}")
    return name


class _Entry:
    """One mapping of the file: takes values out by key, and knows where it stands."""

    def __init__(self, data: object, where: Where, allowed: Iterable[str]) -> None:
        self.where = Where(where.file, getattr(data, "line", where.line), where.path)
        if not isinstance(data, Mapping):
            raise InputError(f"a mapping is needed, not {shown(data)}", self.where)
        self.data: Mapping[Any, Any] = data
        for key in data:
            if key not in allowed:
                raise self.wrong("", f"unknown key {shown(key)}{did_you_mean(str(key), allowed)}")

    def wrong(self, field: str, problem: str) -> InputError:
        """Return the error for a field of this entry."""
        path = ".".join(part for part in (self.where.path, field) if part)
        return InputError(problem, Where(self.where.file, self.where.line, path or None))

    def entries(self, field: str, allowed: tuple[str, ...]) -> "list[_Entry]":
        """Return the mappings of a list."""
        items = self._value(field, None)
        if not isinstance(items, list):
            raise self.wrong(field, f"a list is needed, not {shown(items)}")
        places = (Where(self.where.file, self.where.line, f"{field}[{index}]") for index in range(len(items)))
        return [_Entry(item, place, allowed) for item, place in zip(items, places, strict=True)]

    def text(self, field: str, default: str | None = None) -> str:
        """Return a text of one printable line."""
        value = self._value(field, default)
        if not isinstance(value, str) or not value or value != printable(value):
            raise self.wrong(field, f"a text is needed, not {shown(value)}; put names in quotes")
        return value

    def flag(self, field: str, default: bool) -> bool:
        """Return true or false."""
        value = self._value(field, default)
        if not isinstance(value, bool):
            raise self.wrong(field, f"true or false is needed, not {shown(value)}")
        return value

    def whole(self, field: str, most: int) -> int:
        """Return a whole number from 1 to `most`, 1 if none is given."""
        value = self._value(field, 1)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise self.wrong(field, f"a whole number from 1 to {most} is needed, not {shown(value)}")
        return value

    def quantity(self, field: str, dimension: str, default: str | None = None) -> float:
        """Return a quantity with a unit in SI."""
        try:
            return parse_quantity(self._value(field, default), dimension)
        except ValueError as problem:
            raise self.wrong(field, str(problem)) from None

    def _value(self, field: str, default: object) -> Any:
        if field not in self.data and default is None:
            raise self.wrong("", f"{field} is missing")
        return self.data.get(field, default)
