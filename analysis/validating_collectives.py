"""Measured collectives of a folder: each row once, predicted from measurements that do not hold it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from analysis.nominal_links import nominal_seconds
from analysis.validated import Validated
from simulator.calibration.collective_questions import Answered, answered
from simulator.calibration.collective_survey import Survey, SurveyedRow, survey
from simulator.calibration.collective_tables import Table

UNKNOWN = "not usable"


def collectives(folder: Path) -> list[Validated]:
    """Return one case per row of `folder`/collectives/rows.csv, and one per table without a row.

    A row that cannot be predicted is listed with the reason. Raises InputError where the two files cannot
    be read or lack a column.
    """
    found = survey(folder / "collectives")
    said = {(one.table.name, one.size): one for one in answered(found.tables)}
    tables = {table.name: table for table in found.tables}
    seen: Counter[str] = Counter()
    cases = [_case(row, found, tables, said, seen) for row in found.rows]
    return [*cases, *_without_rows(found)]


def _case(
    row: SurveyedRow,
    found: Survey,
    tables: dict[str, Table],
    said: dict[tuple[str, float], Answered],
    seen: Counter[str],
) -> Validated:
    name = f"{row.table} {row.size:.0f} B" if row.size == row.size else f"{row.table} line {row.line}"
    seen[name] += 1
    known = name if seen[name] == 1 else f"{name} ({seen[name]})"
    case = Validated(known, "collective", UNKNOWN, name, row.seconds * 1e3)
    problem = found.problems.get(row.table) or row.problem
    if problem:
        return case.not_predicted(problem)
    return _predicted(case, said[row.table, row.size], tables[row.table])


def _predicted(case: Validated, said: Answered, table: Table) -> Validated:
    group = f"{said.table.operation}, {said.question}"
    size = (table.scale.ranks, table.scale.nodes, round(said.size))
    found = replace(case, group=group, source=table.source, like=group, size=size)
    if said.seconds is None:
        return found.not_predicted(said.refused)
    plain = nominal_seconds(table, said.size)
    return found.with_prediction(
        said.seconds * 1e3, (None, None), said.beyond, plain=None if plain is None else plain * 1e3
    )


def _without_rows(found: Survey) -> Iterator[Validated]:
    for name in found.rowless:
        case = Validated(name, "collective", UNKNOWN, name, float("nan"))
        yield case.not_predicted("rows.csv has no row of the table")
