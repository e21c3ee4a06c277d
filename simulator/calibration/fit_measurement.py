"""From a file of `calibrate measure` to one that scenarios name: primitives, laws of products, curves."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.calibration.collectives import CollectiveFit, fit_collectives
from simulator.calibration.fit_catalog import FitsOf, document, fit_table
from simulator.calibration.fit_parts import PRODUCTS, collective_tables, gemm_tables
from simulator.calibration.fit_table import FEWEST, date_of, fittable, read_all, read_json
from simulator.calibration.gemm_document import FORMS, Origin, entries, entry_name
from simulator.calibration.gemm_doubt import FittedGemm, fit_with_doubts
from simulator.calibration.gemm_table import GemmTable
from simulator.costs.gemm_laws import SECTION as LAWS
from simulator.errors import InputError, Where

FEWEST_SHAPES = 6  # of matrix products that give a law, which has four numbers


@dataclass(frozen=True)
class MeasuredFit:
    """Everything fitted to one file; `left_out` says what was not, and why.

    `doubts` is what speaks against the measurement, in words: nobody but its reader knows.
    """

    file: str
    date: str
    primitives: tuple[FitsOf, ...]
    gemm: tuple[FittedGemm, ...]
    collectives: CollectiveFit | None
    left_out: tuple[str, ...]
    doubts: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """Return the fits as plain data."""
        return {
            "primitives": [one.row() for one in self.primitives],
            "gemm": [gemm_row(one) for one in self.gemm],
            "collectives": self.collectives.rows() if self.collectives else [],
            "left_out": list(self.left_out),
            "doubts": list(self.doubts),
        }

    def to_yaml(self) -> str:
        """Return one catalog file: primitives are its `entries`, then `gemm`, `collectives` and `doubts`."""
        text = "".join(f"# Doubtful: {one}.\n" for one in self.doubts) + document(self.primitives)
        if self.gemm:
            origin = Origin(f"own measurement, {self.file}", self.date, {"fp32": self.gemm[0].table.formats})
            text += f"\n# Laws of matrix products.\n{FORMS}\n{LAWS}:\n{entries(self.gemm, origin)}"
        if self.collectives:
            head, _, body = self.collectives.to_yaml().partition("\nentries:\n")
            text += f"\n{head}\ncollectives:\n{body}"
        if self.doubts:
            text += f"\ndoubts:\n{''.join(f'- {json.dumps(one)}{chr(10)}' for one in self.doubts)}"
        return text


def gemm_row(one: FittedGemm) -> dict[str, Any]:
    """Return a fitted law in one flat record, with the keys of a primitive's."""
    median, p90 = one.errors or (None, None)
    return {
        "primitive": entry_name(one.table.device),
        "form": f"law of products, {one.table.formats}",
        "rows": len(one.table.rows),
        "held_out_median": median,
        "held_out_p90": p90,
        "parameters": {
            name: {"value": getattr(one.time.law, name), "low": low, "high": high}
            for name, (low, high) in one.intervals.items()
            if name != "quantisation" or high
        },
        "at_bound": list(one.at_bound),
    }


def fit_measurement(file: str | Path) -> MeasuredFit:
    """Return the fits of a file of measurements. Raises InputError where there is nothing to fit."""
    path = Path(file)
    series, data = read_all(path), read_json(path) or {}
    products = gemm_tables(data, path) if data else ()
    tables = collective_tables(data, path) if data else ()
    laws = [table for table in products if len(table.rows) >= FEWEST_SHAPES]
    names = {f"{operation}_" for operation in PRODUCTS} if products else set()
    others = [one for one in series if not one.name.startswith(tuple(names))] if names else list(series)
    usable = [one for one in others if fittable(one)]
    if not (usable or laws or tables):
        raise InputError(f"no primitive has {FEWEST} measurements at different amounts", Where(str(path)))
    few = [f"{one.name}: fewer than {FEWEST} measurements at different amounts" for one in others]
    return MeasuredFit(
        path.name,
        date_of(data),
        fit_table(usable),
        fit_with_doubts(laws),
        fit_collectives(tables) if tables else None,
        tuple(why for why, one in zip(few, others, strict=True) if not fittable(one)) + _too_few(products),
    )


def _too_few(products: Sequence[GemmTable]) -> tuple[str, ...]:
    return tuple(
        f"{table.device}: {len(table.rows)} shapes of matrix products; a law needs {FEWEST_SHAPES}"
        for table in products
        if len(table.rows) < FEWEST_SHAPES
    )
