"""A run as files: what it was, what it said, its tables, its timeline and its picture."""

from pathlib import Path
from typing import Any

from simulator.results.export import replacing, versions, write_json, write_parquet
from simulator.results.tables import stages_table, steps_table
from simulator.scenario import Run

MOST_TRACED_BATCHES = 200


def save_run(run: Run, folder: Path) -> list[Path]:
    """Write run.json, steps.parquet, stages.parquet, trace.json.gz and gantt.png; return their paths.

    The same run gives the same bytes. Raises OSError when the folder cannot be written to.
    """
    window = (run.column, run.first, run.last)
    write_json(folder / "run.json", run_record(run))
    write_parquet(folder / "steps.parquet", steps_table(run.timeline, *window))
    write_parquet(folder / "stages.parquet", stages_table(run.timeline, *window))
    save_trace(run, folder / "trace.json.gz")
    save_gantt(run, folder / "gantt.png")
    return [
        folder / name
        for name in ("run.json", "steps.parquet", "stages.parquet", "trace.json.gz", "gantt.png")
    ]


def run_record(run: Run) -> dict[str, Any]:
    """Return what is needed to repeat a run, and its report."""
    scenario = run.scenario
    return {
        "hash": scenario.hash,
        "versions": versions(),
        "seed": scenario.spec.run.seed,
        "engine": run.timeline.engine,
        "scenario": scenario.resolved(),
        "report": run.report.to_dict(),
    }


def save_trace(run: Run, path: Path) -> None:
    """Write slowest, median and fastest rank as Chrome JSON; a path in `.gz` is compressed."""
    from simulator.results.trace import write_chrome_trace

    batches = range(min(run.timeline.batches, MOST_TRACED_BATCHES))
    with replacing(path) as unfinished:
        write_chrome_trace(run.timeline, unfinished, run.scenario.name, batches)


def save_gantt(run: Run, path: Path) -> None:
    """Draw three steady steps of the slowest rank."""
    from analysis.plots.gantt import draw_gantt

    with replacing(path) as unfinished:
        draw_gantt(run, unfinished)
