"""The points of a sweep, for people: the best ones, what they set, and how many could not run."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.cli.output import count, plain, table
from analysis.plan.words import in_words
from analysis.sweep.grid import Grid
from analysis.sweep.points import DONE, Record
from analysis.times import ms
from simulator.units import format_bytes

if TYPE_CHECKING:
    from rich.console import Console

MOST_SHOWN = 20


def draw_sweep(grid: Grid, records: Sequence[Record], console: "Console") -> None:
    """Draw the points with the most samples per second, then what went wrong."""
    done = [record for record in records if record["status"] == DONE]
    best = sorted(done, key=lambda record: -record["throughput_samples_per_s"])[:MOST_SHOWN]
    names = _short(grid.axes)
    drawn = table(*names.values(), "step ms", "samples/s", "stale", "memory", left=len(names))
    for record in best:
        settings = json.loads(record["settings"])
        drawn.add_row(
            *(plain(_shown(settings.get(path))) for path in names),
            ms(record["step_mean_ms"]),
            count(record["throughput_samples_per_s"]),
            f"{record['staleness_declared_steps']:g}",
            format_bytes(record["peak_memory_hbm_bytes"]),
        )
    console.print(drawn)
    if len(done) > len(best):
        console.print(f"\nthe {len(best)} with the most samples/s of {len(done):,} that ran", style="dim")
    for said in dict.fromkeys(_engine(record) for record in done):
        console.print()
        console.print(plain(said), style="dim")
    _draw_failures(records, console)


def _engine(record: Record) -> str:
    """Return which engine made a point, and what it leaves out; which ranks were folded is left out."""
    return f"engine {record['engine']}: {str(record['fidelity']).partition('; ')[2]}"


def _short(paths: Sequence[str]) -> dict[str, str]:
    """Return a short head for each path: its last steps, as many as tell it from the others."""
    steps = {path: path.split(".") for path in paths}
    found = {}
    for path, mine in steps.items():
        others = [other for one, other in steps.items() if one != path]
        length = next(
            (n for n in range(1, len(mine)) if all(other[-n:] != mine[-n:] for other in others)), len(mine)
        )
        found[path] = ".".join(mine[-length:])
    return found


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return in_words(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _draw_failures(records: Sequence[Record], console: "Console") -> None:
    reasons = Counter((record["status"], record["error"]) for record in records if record["status"] != DONE)
    if reasons:
        total = sum(reasons.values())
        console.print(f"\n{total:,} point{'s' if total > 1 else ''} could not run:", style="bold")
    for (status, reason), times in reasons.most_common(5):
        console.print(plain(f"  {times:,} x {status}: {reason}"))
    if len(reasons) > 5:
        console.print(f"  and {len(reasons) - 5:,} other reasons (--format csv shows all)")
