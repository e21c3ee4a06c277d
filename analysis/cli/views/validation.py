"""How predictions against measured cases are drawn: scores first, then single cases."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.cli.output import percent, plain, table
from analysis.scores import Score, configurations, coverage, ours, peer, ratios, score
from analysis.scores import plain as plain_sum
from analysis.validated import Validated

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 40  # single cases on a terminal, the same number of each kind; the other formats have all
REASONS = 5  # for which most cases of a kind are not predicted
FEWEST = 5  # cases of which a percentage says something
LEGEND = (
    "role none: not predicted; sum: the error of what is added up without overlap; peer: that of a published "
    "model of two streams (training only)"
)


def worst_first(cases: Sequence[Validated]) -> list[Validated]:
    """Return predicted cases by falling error, fitted rows behind them, then what is not predicted."""

    def order(case: Validated) -> tuple[bool, bool, float]:
        return case.predicted_ms is None, case.role == "fit", -abs(case.error or 0.0)

    return sorted(cases, key=order)


def draw_validation(cases: Sequence[Validated], console: "Console") -> None:
    """Draw scores by distinct configuration, bands, ratios, what is not predicted, then the worst cases."""
    _scores(cases, console)
    console.print(plain(LEGEND))
    _ratios(cases, console)
    _bands(cases, console)
    _silent(cases, console)
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
        own = score(found, ours)
        if own is not None:
            drawn.add_row(plain(name), *_score(own), *(_median(one) for one in others))
    if drawn.row_count:
        console.print(drawn)


def _score(found: Score) -> tuple[str, ...]:
    shares = (found.median, found.near, found.p90, found.worst)
    return (str(found.count), *(percent(share) for share in shares))


def _median(found: Score | None) -> str:
    return "-" if found is None else percent(found.median)


def _ratios(cases: Sequence[Validated], console: "Console") -> None:
    pairs = ratios(cases)
    errors = [error for one in pairs if (error := one.error()) is not None]
    found = Score.of(errors)
    if found is not None:
        line = f"several hosts over fewer: {_counted(found.count, 'ratio')}"
        console.print(plain(f"{line}, median error {percent(found.median)}, worst {percent(found.worst)}"))


def _bands(cases: Sequence[Validated], console: "Console") -> None:
    counted = [case for case in cases if case.role == "predict"]
    for kind in dict.fromkeys(case.kind for case in counted):
        share, width, count = coverage(case for case in counted if case.kind == kind)
        if count:
            held = percent(share) if count >= FEWEST else str(round(share * count))
            line = f"{kind}: the printed band holds {held} of {_counted(count, 'case')} not fitted"
            console.print(plain(f"{line}; half of the bands are narrower than ±{percent(width)}"))


def _silent(cases: Sequence[Validated], console: "Console") -> None:
    """Draw for each kind how many cases are not predicted, and the most frequent reasons."""
    from rich.padding import Padding

    for kind in dict.fromkeys(case.kind for case in cases):
        lines = _reasons([case for case in cases if case.kind == kind and case.predicted_ms is None])
        if lines:
            console.print(plain(f"{kind}: {lines[0]}"))
        for line in lines[1:]:
            console.print(Padding(plain(line), (0, 0, 0, 2)))


def _reasons(silent: Sequence[Validated]) -> list[str]:
    """Return how many cases are not predicted, then each frequent reason with its first case; or nothing."""
    if not silent:
        return []
    told = Counter(map(_reason, silent))
    first = {_reason(case): case.case_id for case in reversed(silent)}
    lines = [f"{count} x {reason} (as {first[reason]})" for reason, count in told.most_common(REASONS)]
    rest = len(told) - len(lines)
    more = f", for {_counted(len(told), 'reason')}" + (f", of which the first {REASONS}" if rest else "")
    return [f"{_counted(len(silent), 'case')} not predicted{more}:", *lines]


def _reason(case: Validated) -> str:
    """Return why a case is not predicted, without its line and without what else is noted."""
    reason = case.note.rpartition("not predicted: ")[2].partition("; ")[0]
    return re.sub(r"^line \d+: ", "", reason)


def _counted(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def worst_of_each(cases: Sequence[Validated]) -> list[Validated]:
    """Return the first cases of each kind, of each as many, so that no kind hides another."""
    kinds = Counter(case.kind for case in cases)
    each = max(1, SHOWN // max(1, len(kinds)))
    seen: Counter[str] = Counter()
    found = []
    for case in cases:
        seen[case.kind] += 1
        found += [case] if seen[case.kind] <= each else []
    return found


def _cases(cases: Sequence[Validated], console: "Console") -> None:
    drawn = table("case", "measured\nms", "predicted\nms", "error", "band\nms", "role")
    shown = worst_of_each(cases)
    for case in shown:
        said = [_ms(value) for value in (case.measured_ms, case.predicted_ms)]
        mark = "*" if case.extrapolated else ""
        drawn.add_row(plain(mark + case.case_id), *said, percent(case.error), _band(case), case.role)
    console.print(drawn)
    hidden = len(cases) - len(shown)
    more = f"The worst of each kind; {_counted(hidden, 'more case')} and notes" if hidden else "Notes"
    console.print(plain(f"* unlike what was fitted. {more}: --format json or csv"))


def _band(case: Validated) -> str:
    return "-" if case.low is None and case.high is None else f"{_ms(case.low)} to {_ms(case.high)}"


def _ms(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.4g}"
