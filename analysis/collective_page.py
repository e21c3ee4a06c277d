"""`docs/collectives.md`, written from the predictions of `analysis.collective_validation`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis.collective_validation import (
    FITTERS,
    LARGER_SCALES,
    OPERATIONS,
    OTHER_SIZES,
    WITH_LENT,
    Errors,
    Target,
    Validation,
    errors_of,
    errors_with_refusals,
    validate,
)
from analysis.markdown import markdown_table
from simulator.calibration.collective_held_out import Fitter, HeldOut, every_second_size, median_and_p90
from simulator.calibration.collective_tables import Table
from simulator.units import format_bytes, format_time

PAGE = Path("docs/collectives.md")
WORST_TABLES, WORST_ROWS = 25, 20

INTRODUCTION = """\
# Measured collectives: what was predicted, and how wrong it was

This page is generated: `python -m analysis.collective_validation FOLDER` in the checkout writes it from a
folder of measured tables (nccl-tests and its like). Written from {tables} tables with {rows} usable rows;
digest {digest}. Left out as fit for noise studies only, by their own notes: {noise}.

Errors are |predicted/measured - 1| over rows, in per cent: median, and 90th percentile (p90). Nothing is
fitted per row or per table beyond the curve itself; the growth law is one per operation. The laws were
chosen on these same tables, so the errors at larger scales are those of a rule that has seen the clusters,
if not the rows: expect more on a cluster of another kind. Most of the whole tables come from one cluster per
operation. {refused} predictions were refused.

The lines on networks lent add the {lent} tables whose cluster had been tested inside hosts only: they are
predicted from the network of another cluster. A refused row would count there as wrong by 100 %. Refusing
all of them, as this page did before, would make the median of all-reduce {failing} %."""

LAWS = """\
## How a curve grows

- **all-to-all**: direct exchange. Time per peer on another host depends on the message to that peer alone,
  size/ranks, at every scale.
- **all-gather, reduce-scatter**: a ring. Time per host depends on size/ranks alone.
- **all-reduce**: the cheaper of a tree (for each size linear in log2 of the nodes, through the two nearest
  scales) and the ring of the nearest smaller scale.
- All-to-all, all-gather and reduce-scatter lose bandwidth beyond the largest scale with a power of the
  nodes that is fitted per system where it was tested on two scales between hosts.
- A scale that one setting of a library was not tested at is taken from another setting of the cluster, where
  the two differ less than growth would err.
- A cluster that was tested inside hosts only says nothing about its network. It is lent that of the cluster
  whose hosts are most alike in ranks and in the rate of their cards, at most four times apart, with sizes
  scaled by that rate; nothing is fitted for it. Reports mark what comes from it as extrapolated. Without
  such a cluster, or without a known rate of the cards, the prediction is refused."""

LENT = """\
## Whole tables predicted from the network of another cluster, worst first

Known: the cluster's tables inside a host, the rate of its cards, and all tables of other clusters."""

LARGER = """\
## Whole tables at larger scales, worst first

Known: all tables of the same cluster and operation up to the nodes of the first column, at least a quarter
of those of the table. A table can stand here several times, once for each largest known scale."""

FAR = """\
## From at most 16 nodes to 128 and more

Far beyond what a curve can be asked for; shown, with no target."""

SIZES = """\
## Every second size of a table, worst tables first

The sizes in odd places are known, those in even places are predicted by straight lines in log-log axes.
Only the {shown} worst of {all} tables are listed."""

ROWS = """\
The worst single rows. Nearly all stand where a library changes its protocol between two known sizes:"""

REFUSED = """\
## Not predicted"""


def page(found: Validation) -> str:
    """Return the whole page as Markdown."""
    noise = ", ".join(f"`{name}`" for name in found.noise) or "none"
    rows = sum(len(table.sizes) for table in found.tables)
    told = {"tables": len(found.tables), "rows": f"{rows:,}", "digest": f"`{found.digest}`", "noise": noise}
    told["refused"] = str(sum(case.predicted is None for case in (*found.larger, *found.far)))
    told["lent"] = str(len(found.lent))
    told["failing"] = _percent(errors_with_refusals(map(_refusing, found.larger), "all_reduce")[0])
    parts = (
        INTRODUCTION.format(**told),
        _summary(found),
        LAWS,
        LARGER,
        _by_table(found.own),
        LENT,
        _lenders(found.lent),
        "Tables between two known scales, their own scale unknown; shown, with no target:",
        _by_table(found.between),
        FAR,
        _by_table(found.far),
        SIZES.format(shown=WORST_TABLES, all=len(found.sizes)),
        _by_table(found.sizes, WORST_TABLES),
        ROWS,
        _by_row(found.sizes),
        "Other ways to draw a curve, on the same tables, whichever half of the sizes is known:",
        _fitters(found.tables),
        REFUSED,
        _refused(found),
    )
    return "\n\n".join(parts) + "\n"


def _summary(found: Validation) -> str:
    kinds = ((OTHER_SIZES, found.sizes), (LARGER_SCALES, found.own), (WITH_LENT, found.larger))
    lines = [_target_line(target, operation, cases) for target, cases in kinds for operation in OPERATIONS]
    header = ("held out", "operation", "rows >", "median >", "target >", "p90 >", "target >", "")
    return markdown_table(header, lines)


def _target_line(target: Target, operation: str, cases: Sequence[HeldOut]) -> tuple[str, ...]:
    errors = errors_with_refusals(cases, operation)
    wanted = _percent(target.p90) if target.p90 else "-"
    verdict = "met" if target.met(operation, errors) else "**missed**"
    median, p90 = _percent(errors[0]), _percent(errors[1])
    shown = (str(errors[2]), median, _percent(target.median[operation]), p90, wanted, verdict)
    return (target.name, _words(operation), *shown)


def _by_table(cases: Iterable[HeldOut], most: int | None = None) -> str:
    known = [(median_and_p90([case]), case) for case in cases if case.predicted]
    known.sort(key=lambda pair: (-pair[0][0], pair[1].table.name, pair[1].known_nodes))
    lines = [
        (f"{case.known_nodes} → {case.table.scale.nodes}", f"`{case.table.name}`", *_shown(errors))
        for errors, case in known[:most]
    ]
    return markdown_table(("known → nodes >", "table", "rows >", "median >", "p90 >"), lines)


def _refusing(case: HeldOut) -> HeldOut:
    """Return the case as it was before networks were lent."""
    return replace(case, predicted=None) if case.lender else case


def _lenders(cases: Iterable[HeldOut]) -> str:
    made = [(median_and_p90([case]), case) for case in cases if case.predicted]
    made.sort(key=lambda pair: (-pair[0][0], pair[1].table.name))
    lines = [
        (
            f"{case.known_nodes} → {case.table.scale.nodes}",
            f"`{case.table.name}`",
            case.lender,
            *_shown(errors),
        )
        for errors, case in made
    ]
    return markdown_table(("known → nodes >", "table", "network of", "rows >", "median >", "p90 >"), lines)


def _shown(errors: Errors) -> tuple[str, str, str]:
    return str(errors[2]), _percent(errors[0]), _percent(errors[1])


def _by_row(cases: Iterable[HeldOut]) -> str:
    rows = [row for case in cases for row in _rows(case)]
    rows.sort(key=lambda row: (-abs(row[0]), row[1]))
    lines = [(name, size, time, said, f"{100 * error:+.0f}") for error, name, size, time, said in rows]
    return markdown_table(("table", "size >", "measured >", "predicted >", "error >"), lines[:WORST_ROWS])


def _rows(case: HeldOut) -> Iterator[tuple[float, str, str, str, str]]:
    for size, time, said in zip(case.sizes, case.measured, case.predicted or (), strict=True):
        yield (
            said / time - 1,
            f"`{case.table.name}`",
            format_bytes(size),
            format_time(time),
            format_time(said),
        )


def _fitters(tables: Sequence[Table]) -> str:
    lines = [
        (name, "odd" if first == 0 else "even", *_medians(tables, fitter, first))
        for name, fitter in FITTERS.items()
        for first in (0, 1)
    ]
    head = ("curve", "known", *(f"{_words(name)}, median / p90 >" for name in OPERATIONS))
    return markdown_table(head, lines)


def _medians(tables: Sequence[Table], fitter: Fitter, first: int) -> list[str]:
    cases = tuple(every_second_size(tables, fitter, first))
    found = [errors_of(cases, operation) for operation in OPERATIONS]
    return [f"{_percent(median)} / {_percent(p90)}" for median, p90, _ in found]


def _refused(found: Validation) -> str:
    refused = [case for case in (*found.larger, *found.far) if case.predicted is None]
    if not refused:
        return "Nothing was refused."
    lines = {(case.known_nodes, case.table.name): case for case in refused}
    return markdown_table(
        ("known → nodes >", "table", "why"),
        [
            (f"{nodes} → {case.table.scale.nodes}", f"`{name}`", case.refused)
            for (nodes, name), case in sorted(lines.items())
        ],
    )


def _words(operation: str) -> str:
    return operation.replace("_", "-")


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{100 * share:.1f}"


def write(folder: Path, target: Path = PAGE) -> Path:
    """Write the page from the tables in `folder` and return where it is."""
    target.write_text(page(validate(folder)), encoding="utf-8")
    return target
