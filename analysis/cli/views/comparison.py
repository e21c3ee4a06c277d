"""Policies and sizes side by side, for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.cli.output import count, percent, plain, table
from analysis.compare import REFERENCE, Row
from analysis.times import ms
from simulator.errors import printable
from simulator.units import format_bytes

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


LEGEND = """\
speed-up: over serialized at the same workers{shown}
{scaling}stale: steps that rows lag behind; memory: peak of one device
+x: exposed wait for x (a2a: all-to-all, reduce: all-reduce)"""
SCALING = "scaling: throughput per worker over that on the policy's fewest workers (100.0%)\n"
NIL_MS = 5e-5  # half of the last digit of the shortest times
PLAIN_SUM = (
    "The plain sum adds up compute, input, lookup and all-to-all of the run, as if nothing overlapped. "
    "Where it comes close to the step, agreement with a measured step is no evidence for the model."
)


def draw_comparison(rows: Sequence[Row], console: "Console") -> None:
    """Draw one table of steps and one of what they consist of per scenario, then the notes."""
    for name in dict.fromkeys(row.scenario for row in rows):
        mine = [row for row in rows if row.scenario == name]
        console.print(plain(name), style="bold")
        console.print()
        console.print(_speeds(mine))
        console.print()
        console.print(_parts(mine))
        console.print()
    scaling = SCALING if _several_sizes(rows) else ""
    for line in LEGEND.format(shown=printable(_not_shown(rows)), scaling=scaling).splitlines():
        console.print(plain(line), style="dim")
    console.print()
    console.print(PLAIN_SUM, style="dim")
    _draw_notes(rows, console)


def _not_shown(rows: Sequence[Row]) -> str:
    """Say of which scenarios the reference of the speed-up is not among the rows."""
    names = dict.fromkeys(row.scenario for row in rows)
    shown = {row.scenario for row in rows if row.policy == REFERENCE}
    hidden = [name for name in names if name not in shown]
    if not hidden:
        return ""
    return ", not shown" if len(hidden) == len(names) else f" (not shown for {', '.join(hidden)})"


def _speeds(rows: Sequence[Row]) -> "Table":
    scaled = ("scaling",) if _several_sizes(rows) else ()
    heads = ("workers", "step\nms", "speed\nup", *scaled, "samples\nper s", "stale", "memory")
    drawn = table("policy", *heads, gap=1)
    drawn.columns[0].min_width = max(len(row.policy) for row in rows)  # names are not cut
    for row, first in _by_policy(rows):
        scaling = (percent(row.scaling_efficiency),) if scaled else ()
        drawn.add_row(
            _named(row, first),
            f"{row.workers:,}",
            ms(row.step_ms),
            "-" if row.speedup is None else f"{row.speedup:.2f}",
            *scaling,
            count(row.throughput_samples_per_s),
            _staleness(row),
            "-" if row.peak_memory_hbm_bytes is None else format_bytes(row.peak_memory_hbm_bytes),
            end_section=_ends(rows, row),
        )
    return drawn


def _several_sizes(rows: Sequence[Row]) -> bool:
    return len({row.workers for row in rows}) > 1


def _named(row: Row, first: bool) -> str:
    """Return the policy where it is the first row of it, and of what cannot run in which way it cannot."""
    unfit = any(note.startswith("cannot run") and "not applicable" in note for note in row.notes)
    why = "not applicable" if unfit else "cannot run" if row.step_ms is None else ""
    return "\n".join(filter(None, (row.policy if first else "", why and f"({why})")))


def _staleness(row: Row) -> str:
    """Return how stale rows were seen to be; with the promise beside it where that was another number.

    Where updates are lost for good, that is worse than any staleness and stands there instead.
    """
    if row.staleness_declared_steps is None or row.staleness_observed_max_steps is None:
        return "-"
    promised, seen = row.staleness_declared_steps, row.staleness_observed_max_steps
    if row.updates_lost_share:
        return f"{percent(row.updates_lost_share)} lost"
    return f"{seen:g}" if promised == seen else f"{seen:g} of {promised:g}"


def _parts(rows: Sequence[Row]) -> "Table":
    names = ("compute", "+input", "+lookup", "+a2a", "+reduce", "+other", "plain\nsum")
    able = [row for row in rows if row.step_ms is not None]
    drawn = table("ms per step", "workers", *names, gap=1)
    drawn.columns[0].min_width = max((len(row.policy) for row in able), default=1)
    for row, first in _by_policy(able):
        cells = (
            row.compute_ms,
            row.exposed_input_ms,
            row.exposed_lookup_ms,
            row.exposed_all_to_all_ms,
            row.exposed_all_reduce_ms,
            row.exposed_other_ms,
            row.plain_sum_of_raw_parts_ms,
        )
        name = row.policy if first else ""
        drawn.add_row(name, f"{row.workers:,}", *map(_short, cells), end_section=_ends(able, row))
    return drawn


def _short(value: float | None) -> str:
    if value is None:
        return "-"
    return "0" if abs(value) < NIL_MS else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _by_policy(rows: Sequence[Row]) -> list[tuple[Row, bool]]:
    """Return each row with whether it is the first of its policy."""
    before = (None, *(row.policy for row in rows))
    return [(row, row.policy != last) for row, last in zip(rows, before, strict=False)]


def _ends(rows: Sequence[Row], row: Row) -> bool:
    """Whether the next row begins another policy, and policies have several rows."""
    place = rows.index(row)
    return _several_sizes(rows) and place + 1 < len(rows) and rows[place + 1].policy != row.policy


def _draw_notes(rows: Sequence[Row], console: "Console") -> None:
    """Draw each note once, with the rows that it belongs to."""
    told: dict[str, list[Row]] = {}
    for row in rows:
        for note in row.notes:
            told.setdefault(note, []).append(row)
    for note, owners in told.items():
        console.print()
        console.print(plain(f"! {_owners(owners, rows)}: {note}"), style="yellow")


def _owners(owners: Sequence[Row], rows: Sequence[Row]) -> str:
    """Return which rows these are: all with so many workers, or policy by policy."""
    sizes = {row.workers for row in owners}
    if sum(row.workers in sizes for row in rows) == len(owners):
        return " and ".join(f"{workers:,}" for workers in sorted(sizes)) + " workers"
    names = dict.fromkeys(row.policy for row in owners)
    return ", ".join(_policy_rows(name, owners, rows) for name in names)


def _policy_rows(policy: str, owners: Sequence[Row], rows: Sequence[Row]) -> str:
    """Return the policy alone for all of its rows, and else with their workers."""
    mine = [f"{row.workers:,}" for row in owners if row.policy == policy]
    everywhere = len(mine) == sum(row.policy == policy for row in rows)
    return policy if everywhere else f"{policy} on {' and '.join(mine)}"
