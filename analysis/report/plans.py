"""The answers to planning questions in a report."""

from collections.abc import Iterator, Sequence
from typing import Any

from analysis.plan.words import in_words
from analysis.plots.curves import draw_front
from analysis.report.answers import Answer, Figure, Plan, Rate
from analysis.report.found import Found
from analysis.report.html import Column, Section, figure, heading, listed, paragraph, section, table
from analysis.report.pictures import drawn
from analysis.report.records import short
from analysis.report.summary import or_dash
from simulator.units import format_bytes

MOST_GAINS = 8
COLUMNS = (
    Column("", False),
    Column("hardware", False),
    Column("policy", False),
    Column("workers"),
    Column("hours"),
    Column("interval, hours"),
    Column("USD"),
    Column("kWh"),
    Column("step, ms"),
    Column("memory"),
    Column("sharding", False),
    Column("binds", False),
)
RATES = (
    Column("hardware", False),
    Column("USD/h per accelerator"),
    Column("from", False),
    Column("W per accelerator"),
    Column("from", False),
)


def plans(found: Found) -> Section:
    """Show what was asked, the plans that nothing beats, and what would help."""
    return section("Plans", *(part for answer in found.answers for part in _answer(answer)))


def _answer(answer: Answer) -> Iterator[str]:
    yield heading(short(answer.name))
    yield from _asked(answer)
    each = ", ".join(f"{short(name)}: {count:,}" for name, count in answer.broken.items())
    tried = f"{answer.tried:,} candidates were tried: {answer.refused:,} break a limit"
    tried += f" ({each})" if each else ""
    tried += f", {answer.failed:,} cannot run." if answer.failed else "."
    yield paragraph(f"{'' if answer.plans else 'No plan meets the target. '}{tried}")
    if answer.plans:
        lines = (_line(plan, plan is answer.chosen_plan) for plan in answer.plans)
        yield table(COLUMNS, lines)
        yield paragraph("No other candidate beats any of these in hours, cost and energy at once.", dim=True)
    yield _picture(answer)
    yield _gains(answer)
    yield from _told(
        "What would make the question feasible:", [f"allow {one.allow}" for one in answer.changes]
    )
    yield from _told("Why candidates cannot run:", answer.reasons)
    yield from _rests_on(answer)
    yield listed(answer.notes)


def _asked(answer: Answer) -> Iterator[str]:
    if answer.basis is not None:
        yield paragraph(f"Target: {answer.basis.target}. Limits: {answer.basis.limits}.")


def _rests_on(answer: Answer) -> Iterator[str]:
    """Show prices and powers with their sources, and what is assumed."""
    if answer.basis is None:
        return
    yield paragraph("What USD and kWh rest on:")
    yield table(RATES, (_rate(rate) for rate in answer.basis.rates))
    yield listed(answer.basis.assumptions)


def _rate(rate: Rate) -> Sequence[object]:
    price, power = rate.usd_per_hour, rate.watts
    cells = ((or_dash(one.amount, "{:,.4g}"), _source(one)) for one in (price, power))
    return (short(rate.hardware), *(cell for pair in cells for cell in pair))


def _source(figure: Figure) -> str:
    return figure.of + (f"; {figure.between}" if figure.between else "")


def _told(lead: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield paragraph(lead)
        yield listed(items)


def _line(plan: Plan, chosen: bool) -> Sequence[object]:
    band = plan.hours_interval
    return (
        ">" if chosen else "",
        short(plan.hardware),
        in_words(plan.policy),
        f"{plan.workers:,}",
        f"{plan.hours:,.4g}",
        "-" if band is None else f"{band.low:,.4g} to {band.high:,.4g}",
        or_dash(plan.usd, "{:,.0f}"),
        or_dash(plan.kwh, "{:,.0f}"),
        f"{plan.step_ms:,.3f}",
        "-" if plan.peak_memory_hbm_bytes is None else format_bytes(plan.peak_memory_hbm_bytes),
        "that of the scenario" if plan.sharding is None else in_words(plan.sharding),
        short(plan.bottleneck) or "-",
    )


def _picture(answer: Answer) -> str:
    """Draw the plans where the costs of several are known."""
    rows = [_row(plan) for plan in answer.plans if plan.usd_per_million is not None]
    if len(rows) < 2:
        return ""
    ranked = sorted(rows, key=lambda row: float(row["usd_per_million_samples"]))
    picture = drawn(lambda path: draw_front(ranked, ranked, path))
    return figure(picture, f"{short(answer.name)}: what more samples/s cost.")


def _row(plan: Plan) -> dict[str, Any]:
    name = f"{short(plan.hardware)}, {short(plan.kind)}"
    return {
        "policy": name,
        "throughput_samples_per_s": plan.throughput_samples_per_s,
        "usd_per_million_samples": plan.usd_per_million,
    }


def _gains(answer: Answer) -> str:
    if not answer.gains or answer.chosen_plan is None:
        return ""
    columns = (
        Column("parameter", False),
        Column("now"),
        Column("changed to"),
        Column("step, ms"),
        Column("saved"),
    )
    lines = (
        (one.parameter, one.value, f"× {one.factor:.3g}", f"{one.step_ms:,.3f}", f"{one.saved_share:.1%}")
        for one in answer.gains[:MOST_GAINS]
    )
    lead = (
        "What 10 % more of each physical parameter (of a time: less) would bring to the plan marked >; "
        "others change nothing:"
    )
    return paragraph(lead) + table(columns, lines)
