"""Measured matrix products of a folder: new shapes from the shipped laws, others from half."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.validated import Validated

if TYPE_CHECKING:
    from analysis.gemm_validation import HeldOutProduct


def products(folder: Path) -> list[Validated]:
    """Return one case per row of the tables in `folder`/kernels. Raises InputError for unreadable ones."""
    from analysis.gemm_validation import cross_fitted, tables_in

    return [_product(case) for case in cross_fitted(tables_in(folder))]


def largest_products(folder: Path) -> list[Validated]:
    """Return the largest shapes of each table as the smaller ones foretell them."""
    from analysis.gemm_validation import held_out, largest, tables_in

    tables = tables_in(folder)
    return [_product(case, larger=True) for case in held_out(tables, largest)] if tables else []


def _product(case: "HeldOutProduct", larger: bool = False) -> Validated:
    where = "beyond" if case.outside or larger else "between"
    found = Validated(
        case_id=case.name,
        kind="gemm",
        group=f"{case.device} {case.formats}",
        configuration=case.name,
        measured_ms=case.measured * 1e3,
        source=case.device,
        like=f"{case.formats}, {where} measured shapes",
    )
    if case.predicted is None:
        return found.not_predicted(case.note)
    beyond = ("outside of the measured shapes",) if case.outside else ()
    plain = None if case.plain is None else case.plain * 1e3
    said = found.with_prediction(case.predicted * 1e3, (None, None), beyond, plain=plain)
    return replace(said, role=case.role).with_note(case.note)
