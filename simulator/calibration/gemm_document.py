"""Fitted laws of matrix products as a catalog file, in the form of `gemm.yaml`.

`python -m simulator.calibration.gemm_document TABLE.csv` prints the shipped one; `recscale calibrate fit`
writes the laws of a measurement in the same form, without what is said of devices that were not measured.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from simulator.calibration.gemm_devices import MAKER, PRECISIONS, accelerators_of, units_of
from simulator.calibration.gemm_doubt import FittedGemm, fit_with_doubts
from simulator.calibration.gemm_fit import REACH
from simulator.calibration.gemm_general import SOURCE, general_text, units_text
from simulator.calibration.gemm_table import GemmTable, read_gemm_tables
from simulator.costs.gemm import Residual
from simulator.quantities.statistics import COVERAGE
from simulator.units import format_time

FORMS = f"""\
# The forms are those of simulator/costs/gemm.py. `weights` belong to the `shapes` (m, n, k, batch), in their
# order. `interval` is the middle {COVERAGE:.0%} of laws fitted to shapes drawn again, `range` what was
# measured, `held_out` the error (median and 90th percentile) of shapes that the fit had not seen, each half
# predicted from the other. A number `at_bound` was decided by the end of the search, not by the measurements;
# rates end at what the maker prints. Nobody says when the shipped table was measured.
"""
HEADER = f"""\
# Laws of matrix products by device and number formats, and what was learned of single shapes beside them.
# Fitted to the {SOURCE};
# written by `python -m simulator.calibration.gemm_document TABLE.csv`, not edited by hand.
{FORMS}"""


@dataclass(frozen=True)
class Origin:
    """Where measurements come from: a source in words, their date, and formats by precision."""

    source: str = SOURCE
    date: str = "not stated by the source"
    precisions: Mapping[str, str] = field(default_factory=lambda: PRECISIONS)


def shipped_document(tables: Sequence[GemmTable]) -> str:
    """Return the text of the catalog file `gemm.yaml`."""
    fits = fit_with_doubts(tables)
    return f"{HEADER}\ngeneral:\n{general_text(fits)}\nunits:\n{units_text()}\nentries:\n{entries(fits)}"


def entries(fits: Sequence[FittedGemm], origin: Origin | None = None) -> str:
    """Return the entries of a catalog file, one for each device."""
    together = groupby(sorted(fits, key=lambda one: one.table.device), lambda one: one.table.device)
    return "".join(_entry(device, list(alike), origin or Origin()) for device, alike in together)


def entry_name(device: str) -> str:
    """Return the name of a device's entry."""
    name = "".join(sign if sign.isalnum() else "_" for sign in device.lower())
    return name if "gemm" in name else f"gemm_{name}"


def _entry(device: str, fits: Sequence[FittedGemm], origin: Origin) -> str:
    first = fits[0].time.residual
    assert first is not None
    lines = [
        f"  {entry_name(device)}:",
        f"    device: {quoted(device)}",
        f"    accelerators: [{', '.join(accelerators_of(device))}]",
        f"    precisions: {_flow(_precisions(fits, origin))}",
        f"    date: {quoted(origin.date)}",
        f"    range: {_range(fits)}",
        f"    reach: {REACH}",
        f"    units: {_units(device)}",
        f"    shapes: {{value: {_shapes(first)}, source: {quoted(origin.source)}, confidence: measured}}",
        "    formats:",
    ]
    return "\n".join(lines) + "\n" + "".join(_law(one, origin) for one in fits)


def _units(device: str) -> str:
    units = units_of(device)
    if units is None:
        return '{value: 1, source: "no figure known: so no waste of unfilled waves", confidence: assumed}'
    return f"{{value: {units}, source: {quoted(MAKER)}, confidence: secondary}}"


def _range(fits: Sequence[FittedGemm]) -> str:
    ends = {
        name: (
            min(int(one.table.rows[:, column].min()) for one in fits),
            max(int(one.table.rows[:, column].max()) for one in fits),
        )
        for column, name in enumerate(("m", "n", "k", "batch"))
    }
    return "{" + ", ".join(f"{name}: [{low}, {high}]" for name, (low, high) in ends.items()) + "}"


def _precisions(fits: Sequence[FittedGemm], origin: Origin) -> dict[str, str]:
    """Return which formats stand for a precision: half precision runs as bf16 where it was not measured."""
    known = {one.table.formats for one in fits}
    found = {precision: formats for precision, formats in origin.precisions.items() if formats in known}
    return {"fp16": found["bf16"], **found} if "bf16" in found else found


def _law(fitted: FittedGemm, origin: Origin) -> str:
    law, residual = fitted.time.law, fitted.time.residual
    assert residual is not None
    lines = [f"      {quoted(fitted.table.formats)}:"]
    for name, ends in fitted.intervals.items():
        value, interval = (shown(name, getattr(law, name)), ", ".join(shown(name, end) for end in ends))
        parts = (
            f"value: {value}, interval: [{interval}], source: {quoted(origin.source)}, confidence: inferred"
        )
        bound = ", at_bound: true" if name in fitted.at_bound else ""
        lines.append(f"        {name}: {{{parts}{bound}}}")
    if fitted.errors:
        median, p90 = fitted.errors
        lines.append(f"        held_out: {{median: {median:.4g}, p90: {p90:.4g}, rows: {fitted.rows}}}")
    weights = ", ".join(f"{weight:.4g}" for weight in residual.weights)
    return "\n".join([*lines, f"        weights: [{weights}]"]) + "\n"


def shown(name: str, value: float) -> str:
    """Return a number of a law as it is written in a catalog, with its unit."""
    if name == "rate":
        return quoted(f"{value / 1e12:.5g} TFLOP/s")
    if name == "bandwidth":
        return quoted(f"{value / 1e9:.5g} GB/s")
    return quoted(format_time(value)) if name == "start_up" else f"{value:.4f}"


def _shapes(residual: Residual) -> str:
    rows = [[round(2**part) for part in point] for point in residual.points.tolist()]
    return "[" + ", ".join(f"[{', '.join(map(str, row))}]" for row in rows) + "]"


def _flow(mapping: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {quoted(value)}" for key, value in mapping.items()) + "}"


def quoted(text: str) -> str:
    """Return text in quotes, as YAML reads it."""
    from json import dumps

    return dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    sys.stdout.write(shipped_document(read_gemm_tables(Path(sys.argv[1]))))
