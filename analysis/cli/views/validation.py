"""How predictions against measured cases are drawn: scores first, then single cases."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.cli.output import percent, plain, table
from analysis.scores import Score, configurations, coverage, ours, peer, ratios, score
from analysis.scores import plain as plain_sum
from analysis.validated import Validated

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 40  # single cases on a terminal; the other formats have all


def worst_first(cases: Sequence[Validated]) -> list[Validated]:
    """Return predicted cases by falling error, fitted rows behind them, then what is not predicted."""

    def order(case: Validated) -> tuple[bool, bool, float]:
        return case.predicted_ms is None, case.role == "fit", -abs(case.error or 0.0)

    return sorted(cases, key=order)


def draw_validation(cases: Sequence[Validated], console: "Console") -> None:
    """Draw scores by distinct configuration, bands, ratios, then the worst cases."""
    _scores(cases, console)
    _ratios(cases, console)
    _bands(cases, console)
    _cases(cases, console)


def groups(cases: Sequence[Validated]) -> list[tuple[str, list[Validated]]]:
    """Return the cases by kind, and those of training steps by group, in order of appearance."""
    found: dict[str, list[Validated]] = {}
    for case in sorted(cases, key=lambda one: (one.kind != "training", one.kind, one.group)):
        found.setdefault(f"{case.kind}: {case.group}", []).append(case)
    steps = [case for case in cases if case.kind == "training"]
    whole = [("training: all", steps)] if steps else []
    return [*found.items(), *whole]


def _scores(cases: Sequence[Validated], console: "Console") -> None:
    heads = ("count", "median", "<= 25%", "p90", "worst", "sum:\nmedian", "peer:\nmedian")
    drawn = table("by configuration,\nfitted rows apart", *heads, gap=1)
    for name, alike in groups(cases):
        found = configurations(alike)
        others = (score(found, plain_sum), score(found, peer))
        drawn.add_row(plain(name), *_score(score(found, ours)), *(_median(one) for one in others))
    console.print(drawn)


def _score(found: Score | None) -> tuple[str, ...]:
    if found is None:
        return ("0", "-", "-", "-", "-")
    shares = (found.median, found.near, found.p90, found.worst)
    return (str(found.count), *(percent(share) for share in shares))


def _median(found: Score | None) -> str:
    return "-" if found is None else percent(found.median)


def _ratios(cases: Sequence[Validated], console: "Console") -> None:
    pairs = ratios(cases)
    errors = [error for one in pairs if (error := one.error()) is not None]
    found = Score.of(errors)
    if found is not None:
        line = f"several hosts over fewer: {found.count} ratios, median error {percent(found.median)}"
        console.print(plain(f"{line}, worst {percent(found.worst)}"))


def _bands(cases: Sequence[Validated], console: "Console") -> None:
    counted = [case for case in cases if case.role == "predict"]
    for kind in dict.fromkeys(case.kind for case in counted):
        share, width, count = coverage(case for case in counted if case.kind == kind)
        if count:
            line = f"{kind}: the printed band holds {percent(share)} of {count} cases that were not fitted"
            console.print(plain(f"{line}; half of the bands are narrower than ±{percent(width)}"))


def _cases(cases: Sequence[Validated], console: "Console") -> None:
    drawn = table("case", "measured\nms", "predicted\nms", "error", "band\nms", "role")
    for case in cases[:SHOWN]:
        said = [_ms(value) for value in (case.measured_ms, case.predicted_ms)]
        mark = "*" if case.extrapolated else ""
        drawn.add_row(plain(mark + case.case_id), *said, percent(case.error), _band(case), case.role)
    console.print(drawn)
    hidden = len(cases) - SHOWN
    more = f"{hidden} more cases and notes" if hidden > 0 else "Notes"
    silent = sum(case.predicted_ms is None for case in cases)
    told = f"* unlike what was fitted. {silent} cases are not predicted."
    console.print(plain(f"{told} {more}: --format json or csv"))


def _band(case: Validated) -> str:
    return "-" if case.low is None and case.high is None else f"{_ms(case.low)} to {_ms(case.high)}"


def _ms(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.4g}"
