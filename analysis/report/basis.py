"""What a report's numbers rest on: the runs, what was assumed, and numbers of the catalog with sources."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analysis.report.found import Found, Run
from analysis.report.html import Column, Section, folded, listed, paragraph, section, table
from analysis.report.points import BEYOND
from analysis.report.records import short
from simulator.errors import RecscaleError
from simulator.hardware import catalog
from simulator.scenario.machine_spec import machine_with

MOST_RUNS, MOST_NOTES = 100, 40
Numbers = Iterable[tuple[str, Mapping[str, Any]]]


def runs(found: Found) -> Section:
    """Show how each run was made, and how its steps spread."""
    columns = [Column(head, False) for head in ("scenario", "policy", "training is", "engine")]
    columns += [Column(head) for head in ("seed", "batches", "p50, ms", "p95, ms", "p99, ms", "latency, ms")]
    columns += [Column("hash", False), Column("recscale", False)]
    shown = found.runs[:MOST_RUNS]
    more = f"The first {MOST_RUNS} of {len(found.runs):,}." if len(found.runs) > MOST_RUNS else ""
    lines = table(columns, map(_run, shown)) if shown else ""
    fidelity = dict.fromkeys(f"{run.record.row.scenario}: {run.record.report.fidelity}" for run in shown)
    return section("Runs", lines, listed(fidelity), paragraph(more, dim=True))


def _run(run: Run) -> tuple[object, ...]:
    record, told, row = run.record, run.record.report, run.record.row
    times = (told.step_ms.p50, told.step_ms.p95, told.step_ms.p99, told.latency_ms)
    return (
        *(row.scenario, row.policy, short(told.consistency), short(record.engine)),
        *(record.seed, f"{told.batches:,}", *(f"{time:,.3f}" for time in times)),
        *(short(record.hash), short(record.versions.get("recscale", "-"))),
    )


def assumptions(found: Found) -> Section:
    """List what was assumed, and every number of the catalog that a run rests on, with its source."""
    entries = sorted({named for run in found.runs for named in _named(run)})
    stated = {one for run in found.runs for one in _stated(run.record.scenario.cluster, "cluster")}
    tables = (_entry(kind, name) for kind, name in entries)
    lead = "From the catalog (open for values and sources):" if entries else ""
    return section("Assumptions", listed(_notes(found)), listed(sorted(stated)), paragraph(lead), *tables)


def _notes(found: Found) -> list[str]:
    """Return what results say beside their numbers; of notes that differ in numbers only, the first."""
    of_runs = [run.record.report for run in found.runs]
    told = [note for report in of_runs for note in report.notes]
    told += [BEYOND + what for report in of_runs for what in report.extrapolated]
    for point in found.points:
        head, *beyond = point.notes.split(f"; {BEYOND}")
        told += [head, *(BEYOND + what for what in beyond)]
    kept: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for note in dict.fromkeys(one for one in told if one):
        alike = re.sub(r"[0-9][0-9.,]*", "#", note)
        kept.setdefault(alike, note)
        counts[alike] += 1
    more = {alike: f" ({counts[alike] - 1} more with other numbers)" for alike in kept if counts[alike] > 1}
    return [note[:1000] + more.get(alike, "") for alike, note in kept.items()][:MOST_NOTES]


def _stated(part: object, path: str) -> Iterator[str]:
    """Yield what a scenario gives its own source for."""
    if isinstance(part, dict):
        source = part.get("source")
        if isinstance(source, str):
            given = ", ".join(
                f"{name} {value}" for name, value in part.items() if name not in ("kind", "source")
            )
            yield f"{path}: {short(given)}, from {source[:500]}"
        for name, inner in part.items():
            yield from _stated(inner, f"{path}.{name}")


def _named(run: Run) -> Iterator[tuple[str, str]]:
    """Yield kind and name of the catalog entries that a run uses, those that follow from others included."""
    cluster = run.record.scenario.cluster
    groups = cluster.get("groups") or [cluster]
    for part in groups if isinstance(groups, list) else [cluster]:
        accelerator = part.get("accelerator") if isinstance(part, dict) else None
        if isinstance(accelerator, str):
            yield from _with_machine({**cluster, **part}, accelerator)


def _with_machine(part: Mapping[str, Any], accelerator: str) -> Iterator[tuple[str, str]]:
    yield "accelerator", accelerator
    for kind in ("host", "fabric"):
        name = part.get(kind)
        if name is None:
            name = _lent(accelerator, kind)
        if isinstance(name, str):
            yield kind, name


def _lent(accelerator: str, kind: str) -> str | None:
    """Return what the catalog's machine with this accelerator brings."""
    try:
        return str(catalog.entry("machine", machine_with(accelerator, kind))[kind])
    except RecscaleError:
        return None


def _entry(kind: str, name: str) -> str:
    try:
        numbers = list(_valued(catalog.entry(kind, name)))
    except RecscaleError:
        return paragraph(f"{kind} {short(name)}: not in the catalog of this version")
    counts = Counter(str(number["confidence"]) for _, number in numbers)
    sure = ", ".join(f"{count} {confidence}" for confidence, count in counts.most_common())
    columns = [Column(head, False, head == "source") for head in ("number", "value", "confidence", "source")]
    rows = ((field, one["value"], one["confidence"], one["source"]) for field, one in numbers)
    return folded(f"{kind} {name}: {len(numbers)} numbers ({sure})", table(columns, rows))


def _valued(entry: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field, value in entry.items():
        if isinstance(value, dict) and "value" in value:
            yield prefix + field, value
        elif isinstance(value, dict):
            yield from _valued(value, f"{prefix}{field}.")
