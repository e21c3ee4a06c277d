"""From a folder of results to one HTML file."""

from pathlib import Path

from analysis.report import basis, pictures
from analysis.report.found import Found, find_results
from analysis.report.html import page
from analysis.report.plans import plans
from analysis.report.summary import summary
from simulator.results.export import replacing

SECTIONS = (
    plans,
    summary,
    pictures.breakdown,
    pictures.scaling,
    pictures.cost,
    pictures.steps,
    basis.runs,
    basis.assumptions,
)


def write_report(folder: Path, target: Path, title: str = "") -> None:
    """Write one page about the results in `folder` to `target`; it needs no other file and no network.

    The same results give the same bytes. Raises InputError when there are none, or a file is damaged.
    """
    found = find_results(folder)
    name = title or f"Training predictions: {folder.resolve().name or folder}"
    written = page(name, _lead(found), [make(found) for make in SECTIONS])
    with replacing(target) as unfinished:
        unfinished.write_text(written, encoding="utf-8")


def _lead(found: Found) -> str:
    """Say what the page is about, and that nothing on it was measured."""
    points = len(found.points) + len(found.failures)
    held = {
        "runs": len(found.runs),
        "points of sweeps": points,
        "answers to planning questions": len(found.answers),
    }
    told = ", ".join(f"{what}: {count:,}" for what, count in held.items() if count)
    return (
        f"How long training steps take, predicted by simulation; nothing here was measured. Made from {told}."
    )
