"""Plans side by side, for people: what nothing beats, what would improve one, what stands against."""

from typing import TYPE_CHECKING, Any

from analysis.cli.output import count, pairs, percent, plain, table
from analysis.plan.advice import Change
from analysis.plan.answering import Answered
from analysis.plan.basis import Basis, Figure, Rate
from analysis.plan.outcomes import Outcome
from analysis.plan.words import in_words
from analysis.sensitivity import EVENTS, Gain
from analysis.times import ms
from simulator.units import format_bytes

if TYPE_CHECKING:
    from rich.console import Console

MOST_GAINS = 6
LEGEND = "No other candidate beats a plan above in hours, cost and energy at once."
OPEN = "No plan above beats another in hours, cost and energy at once; {} candidates were not decided."


def draw_answer(answered: Answered, console: "Console") -> None:
    """Draw the plans and the advice, or what would make the question feasible."""
    console.print(plain(answered.name), style="bold")
    console.print(pairs([("target", answered.basis.target), ("limits", answered.basis.limits)]))
    told = f"{answered.tried:,} candidates: {answered.failed:,} cannot run, {_refused(answered)}"
    console.print(told, style="dim")
    console.print()
    if answered.plans:
        _draw_plans(answered, console)
    else:
        _draw_changes(answered.changes, console)
    if answered.reasons:
        console.print("\nwhy candidates cannot run:", style="bold")
        for reason in answered.reasons:
            console.print(plain(f"  {reason}"))
    _draw_basis(answered.basis, console)
    for note in answered.notes:
        console.print()
        console.print(plain(f"note: {note}"), style="dim")


def _refused(answered: Answered) -> str:
    each = ", ".join(f"{name}: {count:,}" for name, count in answered.broken.items())
    return f"{answered.refused:,} break a limit" + (f" ({each})" if each else "")


def _draw_basis(basis: Basis, console: "Console") -> None:
    """Draw what USD and kWh rest on: prices and powers with their sources, and what is left out."""
    console.print("\nwhat USD and kWh rest on, per accelerator", style="bold")
    console.print(pairs((rate.hardware, _rate(rate)) for rate in basis.rates))
    for text in basis.assumptions:
        console.print(plain(text))


def _rate(rate: Rate) -> str:
    price, power = rate.usd_per_hour, rate.watts
    known = [_figure(price, "USD/h"), _figure(power, "W")]
    if price.of == power.of:
        return f"{known[0][0]}, {known[1][0]} ({price.of})"
    return "\n".join(f"{text} ({of})" for text, of in known)


def _figure(figure: Figure, unit: str) -> tuple[str, str]:
    """Return the amount, and where it is from with the range there."""
    amount = f"no {unit}" if figure.amount is None else f"{figure.amount:,.4g} {unit}"
    return amount, figure.of + (f"; {figure.between}" if figure.between else "")


def _draw_plans(answered: Answered, console: "Console") -> None:
    drawn = table("", "hardware", "policy", "workers", "hours", "USD", "kWh", "step ms", "stale", left=3)
    for place, plan in enumerate(answered.plans):
        mark = ">" if place == answered.chosen else ""
        drawn.add_row(f"{mark}{place + 1}", *_row(plan))
    console.print(drawn)
    told = OPEN.format(f"{answered.undecided:,}") if answered.undecided else LEGEND
    console.print(f"\n{told}", style="dim")
    assert answered.chosen is not None
    chosen = answered.plans[answered.chosen]
    console.print()
    console.print(plain(f"plan {answered.chosen + 1} in full"), style="bold")
    console.print(pairs(_in_full(chosen)))
    _draw_gains(answered.gains, console)


def _row(plan: Outcome) -> tuple[Any, ...]:
    settings = dict(plan.candidate.settings)
    return (
        plain(plan.candidate.hardware),
        plain(_policy(settings["policy"])),
        f"{plan.candidate.workers:,}",
        f"{plan.hours:,.4g}",
        count(plan.usd),
        count(plan.kwh),
        ms(plan.record["step_mean_ms"]),
        f"{plan.record['staleness_declared_steps']:g}",
    )


def _policy(part: dict[str, Any]) -> str:
    numbers = [f"{value}" for name, value in part.items() if name == "micro_batches"]
    return " x ".join([str(part["kind"]), *numbers])


def _in_full(plan: Outcome) -> list[tuple[str, str]]:
    settings, record = dict(plan.candidate.settings), plan.record
    low, high = record["interval_low_ms"], record["interval_high_ms"]
    found = [
        ("policy", in_words(settings["policy"])),
        ("sharding", in_words(settings["sharding"]) if "sharding" in settings else "that of the scenario"),
        ("throughput", f"{count(record['throughput_samples_per_s'])} samples/s"),
        ("memory", f"{format_bytes(record['peak_memory_hbm_bytes'])} per device"),
        ("binds", record["bottleneck"]),
    ]
    return found + ([] if low is None else [("80 % interval", f"{low:,.4g} to {high:,.4g} ms per step")])


def _draw_gains(gains: list[Gain], console: "Console") -> None:
    if not gains:
        console.print("\nno physical parameter improved by 10 % alone makes a step shorter")
        return
    console.print("\nwhat 10 % more (of a time: less) would bring, run event by event", style="bold")
    drawn = table("improve", "from", "saves of\nthe step", left=2)
    for gain in gains[:MOST_GAINS]:
        about = "" if gain.engine == EVENTS else "about "
        drawn.add_row(plain(gain.parameter), plain(gain.value), about + percent(gain.saved_share))
    console.print(drawn)
    if any(gain.engine != EVENTS for gain in gains[:MOST_GAINS]):
        console.print(
            "about: estimated from the critical cycle, not run; there were too many to run", style="dim"
        )
    if len(gains) > MOST_GAINS:
        console.print(
            f"and {len(gains) - MOST_GAINS} others save less; all others change nothing", style="dim"
        )
    else:
        console.print("all others change nothing", style="dim")


def _draw_changes(changes: list[Change], console: "Console") -> None:
    if not changes:
        console.print("no candidate can run at all")
        return
    known, unknown = ([one for one in changes if one.known is whether] for whether in (True, False))
    _draw_each(known, "no plan meets the target. One of these would:", console)
    none = "" if known else "no plan is known to meet the target. "
    _draw_each(unknown, f"{none}Of these it is not known:", console)


def _draw_each(changes: list[Change], head: str, console: "Console") -> None:
    if changes:
        console.print(head, style="bold")
    for change in changes[:5]:
        plan = change.outcome
        settings = dict(plan.candidate.settings)
        how = f"{plan.candidate.workers:,} x {plan.candidate.hardware}, {_policy(settings['policy'])}"
        console.print(plain(f"  {change.what}: {how}"))
