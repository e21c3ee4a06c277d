"""`docs/validation_training.md`: published training steps, predicted; worst first.

`python -m analysis.training_page FOLDER` writes it from the tables in FOLDER (run it in the checkout). Of
rows whose source has an open licence it shows the time that is compared, and says where it is from.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from analysis.markdown import markdown_table
from analysis.scores import Score, configurations, coverage, ours, peer, plain, ratios, score
from analysis.training.fitting import FIT_ROWS
from analysis.training.parameters import OVERHEADS
from analysis.training.predictions import predict
from analysis.training.spread import coverage_left_out, log_errors
from analysis.training.tables import read_training
from analysis.validated import Validated
from simulator.scenario.software_catalog import two_stream_factor, two_stream_source

PAGE = Path("docs/validation_training.md")
GROUPS = ("DCNv2", "DLRM v1", "NVIDIA synthetic", "other DLRM", "HSTU")

INTRODUCTION = """\
# Published training steps: what was predicted, and how wrong it was

This page is generated: `python -m analysis.training_page FOLDER` in the checkout writes it; `recscale
validate --data FOLDER` prints the same cases.

{predicted} measured steps in {configurations} distinct configurations are predicted, {fitted} more were
fitted on ([which and why](decisions/0007-training-fit-and-predict.md)), and {silent} rows are not predicted.
Step times of the MLPerf rows (`mlp_...`) are derived from published logs of MLPerf Training (mlcommons
training results, Apache-2.0): not verified by MLCommons Association. The other rows are from repositories
of NVIDIA (Apache-2.0: DeepLearningExamples `dle`, distributed-embeddings `de`, HugeCTR `sok`,
recsys-examples `hstu`) and of Meta (MIT: `trdlrm`).

Repetitions of one experiment (same model, accelerators, batch, family and round) count once, with the
median of their times; a configuration that a parameter was fitted on does not count at all. *Sum* is what
the durations of all stages add up to, nothing overlapped and nothing held. *Peer* is a model of two
streams at fixed shares of the peaks, multiplied with one factor per family, fitted on one row. It was given
that one of our rows with which it misses the other cases of the family by least: {peers}. Our own rows were
fixed before the fit, so this comparison leans to the peer.

The forms of the laws were chosen by people who had seen these tables: expect more on new ones."""
BANDS = """\
The printed bands hold {share:.0f} % of {count} steps that were not fitted (80 % are meant); half of them
are narrower than ±{width:.0f} %. That share is no evidence: the bands were made from the spread of the same
errors, by kind of case. Of configurations left out of the making of their own bands, {left_out:.0f} % lie in
them."""


def page(cases: Sequence[Validated], left_out: float) -> str:
    """Return the page; `left_out` is the share of configurations in bands that the others made."""
    parts = (
        _introduction(cases),
        "## Scores\n\nMedian error / share within 25 % / 90th percentile / worst, in per cent.\n\n"
        + _scores(cases),
        _bands(cases, left_out),
        "## Several hosts over one\n\nErrors of the ratio of two steps, in per cent.\n\n" + _ratios(cases),
        "## Predicted, worst first\n\nTimes in ms, errors in per cent; `*`: unlike the fitted row.\n\n"
        + _rows(_open(cases)),
        "## Fitted\n\nNo evidence of anything.\n\n" + _rows([case for case in cases if case.role == "fit"]),
        "## Not predicted\n\n" + _silent(cases),
    )
    return "\n\n".join(parts) + "\n"


def _introduction(cases: Sequence[Validated]) -> str:
    return INTRODUCTION.format(
        predicted=len(_open(cases)),
        configurations=len(configurations(cases)),
        fitted=len(FIT_ROWS),
        silent=sum(case.predicted_ms is None for case in cases),
        peers=", ".join(_peer(one.family) for one in OVERHEADS),
    )


def _peer(family: str) -> str:
    row = next(row for row in FIT_ROWS if row in two_stream_source(family))
    return f"`{family}` {two_stream_factor(family):.3g} from `{row}`"


def _open(cases: Iterable[Validated]) -> list[Validated]:
    found = [case for case in cases if case.role == "predict" and case.predicted_ms is not None]
    return sorted(found, key=lambda case: -abs(case.error or 0.0))


def _scores(cases: Sequence[Validated]) -> str:
    found = configurations(cases)
    lines = [("all", found), *((name, [one for one in found if one.group == name]) for name in GROUPS)]
    return markdown_table(
        ("", "configurations >", "here >", "sum >", "peer >"),
        [
            (name, str(len(some)), *(_score(score(some, one)) for one in (ours, plain, peer)))
            for name, some in lines
        ],
    )


def _score(found: Score | None) -> str:
    if found is None:
        return "-"
    shares = (found.median, found.near, found.p90, found.worst)
    return " / ".join(f"{100 * share:.0f}" for share in shares)


def _bands(cases: Sequence[Validated], left_out: float) -> str:
    share, width, count = coverage(case for case in cases if case.role == "predict")
    return BANDS.format(share=100 * share, count=count, width=100 * width, left_out=100 * left_out)


def _ratios(cases: Sequence[Validated]) -> str:
    pairs = [(one, one.error(), one.error(plain), one.error(peer)) for one in ratios(cases)]
    lines = [
        (one.several.name, f"{one.one.cases[0].size[0]}", *(_percent(error) for error in errors))
        for one, *errors in sorted(pairs, key=lambda pair: -abs(pair[1] or 0.0))
    ]
    return markdown_table(("several hosts", "over >", "here >", "sum >", "peer >"), lines)


def _rows(cases: Sequence[Validated]) -> str:
    lines = [
        (
            f"`{case.case_id}`{'*' if case.extrapolated else ''}",
            *(_ms(value) for value in (case.measured_ms, case.predicted_ms)),
            _percent(case.error),
            f"{_ms(case.low)} - {_ms(case.high)}",
            _ms(case.plain_sum_ms),
            _ms(case.peer_ms),
            _cell(case.note) or "-",
        )
        for case in cases
    ]
    return markdown_table(
        ("case", "measured >", "here >", "error >", "band >", "sum >", "peer >", "note"), lines
    )


def _silent(cases: Sequence[Validated]) -> str:
    silent = [case for case in cases if case.predicted_ms is None]
    lines = [(f"`{case.case_id}`", _ms(case.measured_ms), _cell(case.note)) for case in silent]
    return markdown_table(("case", "measured ms >", "why"), lines)


def _cell(text: str) -> str:
    """Return a text that cannot end a cell of the table."""
    return text.replace("|", "\\|")


def _ms(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.4g}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:+.1f}"


def write(folder: Path, target: Path = PAGE) -> Path:
    """Write the page from the tables in `folder` and return where it is."""
    measured = read_training(folder)
    left_out = coverage_left_out(log_errors(measured))
    target.write_text(page(predict(measured), left_out), encoding="utf-8")
    return target


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
