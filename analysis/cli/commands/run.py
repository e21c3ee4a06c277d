"""`recscale run`, `check` and `trace`: one scenario."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.cli.options import Engine, EngineName, Format, FormatName, ScenarioOptions, takes
from analysis.cli.output import tell
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from analysis.scaling import OneHost
    from simulator.scenario import Run, Scenario


@dataclass(frozen=True)
class RunOptions(ScenarioOptions):
    """What `run` takes."""

    engine: EngineName = Engine.events
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the run's files there as well.")] = (
        None
    )
    format: FormatName = Format.table


@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Predict the step time of a scenario, and say where it goes."""
    from analysis.cli.output import Answer, flat
    from analysis.cli.views.report import draw_report

    scenario = options.load()
    done = simulate(scenario, options.engine)
    if options.out is not None:
        _save(done, options.out)
    report = done.report.to_dict()
    baseline = _one_host(done) if options.format is Format.table else None
    Answer(report, [flat(report)], lambda console: draw_report(done, baseline, console)).show(options.format)


def simulate(scenario: "Scenario", engine: Engine) -> "Run":
    """Run `scenario` and show that it is under way."""
    from simulator.scenario import run_scenario

    with progress(f"simulating {scenario.name}") as work:
        done = run_scenario(scenario, engine.value, work.within)
        _ = done.report
    return done


def _one_host(done: "Run") -> "OneHost | None":
    from analysis.scaling import against_one_host

    with progress(f"simulating {done.scenario.name} on one host") as work:
        return against_one_host(done, work.within)


def _save(done: "Run", folder: Path) -> None:
    from analysis.saving import save_run

    with progress("writing files"):
        written = save_run(done, folder)
    tell(f"wrote {', '.join(path.name for path in written)} to {folder}")


@dataclass(frozen=True)
class CheckOptions(ScenarioOptions):
    """What `check` takes."""


@takes(CheckOptions)
def check(options: CheckOptions) -> None:
    """Check a scenario without running it.

    Prints what was understood; what cannot run is refused as a run would refuse it.
    """
    from analysis.checking import check as checked
    from analysis.cli.output import console, pairs

    understood = checked(options.load())
    console().print(pairs(understood))


@dataclass(frozen=True)
class TraceOptions(ScenarioOptions):
    """What `trace` takes."""

    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="Where to; compressed if it ends in .gz.")
    ] = Path("trace.json")
    engine: EngineName = Engine.events


@takes(TraceOptions)
def trace(options: TraceOptions) -> None:
    """Write a run's timeline for ui.perfetto.dev.

    It holds the slowest, the median and the fastest rank.
    """
    from analysis.saving import save_trace

    save_trace(simulate(options.load(), options.engine), options.out)
    tell(f"wrote {options.out}")
