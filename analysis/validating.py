"""All measured cases of a folder and their predictions: training steps, collectives, matrix products, runs.

A folder has some of `PARTS`, each with the files and columns of its kind.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.validated import Validated, Watch, unwatched, watched
from analysis.validating_recorded import local_runs, profiled
from simulator.errors import InputError, Where

if TYPE_CHECKING:
    from analysis.gemm_validation import HeldOutProduct
    from simulator.calibration.collective_held_out import HeldOut

COVERAGE = 0.8
FEWEST = 8  # errors that make a quantile
# Half widths of bands where a folder has too few cases of a kind to say it: what the shipped fits promise.
UNTOLD = {"collective": 0.3, "gemm": 0.2, "local": 0.12, "trace": 0.25}
PARTS = ("training", "collectives", "kernels", "traces", "local_runs")


def validate_folder(folder: Path, watch: Watch = unwatched) -> list[Validated]:
    """Return every measured case in `folder` with its prediction; `watch(done, of)` hears of parts.

    Raises InputError when there is none.
    """
    if not folder.is_dir():
        problem = "is a file; a folder is needed" if folder.exists() else "there is no such folder"
        raise InputError(problem, Where(str(folder)))
    if not any((folder / part).is_dir() for part in PARTS):
        raise InputError(f"the folder has none of {', '.join(PARTS)}", Where(str(folder)))
    parts = (training, collectives, products, profiled, local_runs)
    done = (part(folder) if part is training else _banded(part(folder)) for part in watched(parts, watch))
    return [case for cases in done for case in cases]


def training(folder: Path) -> list[Validated]:
    """Return the training steps."""
    from analysis.training.predictions import predict_folder

    return predict_folder(folder)


def collectives(folder: Path) -> list[Validated]:
    """Return the collectives: each size from its neighbours, each larger scale from smaller ones."""
    from simulator.calibration.collective_held_out import every_second_size, larger_scales
    from simulator.calibration.collective_tables import read_tables

    place = folder / "collectives"
    if not (place / "tables.csv").exists():
        return []
    tables = tuple(table for table in read_tables(place) if not table.noise_only)
    found = [case for first in (0, 1) for case in every_second_size(tables, first=first)]
    sizes = [_sizes(case, "other sizes", "") for case in found]
    scales = [
        _sizes(case, "larger scales", f", from {case.known_nodes} nodes") for case in larger_scales(tables)
    ]
    return [one for rows in (*sizes, *scales) for one in rows]


def _sizes(case: "HeldOut", group: str, more: str) -> list[Validated]:
    table, rows = case.table, []
    for place, (size, seconds) in enumerate(zip(case.sizes, case.measured, strict=True)):
        one = Validated(
            case_id=f"{table.name} {size:.0f} B{more}",
            kind="collective",
            group=f"{table.operation}, {group}",
            configuration=f"{table.name} {size:.0f} B{more}",
            measured_ms=seconds * 1e3,
        )
        if case.predicted is None:
            rows.append(one.with_note(f"not predicted: {case.refused}"))
            continue
        beyond = (f"{table.scale.nodes} nodes from at most {case.known_nodes}",) if more else ()
        rows.append(one.with_prediction(case.predicted[place] * 1e3, (None, None), beyond))
    return rows


def products(folder: Path) -> list[Validated]:
    """Return the matrix products: new shapes from the shipped laws, known ones from their other half."""
    from analysis.gemm_validation import cross_fitted, tables_in

    return [_product(case) for case in cross_fitted(tables_in(folder))]


def _product(case: "HeldOutProduct") -> Validated:
    found = Validated(
        case_id=case.name,
        kind="gemm",
        group=f"{case.device} {case.formats}",
        configuration=case.name,
        measured_ms=case.measured * 1e3,
    )
    if case.predicted is None or case.plain is None:
        return found.with_note(
            "not predicted: too few shapes of a device and formats that no law is shipped for"
        )
    beyond = ("outside of the measured shapes",) if case.outside else ()
    return found.with_prediction(case.predicted * 1e3, (None, None), beyond, plain=case.plain * 1e3)


def _banded(cases: Sequence[Validated]) -> list[Validated]:
    """Return the cases with bands: as wide as the errors of all other cases of the group say."""
    widths = {name: _half_widths(alike) for name, alike in _together(cases, lambda case: case.group).items()}
    return [_with_band(case, widths[case.group].get(case.case_id)) for case in cases]


def _together(cases: Iterable[Validated], key: Callable[[Validated], str]) -> dict[str, list[Validated]]:
    found: dict[str, list[Validated]] = {}
    for case in cases:
        found.setdefault(key(case), []).append(case)
    return found


def _half_widths(cases: Sequence[Validated]) -> dict[str, float]:
    """Return for each case the log half width that holds 80 % of the errors of the rest, its own left out."""
    known = [case for case in cases if case.predicted_ms]
    errors = np.array([abs(np.log((case.predicted_ms or 1.0) / case.measured_ms)) for case in known])
    if len(known) < FEWEST:
        return dict.fromkeys((case.case_id for case in cases), float(np.log1p(UNTOLD[cases[0].kind])))
    order, place = np.sort(errors), np.argsort(np.argsort(errors, kind="stable"), kind="stable")
    at = int(np.ceil(COVERAGE * len(order))) - 1  # of those left, that one encloses 80 %
    widths = np.where(place <= at, order[min(at + 1, len(order) - 1)], order[at])
    return dict(zip((case.case_id for case in known), widths.tolist(), strict=True))


def _with_band(case: Validated, half: float | None) -> Validated:
    if case.predicted_ms is None or half is None:
        return case
    factor = float(np.exp(half))
    return replace(case, low=case.predicted_ms / factor, high=case.predicted_ms * factor)


def published(watch: Watch = unwatched) -> list[Validated]:
    """Return the published figures that the shipped scenarios reproduce and that are times in ms."""
    from analysis.validation import rows

    return [
        Validated(
            case_id=row["id"],
            kind="published",
            group=row["scenario"],
            configuration=row["id"],
            measured_ms=row["published"],
            role=row["role"],
            predicted_ms=row["predicted"],
            plain_sum_ms=row["plain_sum"],
            unlike=("more workers than the network was fitted on",) if row["extrapolated"] else (),
            source=row["source"],
            note=row["note"],
        )
        for row in rows(watch=watch)
        if row["role"] != "input" and row["error"] is not None and row["quantity"].endswith("_ms")
    ]
