"""`docs/validation_measured.md`: matrix products, profiled steps, local runs and collectives; worst first.

`python -m analysis.measured_page FOLDER RECORDINGS` writes it from a folder of measurements and from one that
has `local_runs` (run it in the checkout).
"""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from analysis.band_learning import left_out
from analysis.bands import banded
from analysis.markdown import markdown_table
from analysis.scores import Answer, Score, coverage, ours, plain
from analysis.validated import Validated

PAGE = Path("docs/validation_measured.md")
KINDS = {
    "gemm": "Matrix products",
    "trace": "Profiled steps",
    "local": "Local runs",
    "collective": "Collectives",
}
WORST = {"gemm": 30, "trace": 10, "local": 60, "collective": 20}

INTRODUCTION = """\
# Matrix products, profiled steps, local runs, collectives: what was predicted, and how wrong it was

This page is generated: `python -m analysis.measured_page FOLDER RECORDINGS` in the checkout writes it;
`recscale validate --data FOLDER` prints the same cases. Digest of the measured times: `{digest}`.

Each measured time counts once, and its prediction does not hold it:

- **Matrix products** (table of OpenXLA in the PyPI package jax-cuda12-pjrt, Apache-2.0): each random half of
  the shapes from the other half.
- **Profiled steps** (facebookresearch/param and HolisticTraceAnalysis, MIT): from the operators and shapes of
  the execution traces; the host's time per launch is that of other jobs.
- **Local runs** (`tests/data/local_runs`): real training steps and remote calls, from primitives that were
  measured in the same launch. Calls that the parameters of a call were fitted on do not count.
- **Collectives**: a table at more nodes than others of its cluster as a whole from those, any other table
  size by size from its other sizes. [More about them](collectives.md).

*Sum* is what can be added up on paper: flops over a rate plus bytes over a bandwidth; all stages of a batch;
the calls one after the other; bytes over the nominal rate of the links. The forms of the laws were chosen by
people who had seen these tables: expect more on new ones."""
LARGE = 1 << 20
LARGE_ONES = """\
The sum of a collective knows no start-up, and many measured sizes are small. Of the {count} collectives of
1 MiB and more the median error is {ours} % here and {plain} % of the sum."""
BANDS = """\
## Bands

Half widths stand in `analysis/bands.yaml`, one per kind of case, and are used on any folder. They were
learned from the very cases below, so that what they hold here says little. The last columns say what they
hold when they are learned without the repository, device or recording that a case is from; 80 % is meant.
That of profiled steps is the one of published training steps, as a single job does not tell one."""


def page(cases: Sequence[Validated]) -> str:
    """Return the page."""
    parts = [
        INTRODUCTION.format(digest=digest(cases)),
        "## Scores\n\nErrors in per cent.\n\n" + _scores(cases),
        _large(cases),
        f"{BANDS}\n\n{_bands(cases)}",
        *(_worst(kind, [case for case in cases if case.kind == kind]) for kind in KINDS),
        "## Not predicted\n\n" + _silent(cases),
    ]
    return "\n\n".join(parts) + "\n"


def digest(cases: Iterable[Validated]) -> str:
    """Return a mark of the measured times, to tell whether a page was written from the same ones."""
    told = sorted((case.case_id, f"{case.measured_ms:.9g}") for case in cases)
    return sha256(repr(told).encode()).hexdigest()[:12]


def _counted(cases: Iterable[Validated]) -> list[Validated]:
    return [case for case in cases if case.role == "predict" and case.predicted_ms is not None]


def _scores(cases: Sequence[Validated]) -> str:
    together: dict[tuple[str, str], list[Validated]] = {}
    for case in _counted(cases):
        for group in ("all", case.group):
            together.setdefault((case.kind, group), []).append(case)
    order = {name: place for place, name in enumerate(KINDS)}
    lines = [
        (KINDS[kind], group, str(len(alike)), *_score(alike, ours), *_score(alike, plain)[:1])
        for (kind, group), alike in sorted(
            together.items(), key=lambda one: (order[one[0][0]], one[0][1] != "all")
        )
    ]
    head = ("", "group", "cases >", "median >", "p90 >", "worst >", "sum: median >")
    return markdown_table(head, lines)


def _large(cases: Iterable[Validated]) -> str:
    """Return how far off both are on large messages: the sum has no start-up, and most sizes are small."""
    large = [case for case in _counted(cases) if case.kind == "collective" and case.size[2] >= LARGE]
    alike = [case for case in large if case.plain_sum_ms is not None]
    medians = [_score(alike, answer)[0] for answer in (ours, plain)]
    return LARGE_ONES.format(count=len(alike), ours=medians[0], plain=medians[1])


def _score(cases: Iterable[Validated], answer: Answer) -> tuple[str, ...]:
    found = Score.of([said / case.measured_ms - 1 for case in cases if (said := answer(case)) is not None])
    if found is None:
        return "-", "-", "-"
    return tuple(f"{100 * share:.1f}" for share in (found.median, found.p90, found.worst))


def _bands(cases: Sequence[Validated]) -> str:
    bare = _counted(cases)
    apart = left_out(bare)
    lines = []
    for kind, name in KINDS.items():
        here = [banded(case) for case in bare if case.kind == kind]
        without = [case for case in apart if case.kind == kind]
        lines.append((name, *_coverage(here), *_coverage(without)[1:]))
    head = ("", "cases >", "held: % >", "half width: % >", "left out, held: % >", "half width: % >")
    return markdown_table(head, lines)


def _coverage(cases: Iterable[Validated]) -> tuple[str, str, str]:
    share, width, count = coverage(cases)
    return (str(count), f"{100 * share:.0f}", f"{100 * width:.0f}") if count else ("0", "-", "-")


def _worst(kind: str, cases: Sequence[Validated]) -> str:
    found = sorted(_counted(cases), key=lambda case: -abs(case.error or 0.0))[: WORST[kind]]
    shown = (
        f"The {len(found)} worst of {len(_counted(cases))}" if len(found) < len(_counted(cases)) else "All"
    )
    head = f"## {KINDS[kind]}, worst first\n\n{shown}; `*`: outside of what was measured or fitted."
    return f"{head}\n\n{_rows(found)}" if found else f"{head}\n\nNone."


def _rows(cases: Iterable[Validated]) -> str:
    lines = [
        (
            f"`{case.case_id}`{'*' if case.extrapolated else ''}",
            *(_ms(said) for said in (case.measured_ms, case.predicted_ms)),
            f"{100 * (case.error or 0.0):+.1f}",
            f"{_ms(case.low)} - {_ms(case.high)}",
            _ms(case.plain_sum_ms),
        )
        for case in map(banded, cases)
    ]
    return markdown_table(("case", "measured, ms >", "here >", "error, % >", "band >", "sum >"), lines)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _silent(cases: Iterable[Validated]) -> str:
    counts = Counter((KINDS[case.kind], case.note) for case in cases if case.role == "none")
    lines = [(kind, str(count), note) for (kind, note), count in sorted(counts.items())]
    return markdown_table(("", "cases >", "why"), lines) if lines else "Everything was predicted."


def cases_of(folder: Path, recordings: Path) -> list[Validated]:
    """Return all cases of the page, without bands."""
    from analysis.validating_collectives import collectives
    from analysis.validating_products import products
    from analysis.validating_recorded import local_runs
    from analysis.validating_traces import profiled

    return [*products(folder), *profiled(folder), *local_runs(recordings), *collectives(folder)]


def write(folder: Path, recordings: Path, target: Path = PAGE) -> Path:
    """Write the page and return where it is."""
    target.write_text(page(cases_of(folder, recordings)), encoding="utf-8")
    return target


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), Path(sys.argv[2])))
