"""What was imported, for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analysis.cli.output import count, percent, plain, table
from simulator.calibration.imports.kineto import Traces
from simulator.units import format_bytes, format_time

if TYPE_CHECKING:
    from rich.console import Console

MOST_STEPS = 40
STEP_LEGEND = (
    "ms per step of what the device did. comm.: collectives; hidden under computing, or exposed; copy and "
    "idle: no kernel runs. compute + exposed + copy + idle = step. A collective's time holds the wait for "
    "the rank that comes last."
)


def draw_tables(rows: Sequence[dict[str, Any]], notes: Sequence[str], console: "Console") -> None:
    """Draw one line per imported table of collectives."""
    drawn = table("collective", "device", "ranks", "nodes", "rows", "largest", "GB/s (bus)", left=2)
    for row in rows:
        drawn.add_row(
            row["collective"],
            plain(row["accel"] or "-"),
            *(str(row[name]) for name in ("n_ranks", "n_nodes", "n_rows")),
            format_bytes(row["max_size_bytes"]),
            row["peak_busbw_gbps"],
        )
    console.print(drawn)
    for note in notes:
        console.print(plain(f"! {note}"), style="yellow")


def draw_traces(traces: Traces, console: "Console") -> None:
    """Draw the steps of all ranks, the classes of kernels, and the collectives that ranks did together."""
    console.print(_steps(traces))
    console.print()
    console.print(_classes(traces))
    if traces.meetings is not None:
        console.print()
        console.print(_meetings(traces))
    console.print()
    console.print(STEP_LEGEND, style="dim")


def _steps(traces: Traces) -> Any:
    names = ("rank", "step", "ms", "compute", "comm.", "hidden", "exposed", "copy", "idle", "launches")
    drawn = table(*names, left=0)
    rows = traces.rows()
    for row in rows[:MOST_STEPS]:
        fields = ("step", "compute", "communication", "overlapped", "exposed", "exposed_memcpy", "idle")
        times = (f"{row[f'{name}_ms']:.2f}" for name in fields)
        rank = "-" if row["rank"] is None else str(row["rank"])
        drawn.add_row(rank, str(row["number"]), *times, str(row["launches"]))
    if len(rows) > MOST_STEPS:
        drawn.add_row("...", str(len(rows)), *[""] * 8)
    return drawn


def _classes(traces: Traces) -> Any:
    drawn = table("class of kernels", "per step", "ms", "share")
    first = traces.ranks[0].table
    step = sum(one.step for one in first.steps) / len(first.steps)
    for one in first.class_times():
        drawn.add_row(
            one.name.replace("_", " "), count(one.count), f"{one.total:.3f}", percent(one.total / step)
        )
    return drawn


def _meetings(traces: Traces) -> Any:
    drawn = table("collective", "bytes", "shortest", "mean wait")
    for one in (traces.meetings or ())[:MOST_STEPS]:
        size = "-" if one.bytes is None else format_bytes(one.bytes[1])
        drawn.add_row(one.operation, size, format_time(one.shortest / 1e6), format_time(one.waited / 1e6))
    return drawn


def draw_execution(found: Sequence[dict[str, Any]], console: "Console") -> None:
    """Draw what execution traces hold: kinds of nodes, and collectives."""
    for one in found:
        console.print(plain(f"{one['file']}: {one['nodes']:,} nodes, {one['edges']:,} edges"), style="bold")
        drawn = table("collective", "bytes", "count")
        for row in one["collectives"]:
            size = "-" if row["bytes"] is None else format_bytes(row["bytes"])
            drawn.add_row(row["operation"], size, str(row["count"]))
        console.print(drawn)
        flops = sum(row["flops"] * row["count"] for row in one["products"])
        console.print(plain(f"{len(one['products'])} shapes of products, {count(flops)}flop in all"))
        console.print()
