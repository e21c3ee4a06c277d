"""The pictures of a report: breakdown, scaling, cost, and the steps of runs; each within the page."""

import base64
from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.plots.breakdown import draw_breakdown
from analysis.plots.curves import draw_front, draw_scaling
from analysis.report.found import Found, Run
from analysis.report.html import Section, figure, paragraph, section
from analysis.report.relate import Related, by_scenario, front, related

MOST_BARS, MOST_SCENARIOS, MOST_CHARTS, LARGEST_CHART = 40, 8, 20, 5_000_000
PNG = b"\x89PNG\r\n\x1a\n"


def breakdown(found: Found) -> Section:
    """Draw where the time of each step goes."""
    scenarios = by_scenario(related(found.rows))
    return section("Breakdown", *starmap(_bars, _first(scenarios)), _left_out(scenarios))


def _bars(name: str, rows: Sequence[Related]) -> str:
    shown = rows if len(rows) <= MOST_BARS else _ends(rows)
    cut = (
        "" if len(shown) == len(rows) else f" {len(shown)} of {len(rows):,} results: fewest and most workers."
    )
    picture = drawn(lambda path: draw_breakdown([one.drawn for one in shown[:MOST_BARS]], path))
    return figure(picture, f"{name}: compute, and what the compute stream waits for.{cut}")


def _ends(rows: Sequence[Related]) -> list[Related]:
    """Return the rows at the fewest and at the most workers."""
    sizes = [one.row.workers for one in rows]
    return [one for one in rows if one.row.workers in (min(sizes), max(sizes))]


def scaling(found: Found) -> Section:
    """Draw how each policy scales, where several sizes were run."""
    scenarios = by_scenario(related(found.rows))
    several = {name: rows for name, rows in scenarios.items() if any(one.efficiency for one in rows)}
    return section("Scaling", *starmap(_curves, _first(several)), _left_out(several))


def _curves(name: str, rows: Sequence[Related]) -> str:
    picture = drawn(lambda path: draw_scaling([one.drawn for one in rows], path))
    return figure(picture, f"{name}: samples/s per worker over that on the policy's fewest workers.")


def cost(found: Found) -> Section:
    """Draw cost over throughput, where the costs of several results are known."""
    scenarios = by_scenario(
        [Related(row, None, None) for row in found.rows if row.usd_per_million is not None]
    )
    several = {name: rows for name, rows in scenarios.items() if len(rows) > 1}
    return section("Cost", *starmap(_front, _first(several)), _left_out(several))


def _front(name: str, rows: Sequence[Related]) -> str:
    best = [Related(row, None, None).drawn for row in front([one.row for one in rows])]
    picture = drawn(lambda path: draw_front([one.drawn for one in rows], best, path))
    return figure(picture, f"{name}: the line joins what nothing beats in both samples/s and cost.")


def _first(scenarios: dict[str, list[Related]]) -> list[tuple[str, list[Related]]]:
    return list(scenarios.items())[:MOST_SCENARIOS]


def _left_out(scenarios: dict[str, list[Related]]) -> str:
    more = len(scenarios) - MOST_SCENARIOS
    return paragraph(f"{more:,} more scenarios are not drawn.", dim=True) if more > 0 else ""


def steps(found: Found) -> Section:
    """Show the chart that each run left behind."""
    charts = list(_charts(found))
    shown = (figure(source, _title(run)) for run, source in charts[:MOST_CHARTS])
    more = f"{len(charts) - MOST_CHARTS:,} more runs have charts." if len(charts) > MOST_CHARTS else ""
    return section("Steps", *shown, paragraph(more, dim=True))


def _charts(found: Found) -> Iterator[tuple[Run, str]]:
    """Yield the runs with a chart of their own that is a PNG file, and no link to somewhere else."""
    for run in found.runs:
        path = run.folder / "gantt.png"
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_CHART:
            continue
        content = path.read_bytes()
        if content.startswith(PNG):
            yield run, embedded(content, "png")


def _title(run: Run) -> str:
    row = run.record.row
    return f"{row.scenario}, {row.policy}, {row.workers:,} workers: three steps of the slowest worker."


def drawn(draw: Callable[[Path], None]) -> str:
    """Return what `draw` writes as the address of a picture within the page."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "picture.svg")
        draw(path)
        return embedded(path.read_bytes(), "svg+xml")


def embedded(content: bytes, kind: str) -> str:
    """Return a picture as a `data:` address: an image of its own, in which nothing can run."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
