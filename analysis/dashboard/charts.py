"""The charts of the dashboard, as plotly figures; they say the same in light and dark."""

from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from analysis.compare import Row
from analysis.dashboard.screen import Size
from analysis.plots import style
from analysis.plots.breakdown import PARTS
from analysis.plots.gantt import STREAM_NAMES
from analysis.plots.schedule import Bar, Schedule
from analysis.ratios import efficiency as against
from analysis.report.relate import Related

COLORS = (style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY, style.GREY)
MARKS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "x", "star", "cross")
HATCHING = (
    "Colours are batches. Hatching: dots input, / lookup, \\ all-to-all, × all-reduce, + parameter servers."
)
PATTERNS = {"input": ".", "lookup": "/", "all_to_all": "\\", "all_reduce": "x", "parameter_server": "+"}
ROW, FRAME, CHART = 34, 130, 300  # pixels of height: one bar, what is around bars, a chart of curves
SEEN = 1e-4  # of a step: parts below it are left out


def breakdown(rows: Sequence[Row]) -> go.Figure:
    """Return one stacked bar per row: compute, and what the compute stream waits for, ms."""
    longest = max(row.step_ms or 0.0 for row in rows)
    figure = go.Figure()
    for field, (name, color) in PARTS.items():
        values = [float(getattr(row, field) or 0.0) for row in rows]
        if max(values) > SEEN * longest:
            told = [style.milliseconds(value) if value > 0.04 * longest else "" for value in values]
            bar = {"x": values, "y": [row.policy for row in rows], "name": name, "text": told}
            look = {"color": color, "line": {"width": 0}}
            figure.add_bar(**bar, orientation="h", marker=look, textangle=0, hovertemplate="%{x:,.4g} ms")
    figure.update_layout(barmode="stack")
    return _framed(figure, "ms per step", FRAME + ROW * len(rows))


def timeline(schedule: Schedule) -> go.Figure:
    """Return the bars of some steps, one row per stream, coloured by batch and hatched by kind."""
    figure, bars = go.Figure(), schedule.bars
    for batch in sorted({bar.batch for bar in bars}):
        figure.add_bar(**_batch([bar for bar in bars if bar.batch == batch]), name=f"batch {batch}")
    for time in schedule.updates.values():
        figure.add_vline(time, line={"width": 1, "dash": "dash", "color": style.GREY})
    names = [_stream(name) for name in schedule.streams]
    figure.update_layout(barmode="overlay", bargap=0.2)
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1])
    figure.update_xaxes(range=[0, schedule.length])
    return _framed(figure, "ms; dashed: an update is complete", FRAME + ROW * len(names))


def _batch(bars: Sequence[Bar]) -> dict[str, Any]:
    """Return the bars of one batch; a collective is drawn from when the last worker came."""
    return {
        "base": [bar.begins for bar in bars],
        "x": [bar.ends - bar.begins for bar in bars],
        "y": [_stream(bar.stream) for bar in bars],
        "orientation": "h",
        "text": [bar.stage for bar in bars],
        "textposition": "none",
        "hovertemplate": "%{text}: %{x:,.4g} ms, from %{base:,.4g} ms",
        "marker": {
            "color": style.batch_color(bars[0].batch),
            "line": {"width": 0.5, "color": style.INK},
            "pattern": {
                "shape": [PATTERNS.get(bar.kind, "") for bar in bars],
                **{"solidity": 0.2, "size": 7, "fillmode": "overlay", "fgcolor": style.INK},
            },
        },
    }


def _stream(name: str) -> str:
    return STREAM_NAMES.get(name, name.replace("_", " "))


def efficiency(sizes: Iterable[Size]) -> go.Figure:
    """Return samples/s per worker, in per cent of that on the policy's fewest workers, over workers."""
    figure = go.Figure()
    for place, (name, curve) in enumerate(_by_policy(sizes).items()):
        first = curve[0]
        ys = [100 * against(one.throughput, one.workers, first.throughput, first.workers) for one in curve]
        _line(figure, place, name, ([size.workers for size in curve], ys))
    figure.update_yaxes(rangemode="tozero", title="scaling efficiency, %")
    return _over_workers(figure)


def cost(sizes: Iterable[Size]) -> go.Figure | None:
    """Return USD per million samples over workers, or None where no price is known."""
    known = [size for size in sizes if size.usd_per_million is not None]
    figure = go.Figure()
    for place, (name, curve) in enumerate(_by_policy(known).items()):
        _line(
            figure, place, name, ([size.workers for size in curve], [size.usd_per_million for size in curve])
        )
    figure.update_yaxes(rangemode="tozero", title="USD per million samples", tickformat=".3~g")
    return _over_workers(figure) if known else None


def sizes_of(rows: Iterable[Related]) -> list[Size]:
    """Return the rows of a sweep as numbers of workers."""
    return [
        Size(one.row.policy, one.row.workers, one.row.step_ms, one.row.throughput, one.row.usd_per_million)
        for one in rows
    ]


def _by_policy(sizes: Iterable[Size]) -> dict[str, list[Size]]:
    found: dict[str, list[Size]] = {}
    for size in sorted(sizes, key=lambda size: size.workers):
        found.setdefault(size.policy, []).append(size)
    return dict(sorted(found.items()))


def _line(figure: go.Figure, place: int, name: str, points: tuple[Sequence[Any], Sequence[Any]]) -> None:
    look = {"color": COLORS[place % len(COLORS)], "symbol": MARKS[place % len(MARKS)], "size": 8}
    line = {"color": look["color"], "width": 2}
    xs, ys = points
    figure.add_scatter(x=xs, y=ys, name=name, mode="lines+markers", marker=look, line=line)


def _over_workers(figure: go.Figure) -> go.Figure:
    sizes = sorted({int(size) for trace in figure.data for size in trace.x})
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[f"{size:,}" for size in sizes])
    return _framed(figure, "workers", CHART)


def _framed(figure: go.Figure, title: str, height: int) -> go.Figure:
    """Put the legend above, and leave room for nothing that is not there."""
    legend = {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "traceorder": "normal"}
    margin = {"l": 10, "r": 10, "t": 10, "b": 10}
    figure.update_layout(height=height, margin=margin, legend=legend, showlegend=True)
    figure.update_xaxes(title=title)
    return figure
