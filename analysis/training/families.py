"""Which framework ran a row, in which release, and what is known of such a release.

What the words of a row do not say is assumed where there is a reason to, and noted; software for which no
row was fitted is refused.
"""

import re
from dataclasses import dataclass
from typing import Any

from analysis.training.rows import Row
from analysis.training.shapes import precision
from simulator.errors import InputError
from simulator.units import shown

HYBRID_SINCE = (1, 0)  # HugeCTR kept frequent categories on all ranks from this MLPerf round on
COPIES_SINCE = (3, 1)  # HugeCTR kept small tables on all ranks from this MLPerf round on
HYBRID_RELEASE, COPIES_RELEASE = "21.05", "23.09"  # the releases of these rounds
# Largest table held by all ranks: of DCNv2, those that logs list as such; of DLRM v1 about as many rows as
# the frequent categories of the published settings (16,640).
SMALL_DCNV2, SMALL_V1 = "7 MB", "4 MB"
PREFETCH = "stale_prefetch"  # inputs copied and keys routed ahead; rows in device memory stay fresh
_HUGECTR = re.compile(r"hugectr|\bmerlin\b|merlin_", re.IGNORECASE)
# NVIDIA's submissions, and those of makers of its servers, name the containers of all benchmarks of a round;
# those of DLRM hold HugeCTR, except for PyTorch alone in DLRM v1.
_CONTAINERS = re.compile(r"\bnvidia\b|\bngc\b|\bmxnet", re.IGNORECASE)
_PYTORCH = re.compile(r"\bpytorch\b", re.IGNORECASE)
_FOREIGN = re.compile(
    r"torchrec|paddle|mindspore|oneflow|persia|\bjax\b|\bxla\b|ipex|\bintel\b|gaudi|habana|\brocm\b|\bamd\b",
    re.IGNORECASE,
)
FITTED = " (fitted: HugeCTR; with DLRM v1 also PyTorch)"
KNOWN = "HugeCTR with DCNv2, distributed_embeddings, pytorch, tensorflow, torchrec"
_RELEASE = re.compile(r"\b(2\d\.\d\d)\b")


@dataclass(frozen=True)
class Framework:
    """The family whose overhead a row shares, the release, and the policy that its pipeline follows.

    `notes` say what was assumed.
    """

    family: str
    release: str
    policy: str
    hybrid: bool = False
    notes: tuple[str, ...] = ()


def framework(row: Row) -> Framework:
    """Return the framework of a row. Raises InputError where none of the six families fits."""
    if re.match(r"\W*(CPU|TPU)\b", row.accelerator, re.IGNORECASE):
        raise InputError("processors and TPUs ran other software, for which no row is left to fit")
    return _submitted(row) if row.from_mlperf else _published(row)


def release(row: Row) -> str:
    """Return the last release named beside HugeCTR or in the words for the framework, such as `23.09`."""
    said = row.words.get("framework", "")
    beside = re.search(r"hugectr[^,;]*?(2\d\.\d\d)", said, re.IGNORECASE)
    found = _RELEASE.findall(said)
    return beside.group(1) if beside else found[-1] if found else ""


def _submitted(row: Row) -> Framework:
    said, deep = row.words.get("framework", ""), "dcnv2" in row.model
    if _HUGECTR.search(said):
        return _hugectr(row, deep)
    if _FOREIGN.search(said):
        raise InputError(f"no row of MLPerf was fitted for the framework {shown(said)}{FITTED}")
    if not said:
        return _hugectr(row, deep, "framework not stated: taken as HugeCTR")
    if not deep and _PYTORCH.search(said) and not re.search(r"mxnet|\bngc\b", said, re.IGNORECASE):
        return Framework("pytorch", release(row), "serialized")
    if _CONTAINERS.search(said):
        return _hugectr(row, deep, f"HugeCTR, as in NVIDIA's containers of DLRM; stated: {said}")
    raise InputError(f"no row of MLPerf was fitted for the framework {shown(said)}{FITTED}")


def _hugectr(row: Row, deep: bool, *notes: str) -> Framework:
    if deep:
        return Framework("hugectr", release(row), "hugectr", notes=(*notes, *_no_round(row, COPIES_SINCE)))
    hybrid = later(row, HYBRID_SINCE, HYBRID_RELEASE)
    policy = "hugectr" if hybrid else "serialized"
    return Framework("hugectr_v1", release(row), policy, hybrid, (*notes, *_no_round(row, HYBRID_SINCE)))


def later(row: Row, since: tuple[int, int], released: str) -> bool:
    """Whether a row is of MLPerf round `since` or later: by its release, or taken so, where no round is."""
    if row.numbered is not None:
        return row.numbered >= since
    return (release(row) or released) >= released


def _no_round(row: Row, since: tuple[int, int]) -> list[str]:
    if row.numbered is not None:
        return []
    name, told = "v{}.{}".format(*since), release(row)
    known = f"round read off release {told}" if told else f"round not stated: taken as {name} or later"
    return [known]


def copies_tables(row: Row) -> bool:
    """Whether HugeCTR held the small tables of DCNv2 on all ranks."""
    return later(row, COPIES_SINCE, COPIES_RELEASE)


# What a source is, by parts of its name and path, and by how the table's own names for its rows begin.
_BY_SOURCE = (
    ("distributed-embeddings", "distributed_embeddings"),
    ("deeplearningexamples pytorch/", "pytorch"),
    ("deeplearningexamples tensorflow2/", "tensorflow"),
    ("sparse_operation_kit", "tensorflow"),
    ("facebookresearch/dlrm torchrec", "torchrec"),
    ("recsys-examples", "pytorch"),
)
_BY_NAME = (
    ("de_", "distributed_embeddings"),
    ("dle_pt", "pytorch"),
    ("dle_tf2", "tensorflow"),
    ("sok_", "tensorflow"),
    ("trdlrm_", "torchrec"),
    ("hstu_", "pytorch"),
)
_BY_WORDS = (
    (r"\btorchrec\b", "torchrec"),
    (r"\bdistributed[- ]embeddings\b", "distributed_embeddings"),
    (r"\b(tf2|tensorflow)\b", "tensorflow"),
)


def _published(row: Row) -> Framework:
    words = row.words
    if _HUGECTR.search(words.get("framework", "")) and "dcnv2" in row.model:
        return _hugectr(row, True)
    place = f"{words.get('source', '')} {words.get('path', '')}".lower()
    for part, family in _BY_SOURCE:
        if part in place:
            return _eager(row, family)
    for beginning, family in _BY_NAME:
        if row.case_id.startswith(beginning):
            return _eager(row, family, f"framework read off the name: {family}")
    said = f"{words.get('framework', '')} {place} {words.get('notes', '')}".lower()
    for pattern, family in _BY_WORDS:
        if re.search(pattern, said):
            return _eager(row, family, f"framework read off the words: {family}")
    stated = shown(words.get("framework", "")) if words.get("framework") else "not stated"
    raise InputError(f"framework ({stated}), source, path and notes name none of {KNOWN}")


def _eager(row: Row, family: str, *notes: str) -> Framework:
    if family != "torchrec":
        return Framework(family, "", "serialized", notes=notes)
    loaded = "load" in row.words.get("notes", "").lower()
    told = () if loaded else ("taken to include loading, as the fitted row",)
    return Framework(family, "", PREFETCH, notes=(*notes, *told))


def copies(row: Row) -> str:
    """Return the size up to which tables are held by all ranks."""
    if row.model == "mlperf_dlrm_dcnv2":
        return SMALL_DCNV2 if framework(row).family == "hugectr" and copies_tables(row) else "0 B"
    return SMALL_V1 if framework(row).hybrid else "0 B"


def wire(row: Row) -> str:
    """Return the format of rows on their way: mixed precision sends half as much."""
    half = precision(row) in ("fp16", "bf16") and framework(row).family.startswith("hugectr")
    return "fp16" if half else "fp32"


def software(row: Row) -> dict[str, Any]:
    """Return what a row's release adds to the profile of its family."""
    found: dict[str, Any] = {"release": framework(row).release, "precision": {"wire": wire(row)}}
    if not row.copied:
        found["data_parallel_small_tables"] = copies(row)
    return found
