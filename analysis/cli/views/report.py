"""What a run says, for people: the step, where it goes, and what sets its pace. Fits 80 columns."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from analysis.cli.output import pairs, percent, plain, table
from analysis.cli.views.words import KIND_WORDS, arrows, memory_use, sizes
from analysis.explain import resource_shares
from analysis.scaling import OneHost
from analysis.times import duration, ms
from simulator.results.report import StepReport
from simulator.scenario import Run

COST_WORDS = {"usd_per_million_samples": "USD per million samples", "joules_per_sample": "J per sample"}
SHOWN_MS = 0.0005
LONGER = 1.001  # times all such stages: a wait that needs to be explained
BAR = 16  # characters of a whole step
WAITS = (
    "Each moment of a wait is charged to the stage that arrived last. That is no promise of a gain: "
    "without this stage the next to arrive may be waited for."
)

if TYPE_CHECKING:
    from rich.console import Console


def draw_report(run: Run, baseline: OneHost | None, console: "Console") -> None:
    """Draw the report of `run`; `baseline` tells how it compares with a single host."""
    report = run.report
    console.print(
        plain(f"{report.scenario}: {run.scenario.spec.policy.kind} on {sizes(run.scenario)}"), style="bold"
    )
    console.print()
    console.print(pairs(_headline(run, baseline)))
    console.print()
    _draw_breakdown(report, console)
    console.print()
    console.print(" ".join(_legend(run)), style="dim")
    console.print()
    console.print(pairs(_reasons(run)))
    draw_notes(report.notes, console)


def _headline(run: Run, baseline: OneHost | None) -> Iterator[tuple[str, str]]:
    report = run.report
    step = report.step_ms
    spread = f"p50 {ms(step['p50'])}, p95 {ms(step['p95'])}, p99 {ms(step['p99'])}"
    same = step["p50"] == step["p99"]
    yield "step", f"{ms(step['mean'])} ms" + (" (every step alike)" if same else f" ({spread})")
    if report.interval_ms:
        low, high, coverage = (report.interval_ms[name] for name in ("low", "high", "coverage"))
        yield "interval", f"{ms(low)} to {ms(high)} ms in {percent(coverage, 0)} of cases"
    yield "throughput", f"{report.throughput_samples_per_s:,.0f} samples/s"
    if baseline is not None:
        yield "one host", _one_host(baseline, run.scenario.cluster.per_host)
    yield "latency", f"{duration(report.latency_ms)} from a batch's first stage to its update"
    if report.cost:
        yield (
            "cost",
            ", ".join(f"{value:,.3g} {COST_WORDS.get(name, name)}" for name, value in report.cost.items()),
        )


def _one_host(baseline: OneHost, per_host: int) -> str:
    if baseline.efficiency is None:
        return f"no baseline: {baseline.missing}"
    return f"{percent(baseline.efficiency)} of the throughput per worker on one host of {per_host}, run alike"


def _legend(run: Run) -> Iterator[str]:
    """Say what a wait is charged to; and where one is longer than all such stages, how that can be."""
    yield WAITS
    report = run.report
    if not any(wait > LONGER * report.raw_ms.get(kind, wait) for kind, wait in report.exposed_ms.items()):
        return
    reasons = []
    if report.interference_ms >= SHOWN_MS:
        reasons.append("sharing slows these stages down, and their time is that of running alone")
    if run.timeline.end_ns.shape[2] > 1:
        reasons.append("it is for a slower rank's stages, and their time is this rank's")
    if reasons:
        yield f"A wait longer than all such stages: {'; or '.join(reasons)}."


def _draw_breakdown(report: StepReport, console: "Console") -> None:
    """Draw the step by what the compute stream does or waits for, and beside it all stages of each kind."""
    drawn = table("in one step", "ms", "share", "", "all such stages, ms")
    bar = "█" if console.encoding.startswith("utf") else "#"
    mean = report.step_ms["mean"]
    largest = max(mean, *report.raw_ms.values())
    for kind, raw, part in _parts(report):
        share = part / mean if mean else 0.0
        cells = ms(part, largest), percent(share), plain(bar * round(BAR * share)), ms(raw, largest)
        drawn.add_row(KIND_WORDS[kind], *cells)
    for column, total in zip(drawn.columns, ("step", ms(mean, largest), "100.0%"), strict=False):
        column.footer = total
    drawn.show_footer = True
    drawn.columns[3].justify, drawn.columns[3].min_width = "left", BAR
    console.print(drawn)


def _parts(report: StepReport) -> Iterator[tuple[str, float | None, float]]:
    """Yield (kind, time of all its stages, its part of the step), leaving out what does not occur."""
    yield "compute", report.raw_ms["compute"], report.compute_ms
    for kind, part in report.exposed_ms.items():
        raw = report.raw_ms.get(kind)
        if raw or part:
            yield kind, raw, part


def _reasons(run: Run) -> Iterator[tuple[str, str]]:
    report = run.report
    shares = resource_shares(run.scenario, run.pace)
    main = ", ".join(f"{name} {percent(share, 0)}" for name, share in shares.items() if share >= 0.005)
    yield (
        "bottleneck",
        f"{main} of the critical cycle; no step takes less than {ms(report.lower_bound_ms)} ms",
    )
    yield "", arrows(report.bottleneck)
    busy = {name: share for name, share in report.busy_share.items() if share >= 0.0005}
    yield "busy", ", ".join(f"{name} {percent(share)}" for name, share in busy.items())
    if report.interference_ms >= SHOWN_MS:
        yield "interference", f"sharing adds {ms(report.interference_ms)} ms to all stages together"
    yield "memory", "; ".join(memory_use(run.scenario, report.peak_memory_bytes))
    stale = report.staleness_steps
    yield (
        "staleness",
        f"{report.consistency}; {stale['declared']:g} steps promised, {_seen(stale['observed_max'])}",
    )
    if fate := _wrong_updates(report.updates):
        yield "updates", fate
    yield "fidelity", report.fidelity
    yield (
        "run",
        f"{report.batches} batches, engine {report.engine}, seed {report.seed}, hash {run.scenario.hash}",
    )
    if report.extrapolated:
        yield "beyond data", ", ".join(report.extrapolated)


def draw_notes(notes: list[str], console: "Console") -> None:
    """Draw what must be said beside the numbers."""
    for note in notes:
        console.print()
        console.print(plain(f"! {note}"), style="yellow")


def _wrong_updates(shares: dict[str, float | None]) -> str:
    """Say which shares of all updates of rows are lost or applied twice; nothing where none is."""
    words = {"lost_share": "lost for good", "duplicated_share": "applied twice"}
    wrong = [f"{percent(share)} {words[name]}" for name, share in shares.items() if share]
    return f"{' and '.join(wrong)}, of all updates of rows" if wrong else ""


def _seen(steps: float | None) -> str:
    return "none observed: no stage says what it reads" if steps is None else f"{steps:g} seen"
