"""The first section of a report: what the folder holds, and its numbers in one table per scenario."""

from collections import Counter
from collections.abc import Iterator, Sequence

from analysis.report.found import Found
from analysis.report.html import Column, Section, heading, listed, paragraph, section, table
from analysis.report.relate import Related, by_scenario, related
from simulator.units import format_bytes

MOST_LINES = 200
MOST_REASONS = 10
COLUMNS = (
    Column("policy", False),
    Column("workers"),
    Column("step, ms"),
    Column("interval, ms"),
    Column("speed-up"),
    Column("scaling"),
    Column("samples/s"),
    Column("stale steps"),
    Column("memory"),
    Column("USD per million"),
    Column("bottleneck", False),
    Column("with", False),
)
MEANING = (
    "A step is the time between two completed updates on the slowest worker. Speed-up is over the policy "
    '"serialized" on as many workers, scaling is samples/s per worker over that on the policy\'s fewest '
    "workers; both are between results of one engine that differ in policy and workers alone, and left empty "
    "where there are none. Memory is that of the fullest accelerator. The bottleneck is the chain of stages "
    "that no step can be shorter than."
)
CHOSEN = "Of several results with the same policy and workers, the one with most samples/s is shown."
BEYOND = "*: beyond the sizes that the scenario's numbers were fitted at; see the assumptions."


def summary(found: Found) -> Section:
    """Say what is best, and show one line per scenario, policy and number of workers."""
    rows = related(found.rows)
    shown = rows[:MOST_LINES]
    parts = (part for name, mine in by_scenario(shown).items() for part in _scenario(name, mine))
    cut = f"The first {MOST_LINES} of {len(rows):,} lines are shown." if len(rows) > MOST_LINES else ""
    chosen = CHOSEN if len(rows) < len(found.rows) else ""
    beyond = BEYOND if any(one.row.beyond for one in shown) else ""
    remarks = " ".join(part for part in (MEANING, chosen, beyond, cut) if part)
    return section("Summary", *parts, paragraph(remarks, dim=True) if rows else "", _failures(found))


def _scenario(name: str, rows: Sequence[Related]) -> Iterator[str]:
    yield heading(name)
    yield paragraph(_headline(rows))
    yield table(COLUMNS, map(_line, rows))
    above = [why for one in rows for why in one.why_above]
    if above:
        yield listed(above)


def _headline(rows: Sequence[Related]) -> str:
    """Say in one sentence what trains fastest."""
    best = max(rows, key=lambda one: one.row.throughput)
    row = best.row
    faster = f", {best.speedup:.2f} times as fast as serialized" if (best.speedup or 1.0) > 1.0 else ""
    what = "Most samples per second" if len(rows) > 1 else "Predicted"
    return (
        f"{what}: {row.throughput:,.0f} with {row.policy} on {row.workers:,} workers, "
        f"{row.step_ms:,.4g} ms per step{faster}."
    )


def _line(one: Related) -> Sequence[object]:
    row = one.row
    return (
        row.policy,
        f"{row.workers:,}",
        f"{row.step_ms:,.2f}{'*' if row.beyond else ''}",
        "-" if row.band is None else f"{row.band[0]:,.2f} to {row.band[1]:,.2f}",
        or_dash(one.speedup, "{:.2f}×"),
        or_dash(one.efficiency, "{:.1%}"),
        f"{row.throughput:,.0f}",
        or_dash(row.staleness, "{:g}"),
        format_bytes(row.memory),
        or_dash(row.usd_per_million, "{:.4g}"),
        ", ".join(row.bottleneck[:3]) + (", ..." if len(row.bottleneck) > 3 else ""),
        ", ".join(filter(None, (row.at, row.engine and f"engine {row.engine}"))),
    )


def or_dash(value: float | None, form: str) -> str:
    """Return `value` in a form, or a dash where it is not known."""
    return "-" if value is None else form.format(value)


def _failures(found: Found) -> str:
    """Say why points could not run, the commonest reasons first."""
    if not found.failures:
        return ""
    counts = Counter(found.failures).most_common(MOST_REASONS)
    told = f"{len(found.failures):,} of {len(found.failures) + len(found.points):,} points could not run:"
    return paragraph(told) + listed(f"{count:,} × {reason[:500]}" for reason, count in counts)
