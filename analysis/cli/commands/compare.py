"""`recscale compare`: policies and cluster sizes side by side."""

import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.cli.options import Engine, EngineName, Format, FormatName, Settings, once, takes, words
from analysis.cli.output import tell
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from analysis.compare import Request, Row
    from simulator.scenario import Run, Scenario

MOST_REASONS = 3
NAMES = "The page docs/concepts/policies.md lists them all, and any name that is none, those like it."


@dataclass(frozen=True)
class CompareOptions:
    """What `compare` takes."""

    scenarios: Annotated[list[Path], typer.Argument(metavar="SCENARIO", help="Scenario files (YAML).")]
    policies: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help=f"Policies to compare (default: the scenario's own). {NAMES}"),
    ] = None
    workers: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Numbers of workers (default: the scenario's own).")
    ] = None
    micro_batches: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Micro-batches, where the scenario states none.")
    ] = None
    settings: Settings = None
    engine: EngineName = Engine.events
    plot: Annotated[
        str | None, typer.Option(metavar="PREFIX", help="Draw PREFIX-breakdown.png, PREFIX-gantt-POLICY.png.")
    ] = None
    format: FormatName = Format.table


@takes(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Compare policies, cluster sizes and scenarios, one row each."""
    from analysis.cli.output import Answer, flat
    from analysis.cli.views.comparison import draw_comparison
    from analysis.compare import Request
    from analysis.naming import told_apart
    from simulator.errors import InfeasibleError
    from simulator.scenario import load

    scenarios = told_apart([load(path, options.settings) for path in options.scenarios])
    if len(scenarios) < len(options.scenarios):
        print("recscale: a scenario is given more than once; shown once", file=sys.stderr)
    policies = once("--policies", words("--policies", options.policies))
    workers = tuple(map(_count, once("--workers", words("--workers", options.workers))))
    request = Request(policies, workers, options.micro_batches, options.engine.value)
    _say_what_is_assumed(scenarios, request)
    rows, largest = _compared(scenarios, request)
    none = all(row.step_ms is None for row in rows)
    if options.plot is not None and not none:
        _plot(rows, largest, options.plot)
    data = [row.to_dict() for row in rows]
    csv = [flat({**row, "notes": list(row["notes"])}) for row in data]
    if not (none and options.format is Format.table):  # a table without numbers says less than the reasons
        Answer(data, csv, lambda console: draw_comparison(rows, console)).show(options.format)
    if none:
        raise InfeasibleError(_why_none(rows))


def _why_none(rows: "list[Row]") -> str:
    """Say why no row can run: the one reason, or the commonest ones with how many each stops."""
    counts = Counter(row.notes[0].removeprefix("cannot run: ") for row in rows)
    if len(counts) == 1:
        return f"cannot run: {next(iter(counts))}"
    told = "; ".join(f"{count} x {reason}" for reason, count in counts.most_common(MOST_REASONS))
    return f"none of {len(rows)} can run: {told}"


def _count(word: str) -> int:
    from simulator.errors import InputError
    from simulator.units import shown

    if not (word.isascii() and word.isdigit() and len(word) <= 15):
        raise InputError(f"--workers: {shown(word)} is not a number of workers")
    return int(word)


def _say_what_is_assumed(scenarios: "list[Scenario]", request: "Request") -> None:
    from analysis.compare import DEFAULT_MICRO_BATCHES, assumes_micro_batches, ignores_micro_batches

    for scenario in scenarios:
        if assumes_micro_batches(scenario, request):
            text = f"states no micro_batches; {DEFAULT_MICRO_BATCHES} are taken (--micro-batches N)"
            tell(f"{scenario.name} {text}")
        if ignores_micro_batches(scenario, request):
            text = "states its own micro_batches, which --micro-batches does not replace"
            tell(f"{scenario.name} {text}")


def _compared(scenarios: "list[Scenario]", request: "Request") -> "tuple[list[Row], list[Run]]":
    """Return the rows, and of each scenario and policy the run with the most workers."""
    from analysis.compare import compare, count_runs

    largest: dict[tuple[str, str], Run] = {}
    with progress("comparing", count_runs(scenarios, request)) as work:

        def finished(row: "Row", run: "Run | None") -> None:
            before = largest.get((row.scenario, row.policy))
            if run is not None and (before is None or run.timeline.ranks > before.timeline.ranks):
                largest[row.scenario, row.policy] = run
            work.advance()

        rows = compare(scenarios, replace(request, progress=work.within, finished=finished))
    wanted = {(row.scenario, row.policy) for row in rows}
    return rows, [run for key, run in largest.items() if key in wanted]


def _plot(rows: "list[Row]", runs: "list[Run]", prefix: str) -> None:
    """Draw the breakdown of all rows, and the chart of every policy with the most workers."""
    from analysis.plots.breakdown import draw_breakdown
    from analysis.saving import save_gantt
    from simulator.results.export import replacing

    drawn = [Path(f"{prefix}-breakdown.png")]
    with progress("drawing", 1 + len(runs)) as work:
        with replacing(drawn[0]) as unfinished:
            draw_breakdown([row.to_dict() for row in rows], unfinished)
        for run in runs:
            work.advance()
            drawn.append(_gantt_path(run, runs, prefix))
            save_gantt(run, drawn[-1])
    tell(f"drew {', '.join(map(str, drawn))}")


def _gantt_path(run: "Run", runs: "list[Run]", prefix: str) -> Path:
    """Name the policy, and the scenario where there are several."""
    several = len({one.scenario.name for one in runs}) > 1
    name = f"{run.scenario.name}-" if several else ""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    return Path(f"{prefix}-gantt-{safe}{run.scenario.spec.policy.kind}.png")
