"""`docs/validation.md`, written from the records of `analysis.validation` and the fits."""

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from analysis.fits import Fit, all_fits, band_at_1536
from analysis.published import CONFIDENCE, ROLES
from analysis.validation import rows
from simulator.calibration import FitResult
from simulator.scenario import load
from simulator.scenario.shipped_files import shipped_folder

Record = dict[str, Any]

TITLE = """\
# Validation: what was predicted, and how wrong it was

This page is generated: `python -m analysis.validation` in the checkout writes it, and a test fails when it
is not up to date. The figures are those of `analysis/published.csv`, where each has its source and a note.

Every published figure has one role: {roles}.
Only predictions can be evidence. Confidence: {confidence}.
All NestPipe figures (arXiv 2604.06956) were taken from public summaries of the paper, not from the paper."""

PREDICTIONS = """\
## Predictions, worst first

*Error* is predicted over published, less 1, in per cent. The *sum* adds compute, lookup and all-to-all of
the serialized run and leaves out what a policy hides by rule of thumb: prefetching hides the lookup, N
micro-batches all but 1/N of the all-to-all. A row in which the sum does as well is no evidence for the
simulator; `+` marks the rows in which the sum is off by at least two points more. `*`: more workers than
the network was fitted on, so an extrapolation. Times in ms, throughput in thousands of samples per
second, speed-up as a factor, the rest in %."""

WORTH = """\
What this is worth:

- **The plain sum does nearly as well, for every step in this table. So it is a check of structure, not
  evidence.** The NestPipe system was published in parts that add up; whoever knows the parts knows the
  steps. What a sum cannot give (when hiding stops, which stage sets the period, what a buffer is worth)
  is tested in `tests/published`; there are no published figures to compare it with.
- The two rows marked `+` are nearer than the sum because splitting a batch repeats hot keys. How much was
  fitted (T19a), and T13d says that the all-to-all of NestPipe's own run did not grow like that.
- The one quantity really predicted is the all-to-all at 1,536 workers from those at 128 and 512. As the
  one at 512 is only known as 478 to 514 ms, the prediction is {low:,.0f} to {high:,.0f} ms. Published are
  1,185 and 1,208.
- Under prefetching the published runs still show 23 to 36 ms of lookup, the simulated ones less than 1
  ms. Nothing in the model stands for it. It is 1 to 2 % of a step and the largest relative error here.
- Micro-batches of 16 samples leave 25 % of the all-to-all exposed in the paper and 3 % here (T19b).
  Compute is taken to be as efficient on 16 samples as on 512, which is surely too kind; the figure itself
  has one source.
- T1, T3a, T3b, T4a, T5, T12a, T12c and T14a contain the lookup, which was fitted."""

FITS = """\
## Fits

One fit per system. The scenario files hold the values, rounded, and a test repeats the fits. *From* and
*to* is what the stated doubt about the targets allows (a printed decimal place, the range at 512
workers), all else taken as right; that is no interval for a prediction. Each fit has as many targets as
numbers, so they are met by construction: the simulated values below show that the files hold what was
fitted, and nothing else."""

LOOKUP = """\
`unexplained_host_time` stands for a growth of the lookup with the size of the job that no resource of
ours explains. It is held half in route, half in retrieve, and uses no network card and no memory. The GPU
system needs three times the value of the NPU system to reach its one figure (T23a). So the number does
not carry over to other systems, and that scenario is no evidence at all."""

INPUTS = """\
## Inputs

Compute follows from the shape of an HSTU and a share of the peak that was published for another one (I1).
NestPipe's default shape is not known; of the published ranges one shape was chosen because it comes out
near 1,712 ms, and it is not the only one that does. The share may count attention in full and
recomputation not at all, while the scenario counts causal attention and recomputes each layer. So compute
is no evidence (T2c has the role fit)."""


def page(folder: Path | None = None) -> str:
    """Return the page for the scenarios in `folder` (default: the shipped ones)."""
    records = rows(folder)
    low, high = band_at_1536(folder)
    fitted = [(one, one.run(folder)) for one in all_fits()]
    blocks = [
        _wrapped(TITLE.format(roles=_listed(ROLES), confidence=_listed(CONFIDENCE))),
        PREDICTIONS,
        _predictions(records),
        WORTH.format(low=low, high=high),
        _not_predicted(records),
        FITS,
        _parameters(fitted, folder or shipped_folder()),
        _fitted_rows(records),
        LOOKUP,
        INPUTS,
        _inputs(records),
        _notes(records),
    ]
    return "\n\n".join(blocks) + "\n"


def write(path: Path) -> Path:
    """Write the page to `path` and return it."""
    path.write_text(page(), encoding="utf-8")
    return path


def _wrapped(text: str) -> str:
    """Fill paragraphs that were lengthened by a list."""
    filled = (part if part.startswith("#") else textwrap.fill(part, 108) for part in text.split("\n\n"))
    return "\n\n".join(filled)


def _listed(meanings: dict[str, str]) -> str:
    return ", ".join(f"*{name}* ({meaning})" for name, meaning in meanings.items())


def _table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table whose columns line up; a header that ends in ` >` is set to the right."""
    right = [name.endswith(" >") for name in header]
    cells = [[name.removesuffix(" >") for name in header], *(list(line) for line in lines)]
    widths = [max(3, *(len(line[column]) for line in cells)) for column in range(len(header))]
    marks = [
        "-" * (width - 1) + (":" if to_right else "-") for width, to_right in zip(widths, right, strict=True)
    ]
    aligned = [
        [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ]
        for line in cells
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in (aligned[0], marks, *aligned[1:]))


def _number(record: Record, key: str) -> str:
    value, unit = record[key], record["unit"]
    if value is None:
        return "-"
    shown = value / 1e3 if unit == "samples/s" else value
    decimals = 0 if abs(shown) >= 1000 else 1 if abs(shown) >= 100 else 2
    return f"{shown:,.{decimals}f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:+.1f}"


def _case(record: Record) -> str:
    return f"{record['policy']} {record['workers']:,}{'*' if record['extrapolated'] else ''}"


def _quantity(record: Record) -> str:
    words = str(record["quantity"]).removesuffix("_ms").replace("_ms_", "_")
    return words.replace("all_to_all", "all-to-all").removeprefix("scaling_").replace("_", " ")


def _with_role(records: list[Record], role: str) -> list[Record]:
    return [record for record in records if record["role"] == role]


def _predictions(records: list[Record]) -> str:
    known = [record for record in _with_role(records, "predict") if record["predicted"] is not None]
    known.sort(key=lambda record: -abs(record["error"] or 0.0))
    header = ("id", "case", "quantity", "published >", "predicted >", "error >", "sum >", "error >", "")
    return _table(header, (_prediction(record) for record in known))


def _prediction(record: Record) -> tuple[str, ...]:
    return (
        record["id"],
        _case(record),
        _quantity(record),
        _number(record, "published"),
        _number(record, "predicted"),
        _percent(record["error"]),
        _number(record, "plain_sum"),
        _percent(record["plain_sum_error"]) + (" +" if record["beats_sum"] else ""),
        record["confidence"],
    )


def _not_predicted(records: list[Record]) -> str:
    unknown = [record for record in _with_role(records, "predict") if record["predicted"] is None]
    lines = (
        (record["id"], _case(record), _number(record, "published"), record["note"]) for record in unknown
    )
    return "Published, and not predicted:\n\n" + _table(("id", "case", "published >", "why"), lines)


def _parameters(fitted: list[tuple[Fit, FitResult]], folder: Path) -> str:
    lines = [line for one, result in fitted for line in _parameter_lines(one, result, folder)]
    return _table(("scenario", "number", "value >", "from >", "to >", "on"), lines)


def _parameter_lines(one: Fit, result: FitResult, folder: Path) -> Iterable[tuple[str, ...]]:
    data = load(folder / one.file).document.data
    targets = " ".join(target.name for target in one.targets)
    for parameter in one.parameters:
        value, unit = result.values[parameter.path], parameter.unit
        low, high = (result.intervals or {}).get(parameter.path, (value, value))
        shipped = f"{_at(data, parameter.path)}"
        numbers = (f"{number:.4g} {unit}".strip() for number in (low, high))
        yield (Path(one.file).stem, parameter.path, shipped, *numbers, targets)


def _at(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data[name]
    return data


def _fitted_rows(records: list[Record]) -> str:
    lines = (
        (
            record["id"],
            _case(record),
            _quantity(record),
            _number(record, "published"),
            _number(record, "predicted"),
            _percent(record["error"]),
            record["confidence"],
        )
        for record in _with_role(records, "fit")
    )
    return _table(("id", "case", "quantity", "published >", "simulated >", "error >", ""), lines)


def _inputs(records: list[Record]) -> str:
    lines = (
        (
            record["id"],
            record["quantity"],
            f"{record['published']:g} {record['unit']}".strip(),
            record["confidence"],
            record["note"],
        )
        for record in _with_role(records, "input")
    )
    return _table(("id", "path", "value >", "", "note"), lines)


def _notes(records: list[Record]) -> str:
    told = [
        record
        for record in records
        if record["note"] and record["role"] != "input" and record["predicted"] is not None
    ]
    return "## Notes\n\n" + "\n".join(f"- {record['id']}: {record['note']}." for record in told)
