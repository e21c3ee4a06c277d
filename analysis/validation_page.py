"""`docs/validation.md`, written from the records of `analysis.validation` and the fits."""

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from analysis.assumptions import Assumptions
from analysis.fits import Fit, all_fits, band_at_1536
from analysis.markdown import markdown_table
from analysis.published import CONFIDENCE, ROLES
from analysis.validation import rows
from analysis.validation_text import CLEAN, COLUMNS, FITS, INPUTS, LOOKUP, SHARED, TITLE, WORTH
from simulator.calibration import FitResult
from simulator.scenario import load
from simulator.scenario.shipped_files import shipped_folder

Record = dict[str, Any]


def page(folder: Path | None = None, records: list[Record] | None = None) -> str:
    """Return the page for the scenarios in `folder` (default: the shipped ones).

    `records` are what `rows(folder)` gives, for who has them already.
    """
    records = rows(folder) if records is None else records
    low, high = band_at_1536(folder)
    assumed = Assumptions.of(folder).as_text()
    fitted = [(one, one.run(folder)) for one in all_fits()]
    clean, shared = _predicted(records, clean=True), _predicted(records, clean=False)
    blocks = [
        _title(clean),
        COLUMNS,
        CLEAN,
        _predictions(clean),
        SHARED,
        _predictions(shared),
        WORTH.format(low=low, high=high, **assumed),
        _not_predicted(records),
        FITS,
        _parameters(fitted, folder or shipped_folder()),
        _fitted_rows(records),
        LOOKUP,
        INPUTS.format(**assumed),
        _inputs(records),
        _notes(records),
    ]
    return "\n\n".join(blocks) + "\n"


def write(path: Path) -> Path:
    """Write the page to `path` and return it."""
    path.write_text(page(), encoding="utf-8")
    return path


def _title(clean: list[Record]) -> str:
    known = {"roles": _listed(ROLES), "confidence": _listed(CONFIDENCE)}
    named = ", ".join(record["id"] for record in clean)
    return _wrapped(TITLE.format(**known, count=len(clean), clean=named))


def _wrapped(text: str) -> str:
    """Fill paragraphs that were lengthened by a list."""
    filled = (part if part.startswith("#") else textwrap.fill(part, 108) for part in text.split("\n\n"))
    return "\n\n".join(filled)


def _listed(meanings: dict[str, str]) -> str:
    return ", ".join(f"*{name}* ({meaning})" for name, meaning in meanings.items())


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
    file = Path(record["scenario"])
    name = record["policy"] if file.parent.name == "nestpipe" else file.stem
    return f"{name} {record['workers']}{'*' if record['extrapolated'] else ''}"


def _quantity(record: Record) -> str:
    words = str(record["quantity"]).removesuffix("_ms").replace("_ms_", "_")
    words = words.replace("all_to_all", "all-to-all").removeprefix("scaling_").replace("_", " ")
    return f"{words.removesuffix(' at most')} <=" if words.endswith(" at most") else words


def _with_role(records: list[Record], role: str) -> list[Record]:
    return [record for record in records if record["role"] == role]


def _predicted(records: list[Record], clean: bool) -> list[Record]:
    """Return the simulated predictions that share no number with a fit, or those that do, worst first."""
    known = [record for record in _with_role(records, "predict") if record["predicted"] is not None]
    chosen = [record for record in known if clean is not bool(record["shares"])]
    return sorted(chosen, key=lambda record: -abs(record["error"] or 0.0))


def _predictions(records: list[Record]) -> str:
    header = ("id", "case", "quantity", "paper >", "here >", "error >", "sum >", "error >", "", "shares")
    return markdown_table(header, (_prediction(record) for record in records))


def _prediction(record: Record) -> tuple[str, ...]:
    return (
        record["id"],
        _case(record),
        _quantity(record),
        _number(record, "published"),
        _number(record, "predicted"),
        _percent(record["error"]),
        _number(record, "plain_sum"),
        _percent(record["plain_sum_error"]) + ("+" if record["beats_sum"] else ""),
        record["confidence"],
        " ".join(record["shares"]) or "-",
    )


def _not_predicted(records: list[Record]) -> str:
    unknown = [record for record in _with_role(records, "predict") if record["predicted"] is None]
    lines = (
        (record["id"], _case(record), _number(record, "published"), record["note"]) for record in unknown
    )
    return "Published, and not predicted:\n\n" + markdown_table(("id", "case", "published >", "why"), lines)


def _parameters(fitted: list[tuple[Fit, FitResult]], folder: Path) -> str:
    lines = [line for one, result in fitted for line in _parameter_lines(one, result, folder)]
    return markdown_table(("scenario", "number", "value >", "from >", "to >", "on"), lines)


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
    return markdown_table(("id", "case", "quantity", "published >", "simulated >", "error >", ""), lines)


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
    return markdown_table(("id", "path", "value >", "", "note"), lines)


def _notes(records: list[Record]) -> str:
    told = [
        record
        for record in records
        if record["note"] and record["role"] != "input" and record["predicted"] is not None
    ]
    return "## Notes\n\n" + "\n".join(f"- {record['id']}: {record['note']}." for record in told)
