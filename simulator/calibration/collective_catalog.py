"""Fitted collectives as a catalog file: every number with its interval, source and confidence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.calibration.collective_lines import COVERAGE, FittedLines, Interval
from simulator.calibration.collective_systems import System
from simulator.calibration.collective_tables import Table
from simulator.costs.curves import LogLog, Measured, Scale
from simulator.units import format_bandwidth, format_time

HEADER = f"""\
# Measured collectives: time by size and scale, one entry per system (a cluster under one setting of its
# library) and operation. Fitted by `recscale calibrate fit --collectives DIR`; not edited by hand.
#
# Sizes are those of nccl-tests. At each scale the time is the least of the lines latency + size/bandwidth;
# `range` is what was tested, `interval` the middle {COVERAGE:.0%} of fits to rows drawn again.
# `points`, where the licence of the source lets them be passed on, are the measurements themselves: they are
# nearer than the lines, and are used first.
# A scale with a `lender` was not tested: it is the network of that cluster, scaled by the rates of the cards.
# `decay`: bandwidth falls with the nodes to this power beyond the largest scale: the median over the largest
# common message and three halvings of it, its `interval` that of medians of these four sizes drawn again.
# `held_out` are errors on sizes and on larger scales that were kept from a fit (median and 90th percentile).
# A date is that of the measurement, where its source states one.
"""


class OneLine(dict[str, Any]):
    """A mapping that is written on one line."""


@dataclass(frozen=True)
class Entry:
    """What is written about one system; `with_points` writes them whatever the licence."""

    system: System
    lines: Mapping[Scale, FittedLines]
    sources: Mapping[Scale, tuple[Table, ...]]
    errors: Mapping[str, tuple[float, float, int]]
    with_points: bool

    def data(self) -> dict[str, Any]:
        """Return the entry as plain mappings, lists, strings and numbers."""
        one, first = self.system, self.system.tables[0]
        found: dict[str, Any] = {
            "operation": one.operation,
            "accelerator": first.accelerator or "not stated",
            "network": first.network or "not stated",
            "setting": str(one.setting),
            "held_out": self._held_out(),
        }
        if one.decay:
            low, value, high = (round(part, 4) for part in one.decay)
            found["decay"] = self._number(value, (low, high), one.tables)
        found["scales"] = [self._scale(measured) for measured in one.curve.measured]
        return found

    def _held_out(self) -> dict[str, Any]:
        return {
            kind: {"median": f"{100 * median:.1f} %", "p90": f"{100 * p90:.1f} %", "rows": rows}
            for kind, (median, p90, rows) in self.errors.items()
            if rows
        }

    def _scale(self, measured: Measured) -> dict[str, Any]:
        tables = self.sources[measured.scale]
        lender = self.system.borrowed.get(measured.scale)
        found: dict[str, Any] = {
            "ranks": measured.scale.ranks,
            "nodes": measured.scale.nodes,
            "range": [f"{measured.least:.0f} B", f"{measured.most:.0f} B"],
            "date": ", ".join(sorted({table.date for table in tables})),
        }
        if measured.lender:
            found["lender"] = measured.lender
            found["note"] = "Not tested between hosts: the lender's network, scaled by the rates of cards."
        if lender:
            found["note"] = f"Not tested under this setting: taken from {lender}."
        found["lines"] = self._lines(self.lines[measured.scale], tables)
        if self.with_points or all(table.open_licence for table in tables):
            found["points"] = _points(measured, tables)
        return found

    def _lines(self, fitted: FittedLines, tables: Sequence[Table]) -> list[dict[str, Any]]:
        three = zip(fitted.segments.lines, fitted.latencies, fitted.bandwidths, strict=True)
        return [
            {
                "latency": self._number(format_time(line.latency), _written(latency, format_time), tables),
                "bandwidth": self._number(
                    format_bandwidth(line.bandwidth), _written(bandwidth, format_bandwidth), tables
                ),
            }
            for line, latency, bandwidth in three
        ]

    def _number(self, value: Any, interval: Sequence[Any], tables: Sequence[Table]) -> dict[str, Any]:
        source = "; ".join(sorted({table.source for table in tables}))
        return OneLine(value=value, interval=list(interval), source=source, confidence="inferred")


def _written(interval: Interval, write: Any) -> list[str]:
    return [write(end) for end in interval]


def _points(measured: Measured, tables: Sequence[Table]) -> dict[str, Any]:
    curve = measured.curve
    assert isinstance(curve, LogLog)  # tables are read as points
    return {
        "sizes": [f"{size:.0f} B" for size in curve.sizes],
        "times": [format_time(time) for time in curve.times],
        "source": "; ".join(sorted({table.source for table in tables})),
        "confidence": "measured",
    }


def document(entries: Iterable[Entry]) -> str:
    """Return the text of a catalog file: `sources` named once, then `entries` in their order."""
    data = {entry.system.name: entry.data() for entry in entries}
    sources: dict[str, str] = {}
    _name_sources(data, sources)
    head = "".join(f"  {name}: &{name} {_quoted(text)}\n" for text, name in sources.items())
    body = "".join(f"  {name}:\n{_indented(_dumped(fields))}" for name, fields in data.items())
    for name in sources.values():
        body = body.replace(f"source: {_mark(name)}", f"source: *{name}")
    return f"{HEADER}\nsources:\n{head}\nentries:\n{body}"


def _dumped(fields: Mapping[str, Any]) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_representer(
        OneLine, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)
    )
    return str(yaml.dump(fields, Dumper=Dumper, sort_keys=False, width=10_000, default_flow_style=None))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _mark(name: str) -> str:
    return f"source_{name}_source"


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def _name_sources(data: Any, sources: dict[str, str]) -> None:
    """Replace every source by a mark, and note which name the mark stands for."""
    if isinstance(data, dict):
        if "source" in data:
            name = sources.setdefault(data["source"], f"s{len(sources) + 1}")
            data["source"] = _mark(name)
        for value in data.values():
            _name_sources(value, sources)
    elif isinstance(data, list):
        for value in data:
            _name_sources(value, sources)
