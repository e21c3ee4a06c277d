"""Every row of a folder with what is predicted of it, or why nothing is."""

import math
from collections.abc import Sequence
from pathlib import Path

from analysis.training.cases import Case
from analysis.training.fitting import FIT_ROWS
from analysis.training.peers import plain_sum_ms, two_streams_ms
from analysis.training.tables import Measured, Row, read_training
from analysis.validated import Validated
from simulator.errors import RecscaleError
from simulator.scenario.software_catalog import two_stream_factor

# Rows that no model of the machine can reach, by their own accounts or against their twins.
HOPELESS = {
    "mlp_v1_a100pcie_1x8_ae6c": "no peer access or rows in host memory: 26 times its twin",
    "mlp_v1_a100sxm80gb_1x8_b4ab": "1.6 times its twins of the same round and maker; nothing logged says why",
}


def predict(measured: Measured) -> list[Validated]:
    """Return one prediction per row that has a step time, in the order of the tables."""
    return [_validated(Case(row, measured)) for row in measured.rows if row.step_ms is not None]


def without_step(measured: Measured) -> list[str]:
    """Return the names of the rows that give no step time: nothing of them is predicted."""
    return [row.case_id for row in measured.rows if row.step_ms is None]


def predict_folder(folder: Path) -> list[Validated]:
    """Return the predictions of the tables in `folder`/training. Raises InputError for unreadable ones."""
    return predict(read_training(folder))


def _validated(case: Case) -> Validated:
    row = case.row
    found = Validated(
        case_id=row.case_id,
        kind="training",
        group=group(row),
        configuration=configuration(row),
        measured_ms=float(row.step_ms or math.nan),
        role="fit" if row.case_id in FIT_ROWS else "predict",
        source=_source(row),
        series=f"{row.model}, {row.accelerator}, {_stack(row) if row.from_mlperf else ''}",
        size=(row.accelerators, row.hosts, row.batch),
        note=HOPELESS.get(row.case_id, ""),
    )
    why_not = case.why_not
    if why_not is not None:
        return found.with_note(f"not predicted: {why_not}")
    return _filled(found, case)


def _filled(found: Validated, case: Case) -> Validated:
    software, cluster = case.scenario.spec.framework, case.scenario.cluster
    band = software.band(cluster, case.step_ms) or {}
    return found.with_prediction(
        case.step_ms,
        (band.get("low"), band.get("high")),
        unlike=tuple(software.unlike(cluster)),
        plain=plain_sum_ms(case),
        peer=two_streams_ms(case) * two_stream_factor(case.framework.family),
    )


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


def predicted(cases: Sequence[Validated]) -> list[Validated]:
    """Return the cases of role `predict` about which something is said."""
    return [case for case in cases if case.role == "predict" and case.predicted_ms is not None]
