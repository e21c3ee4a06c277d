"""Which framework ran a row, in which release, and what is known of such a release."""

import re
from dataclasses import dataclass
from typing import Any

from analysis.training.shapes import precision
from analysis.training.tables import Row
from simulator.errors import InputError

HYBRID_SINCE = "v1.0"  # HugeCTR kept frequent categories on all ranks from this MLPerf round on
COPIES_SINCE = "v3.1"  # HugeCTR kept small tables on all ranks from this MLPerf round on
# Largest table held by all ranks: of DCNv2, those that logs list as such; of DLRM v1 about as many rows as
# the frequent categories of the published settings (16,640).
SMALL_DCNV2, SMALL_V1 = "7 MB", "4 MB"
PREFETCH = "stale_prefetch"  # inputs copied and keys routed ahead; rows in device memory stay fresh
_MIXED = re.compile(r"hugectr|mxnet|\bngc\b|merlin", re.IGNORECASE)
_RELEASE = re.compile(r"\b(2\d\.\d\d)\b")


@dataclass(frozen=True)
class Framework:
    """The family whose overhead a row shares, the release, and the policy that its pipeline follows."""

    family: str
    release: str
    policy: str
    hybrid: bool = False


def framework(row: Row) -> Framework:
    """Return the framework of a row. Raises InputError where none of the six families fits."""
    if row.accelerator.startswith(("CPU", "TPU")):
        raise InputError("processors and TPUs ran other software, for which no row is left to fit")
    if row.from_mlperf:
        return _submitted(row)
    return _published(row)


def release(row: Row) -> str:
    """Return the last release named beside HugeCTR or in the words for the framework, such as `23.09`."""
    said = row.words.get("framework", "")
    beside = re.search(r"hugectr[^,;]*?(2\d\.\d\d)", said, re.IGNORECASE)
    found = _RELEASE.findall(said)
    return beside.group(1) if beside else found[-1] if found else ""


def _submitted(row: Row) -> Framework:
    said = row.words.get("framework", "")
    if "dcnv2" in row.model:
        return Framework("hugectr", release(row), "hugectr")
    if "pytorch" in said.lower() and not _MIXED.search(said):
        return Framework("pytorch", release(row), "serialized")
    hybrid = row.round >= HYBRID_SINCE
    return Framework("hugectr_v1", release(row), "hugectr" if hybrid else "serialized", hybrid)


_BY_SOURCE = (
    ("de_", "distributed_embeddings"),
    ("dle_pt", "pytorch"),
    ("dle_tf2", "tensorflow"),
    ("sok_", "tensorflow"),
    ("trdlrm_", "torchrec"),
    ("hstu_", "pytorch"),
)


def _published(row: Row) -> Framework:
    for beginning, family in _BY_SOURCE:
        if row.case_id.startswith(beginning):
            return Framework(family, "", PREFETCH if family == "torchrec" else "serialized")
    said = f"{row.words.get('source', '')} {row.words.get('notes', '')}".lower()
    for word, family in (("torchrec", "torchrec"), ("distributed-embeddings", "distributed_embeddings")):
        if word in said:
            return Framework(family, "", PREFETCH if family == "torchrec" else "serialized")
    raise InputError("the framework is not one of the six families")


def copies(row: Row) -> str:
    """Return the size up to which tables are held by all ranks."""
    if row.model == "mlperf_dlrm_dcnv2":
        return SMALL_DCNV2 if row.round >= COPIES_SINCE else "0 B"
    return SMALL_V1 if framework(row).hybrid else "0 B"


def wire(row: Row) -> str:
    """Return the format of rows on their way: mixed precision sends half as much."""
    return (
        "fp16"
        if precision(row) in ("fp16", "bf16") and framework(row).family.startswith("hugectr")
        else "fp32"
    )


def software(row: Row) -> dict[str, Any]:
    """Return what a row's release adds to the profile of its family."""
    found: dict[str, Any] = {"release": framework(row).release, "precision": {"wire": wire(row)}}
    if not row.copied:
        found["data_parallel_small_tables"] = copies(row)
    return found
