"""From a model's name and the shapes of `model_configs.json` to the `workload` part of a scenario."""

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.training.tables import Row
from simulator.errors import InputError

Part = dict[str, Any]
EXPONENT = 1.05  # of the popularity of keys; one value for the whole data set
BOTTOM, TOP, DENSE, WIDTH = [512, 256, 128], [1024, 1024, 512, 256, 1], 13, 128
CROSS_LAYERS, CROSS_RANK = 3, 512
CLICK_LOG = "mlperf_dlrm_v1"  # whose tables models of the same click log have, larger or smaller
HASHED = "mlperf_dlrm_dcnv2"  # the same log with keys hashed to at most 40 M rows
FEWEST_ROWS = 20_000  # tables below it are not cut by a threshold of frequency


def precision(row: Row) -> str:
    """Return the format of matrix products; what is called FP32 on newer accelerators runs as TF32."""
    said = row.words.get("precision", "AMP").lower()
    if "amp" in said or "fp16" in said:
        return "fp16"
    if "bf16" in said:
        return "bf16"
    return "fp32" if row.accelerator.startswith("V100") else "tf32"


def workload(row: Row, configs: Mapping[str, Any]) -> Part:
    """Return the `workload` part. Raises InputError when the shape of the model is not known."""
    model, tables, optimizer = _shape(row, configs)
    if row.batch < row.accelerators:
        raise InputError("the batch is not stated")
    return {
        "model": {**model, "precision": precision(row)},
        "tables": tables,
        "keys": {"kind": "zipf", "exponent": EXPONENT},
        "batch": row.batch // row.accelerators,
        "optimizer": optimizer,
        "gradient_dtype": "fp16" if row.from_mlperf else "fp32",
    }


def _shape(row: Row, configs: Mapping[str, Any]) -> tuple[Part, list[Part], str]:
    name = row.model
    if name.startswith("mlperf_"):
        config = _config(configs, name)
        return _dense(name), _one_per_row(config), "adagrad" if "dcnv2" in name else "sgd"
    if name.startswith("dle_"):
        return _dense(name), _cut(configs, name), "sgd"
    if name.startswith("torchrec_dlrm_"):
        return _dense(name), _one_per_row(_config(configs, HASHED), one_hot=True), "adagrad"
    if name.startswith("de_synthetic_v3_"):
        return *_synthetic(_config(_config(configs, "de_synthetic_v3"), name.rsplit("_", 1)[1])), "adagrad"
    if name == "hstu_fixed":
        return *_sequence(_config(configs, "hstu_e2e")), "adam_rowwise_adagrad"
    raise InputError(f'the shape of the model "{name}" is not known')


def _config(configs: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = configs.get(name)
    if not isinstance(found, Mapping):
        raise InputError(f'the shape of the model "{name}" is not known')
    return found


def _dense(name: str) -> Part:
    part: Part = {
        "kind": "dlrm",
        "dense_features": DENSE,
        "embedding_features": 26,
        "dimension": WIDTH,
        "bottom": BOTTOM,
        "top": TOP,
    }
    if "dcn" in name:
        part |= {"kind": "dcnv2", "cross_layers": CROSS_LAYERS, "rank": CROSS_RANK}
    return part


def _one_per_row(config: Mapping[str, Any], one_hot: bool = False) -> list[Part]:
    hots = [1] * len(config["rows"]) if one_hot else config["multi_hot"]
    pairs = enumerate(zip(config["rows"], hots, strict=True))
    return [_table(f"t{place}", rows, WIDTH, hot) for place, (rows, hot) in pairs]


def _table(name: str, rows: float, width: int, pooling: float, copies: int = 1) -> Part:
    return {"name": name, "rows": rows, "dimension": width, "pooling": pooling, "copies": copies}


def _cut(configs: Mapping[str, Any], name: str) -> list[Part]:
    """Return the tables of the click log without rare keys, so that they have the stated size in all."""
    size = _config(configs, name.replace("_dcnv2_", "_dlrm_")).get("total_embedding_GiB")
    if not isinstance(size, int | float):
        raise InputError(f'the size of the tables of "{name}" is not stated')
    whole = _config(configs, CLICK_LOG)["rows"]
    rows = _shrunk(whole, size * 2**30 / (4 * WIDTH))
    return [_table(f"t{place}", count, WIDTH, 1) for place, count in enumerate(rows)]


def _shrunk(rows: Sequence[float], total: float) -> list[int]:
    """Return large tables shrunk by one factor, so that all together have `total` rows (by bisection)."""
    low, high = 0.0, max(1.0, total / sum(rows))
    for _ in range(60):
        middle = (low + high) / 2
        kept = sum(max(middle * count, min(count, FEWEST_ROWS)) for count in rows)
        low, high = (low, middle) if kept > total else (middle, high)
    return [int(max(low * count, min(count, FEWEST_ROWS))) for count in rows]


def _synthetic(config: Mapping[str, Any]) -> tuple[Part, list[Part]]:
    """Return a synthetic model: each input of a shared table counts as a table with its part of the rows.

    All outputs are joined, averaged over `interact_stride` neighbours, and fed to the perceptron with the
    dense features.
    """
    tables, width = [], 0
    for group, (copies, hots, rows, columns, _) in enumerate(config["emb"]):
        for place, hot in enumerate(hots):
            tables.append(_table(f"g{group}i{place}", max(1, rows // len(hots)), columns, hot, copies))
            width += copies * columns
    inputs = width // (config["interact_stride"] or 1) + config["dense"]
    return {"kind": "mlp", "inputs": inputs, "layers": [*config["mlp"], 1]}, tables


def _sequence(config: Mapping[str, Any]) -> tuple[Part, list[Part]]:
    """Return the HSTU: items and actions alternate, so a history of S items has about 2 S positions."""
    positions = 4099
    model = {"kind": "hstu", "layers": config["layers"], "dimension": config["hidden"], "sequence": positions}
    rows = (("items", config["item_rows"]), ("users", config["user_rows"]))
    tables = [_table(name, count, config["emb_dim"], positions / 2) for name, count in rows]
    return {**model, "heads": config["heads"]}, tables
