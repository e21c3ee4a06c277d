"""From a model's name and the shapes of `model_configs.json` to the `workload` part of a scenario."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.training.configs import config_of, histories, lengths, part_of, size_of, widths
from analysis.training.rows import Row
from simulator.errors import InputError
from simulator.units import shown

Part = dict[str, Any]
EXPONENT = 1.05  # of the popularity of keys; one value for the whole data set
CROSS_LAYERS, CROSS_RANK = 3, 512  # of DCNv2, where its shape does not say it
# Of DLRM in MLPerf, where its shape does not say them.
USUAL: Part = {
    "dense_features": 13,
    "emb_dim": 128,
    "bottom_mlp": [512, 256, 128],
    "top_mlp": [1024, 1024, 512, 256, 1],
}
CLICK_LOG = "mlperf_dlrm_v1"  # whose tables models of the same click log have, larger or smaller
HASHED = "mlperf_dlrm_dcnv2"  # the same log with keys hashed to at most 40 M rows
FEWEST_ROWS = 20_000  # tables below it are not cut by a threshold of frequency
_CROSS = re.compile(r"(\d+) layers?\b.*?\b(?:projection|rank) (\d+)")
_FORMATS = (
    ("bf16", r"\bbf16\b|bfloat16"),
    ("fp16", r"\bamp\b|\bfp16\b|\bhalf\b|\bmixed\b"),
    ("fp32", r"\bfp32\b|\btf32\b|\bfloat32\b|\bunstated|\bsingle\b"),
)


def precision(row: Row) -> str:
    """Return the format of matrix products; what is called FP32 on newer accelerators runs as TF32.

    MLPerf submissions of DLRM run in mixed precision. Raises InputError for a format of another kind.
    """
    said = row.words.get("precision", "").lower() or ("amp" if row.from_mlperf else "unstated")
    found = next((name for name, words in _FORMATS if re.search(words, said)), None)
    if found is None:
        raise InputError(f"the precision {shown(said)} is none of fp32, tf32, fp16, bf16, AMP")
    if found != "fp32":
        return found
    return "fp32" if re.match(r"\W*(nvidia|tesla)?\W*v100", row.accelerator.lower()) else "tf32"


def workload(row: Row, configs: Mapping[str, Any]) -> Part:
    """Return the `workload` part. Raises InputError when the shape of the model is not known."""
    model, tables, optimizer = _shape(row, configs)
    return {
        "model": {**model, "precision": precision(row)},
        "tables": tables,
        "keys": {"kind": "zipf", "exponent": EXPONENT},
        "batch": row.batch // row.accelerators,
        "optimizer": optimizer,
        "gradient_dtype": "fp16" if row.from_mlperf else "fp32",
    }


def notes(row: Row, configs: Mapping[str, Any], optimizer: str) -> list[str]:
    """Return what was assumed of a row's formats, optimizer and widths."""
    found = []
    shape = configs.get(_widths_from(row.model))
    if isinstance(shape, Mapping) and (assumed := [name for name in USUAL if name not in shape]):
        found.append(f"as in MLPerf, for want of a statement: {', '.join(assumed)}")
    said = row.words.get("precision", "").lower()
    if not row.from_mlperf and (not said or said == "unstated"):
        found.append(f"precision not stated: taken as {precision(row)}")
    stated = re.sub(r"[^a-z]", "", row.words.get("optimizer", "").lower())
    if stated and stated != "unstated" and stated not in optimizer:
        found.append(f"optimizer: {optimizer}, not the {stated} stated")
    return found


def _widths_from(model: str) -> str:
    """Return the shape whose perceptrons a model has; empty where they are its own."""
    if model in (CLICK_LOG, HASHED):
        return model
    return CLICK_LOG if model.startswith("dle_") else HASHED if model.startswith("torchrec_dlrm_") else ""


def _usual(config: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**USUAL, **config}


def _shape(row: Row, configs: Mapping[str, Any]) -> tuple[Part, list[Part], str]:
    name = row.model
    if name in (CLICK_LOG, HASHED):
        config = _usual(config_of(configs, name))
        tables = _one_per_row(config, lengths(config, name))
        return _dense(name, config, len(tables)), tables, "adagrad" if "dcn" in name else "sgd"
    if name.startswith("dle_"):
        tables = _cut(configs, name)
        return _dense(name, _usual(config_of(configs, CLICK_LOG)), len(tables)), tables, "sgd"
    if name.startswith("torchrec_dlrm_"):
        config = _usual(config_of(configs, HASHED))
        tables = _one_per_row(config, None)
        return _dense(name, config, len(tables)), tables, "adagrad"
    if name.startswith("de_synthetic_v3_"):
        config = part_of(config_of(configs, "de_synthetic_v3"), name.rsplit("_", 1)[1], name)
        return *_synthetic(config, name), "adagrad"
    if name == "hstu_fixed":
        return *_sequence(config_of(configs, "hstu_e2e"), row), "adam_rowwise_adagrad"
    raise InputError(f"the shape of the model {shown(name)} is not known")


def _dense(name: str, config: Mapping[str, Any], features: int) -> Part:
    part: Part = {
        "kind": "dlrm",
        "dense_features": size_of(config, "dense_features", name),
        "embedding_features": features,
        "dimension": size_of(config, "emb_dim", name),
        "bottom": widths(config, "bottom_mlp", name),
        "top": widths(config, "top_mlp", name),
    }
    if "dcn" in name:
        layers, rank = _cross(config)
        part |= {"kind": "dcnv2", "cross_layers": layers, "rank": rank}
    return part


def _cross(config: Mapping[str, Any]) -> tuple[int, int]:
    found = _CROSS.search(str(config.get("interaction", "")))
    return (int(found.group(1)), int(found.group(2))) if found else (CROSS_LAYERS, CROSS_RANK)


def _one_per_row(config: Mapping[str, Any], hots: Sequence[float] | None) -> list[Part]:
    rows, width = widths(config, "rows", "the model"), size_of(config, "emb_dim", "the model")
    pairs = enumerate(zip(rows, hots or [1.0] * len(rows), strict=True))
    return [_table(f"t{place}", count, width, hot) for place, (count, hot) in pairs]


def _table(name: str, rows: float, width: int, pooling: float, copies: int = 1) -> Part:
    return {"name": name, "rows": rows, "dimension": width, "pooling": pooling, "copies": copies}


def _cut(configs: Mapping[str, Any], name: str) -> list[Part]:
    """Return the tables of the click log without rare keys, so that they have the stated size in all."""
    config = config_of(configs, name.replace("_dcnv2_", "_dlrm_"))
    size = config.get("total_embedding_GiB")
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < 1e6:
        raise InputError(f"the size of the tables of {shown(name)} is not stated")
    log = _usual(config_of(configs, CLICK_LOG))
    width = size_of(log, "emb_dim", CLICK_LOG)
    rows = _shrunk(widths(log, "rows", CLICK_LOG), size * 2**30 / (4 * width))
    return [_table(f"t{place}", count, width, 1) for place, count in enumerate(rows)]


def _shrunk(rows: Sequence[float], total: float) -> list[int]:
    """Return large tables shrunk by one factor, so that all together have `total` rows (by bisection)."""
    low, high = 0.0, max(1.0, total / sum(rows))
    for _ in range(60):
        middle = (low + high) / 2
        kept = sum(max(middle * count, min(count, FEWEST_ROWS)) for count in rows)
        low, high = (low, middle) if kept > total else (middle, high)
    return [int(max(low * count, min(count, FEWEST_ROWS))) for count in rows]


def _synthetic(config: Mapping[str, Any], name: str) -> tuple[Part, list[Part]]:
    """Return a synthetic model: each input of a shared table counts as a table with its part of the rows.

    All outputs are joined, averaged over `interact_stride` neighbours, and fed to the perceptron with the
    dense features.
    """
    tables, width = [], 0
    for group, (copies, hots, rows, columns) in enumerate(_groups(config, name)):
        for place, hot in enumerate(hots):
            tables.append(_table(f"g{group}i{place}", max(1, rows // len(hots)), columns, hot, copies))
            width += copies * columns
    stride = 1 if config.get("interact_stride") is None else size_of(config, "interact_stride", name)
    inputs = width // stride + size_of(config, "dense", name)
    return {"kind": "mlp", "inputs": inputs, "layers": [*widths(config, "mlp", name), 1]}, tables


def _groups(config: Mapping[str, Any], name: str) -> list[tuple[int, list[int], int, int]]:
    """Return the groups of tables of a synthetic model: copies, keys of each input, rows, width."""
    listed = config.get("emb")
    problem = InputError(f"emb of the model {shown(name)} is no list of [tables, keys, rows, width, shared]")
    if not isinstance(listed, list) or not listed:
        raise problem
    found = []
    for one in listed:
        if not isinstance(one, list) or len(one) < 4:
            raise problem
        copies, rows, columns = widths({"emb": [one[0], *one[2:4]]}, "emb", name)
        found.append((copies, widths({"emb": one[1]}, "emb", name), rows, columns))
    return found


def _sequence(config: Mapping[str, Any], row: Row) -> tuple[Part, list[Part]]:
    """Return the HSTU, with the positions of a history as the row states them."""
    positions = histories(row)
    sizes = {name: size_of(config, name, row.model) for name in ("layers", "hidden", "heads", "emb_dim")}
    model = {"kind": "hstu", "layers": sizes["layers"], "dimension": sizes["hidden"], "sequence": positions}
    rows = [(one, size_of(config, f"{one[:-1]}_rows", row.model)) for one in ("items", "users")]
    tables = [_table(name, count, sizes["emb_dim"], positions / 2) for name, count in rows]
    return {**model, "heads": sizes["heads"]}, tables


def cached(configs: Mapping[str, Any]) -> float | None:
    """Return the share of rows of dynamic tables that device memory holds; None where it is not stated."""
    config = configs.get("hstu_e2e")
    found = config.get("hbm_cache_ratio") if isinstance(config, Mapping) else None
    return float(found) if isinstance(found, int | float) and 0 < found <= 1 else None
