"""Every row of a folder with what is predicted of it, or why nothing is."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from analysis.training.cases import Case
from analysis.training.fitting import FIT_ROWS, is_fitted
from analysis.training.peers import plain_sum_ms, two_streams_ms
from analysis.training.rows import Measured, Row
from analysis.training.tables import read_training
from analysis.validated import Validated
from simulator.calibration.csv_table import read_lines
from simulator.errors import RecscaleError
from simulator.scenario.software_catalog import two_stream_factor

REMARKS = Path(__file__).with_name("remarks.csv")


@cache
def remarks() -> Mapping[str, str]:
    """Return what is known of rows that no model of the machine can reach, by their names."""
    return {line.text("case_id"): line.text("remark") for line in read_lines(REMARKS, ("case_id", "remark"))}


def predict(measured: Measured) -> list[Validated]:
    """Return one case per row, in the order of the tables; those without a prediction say why."""
    return [_validated(Case(row, measured)) for row in measured.rows]


def predict_folder(folder: Path) -> list[Validated]:
    """Return the predictions of the tables in `folder`/training. Raises InputError for unreadable ones."""
    return predict(read_training(folder))


def _validated(case: Case) -> Validated:
    row = case.row
    why_not = case.why_not
    if why_not is not None:
        return _silent(row).not_predicted(why_not)
    found = Validated(
        case_id=row.case_id,
        kind="training",
        group=group(row),
        configuration=configuration(row),
        measured_ms=float(row.step_ms or 0.0),
        role="fit" if is_fitted(row) else "predict",
        source=_source(row),
        series=f"{row.model}, {row.accelerator}, {_stack(row) if row.from_mlperf else ''}",
        size=(row.accelerators, row.hosts, row.batch),
        note="; ".join(filter(None, (remarks().get(row.case_id, ""), _renamed(row)))),
    )
    return _filled(found, case)


def _silent(row: Row) -> Validated:
    """Return a case about which nothing is said: a configuration of its own, that weighs on no other."""
    return Validated(
        case_id=row.case_id,
        kind="training",
        group=group(row),
        configuration=f"{row.table}, {row.words.get('line', 'whole')}, {row.case_id}",
        measured_ms=row.measured_ms,
        source=_source(row),
        size=(row.accelerators, row.hosts, row.batch),
        note=remarks().get(row.case_id, ""),
    )


def _renamed(row: Row) -> str:
    other = row.case_id in FIT_ROWS and not is_fitted(row)
    return "named like a row that was fitted, but measured otherwise" if other else ""


def _filled(found: Validated, case: Case) -> Validated:
    software, cluster = case.scenario.spec.framework, case.scenario.cluster
    band = software.band(cluster, case.step_ms) or {}
    done = found.with_prediction(
        case.step_ms,
        (band.get("low"), band.get("high")),
        unlike=tuple(case.unlike),
        plain=plain_sum_ms(case),
        peer=two_streams_ms(case) * two_stream_factor(case.framework.family),
    )
    for note in case.notes:
        done = done.with_note(note)
    return done


def group(row: Row) -> str:
    """Return the group that a row is scored in."""
    if row.model == "mlperf_dlrm_dcnv2":
        return "DCNv2"
    if row.model == "mlperf_dlrm_v1" and row.from_mlperf:
        return "DLRM v1"
    if row.model.startswith("de_synthetic"):
        return "NVIDIA synthetic"
    return "HSTU" if row.model.startswith("hstu") else "other DLRM"


def configuration(row: Row) -> str:
    """Return what tells configurations apart: rows that share it are repetitions of one experiment."""
    words = row.words
    software = _stack(row) if row.from_mlperf else f"{words.get('source', '')} {row.case_id}"
    shape = f"{row.accelerators} on {row.hosts}, batch {row.batch}"
    return f"{row.model}, {row.accelerator}, {shape}, {software}".strip()


def _stack(row: Row) -> str:
    """Return the family and round of a submission: containers of one round hold the same software."""
    try:
        family = Case(row, Measured((), {})).framework.family
    except RecscaleError:
        family = row.words.get("framework", "")
    return f"{family} {row.round}"


def _source(row: Row) -> str:
    if row.from_mlperf:
        return "MLPerf Training log; not verified by MLCommons Association"
    return row.words.get("source", "")
