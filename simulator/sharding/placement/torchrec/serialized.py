"""The JSON form of a TorchRec plan: modules, their tables, and the shards of each, below `plan`."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from simulator.errors import InputError, Where
from simulator.sharding.placement.shard import Span
from simulator.sharding.placement.torchrec.plan import TorchRecPlan, TorchRecShard, TorchRecTable

_PLACEMENT = re.compile(r"rank:(\d+)/(\w+(?::\d+)?)$")


def from_json(text: str) -> TorchRecPlan:
    """Return the plan in `text`; the level `plan` and the level of modules may be missing.

    Raises InputError with the line for broken JSON, and with the path for what is no plan.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"broken JSON: {error.msg}", Where(line=error.lineno)) from None
    tables = tuple(_tables(_mapping(document, "the document"), ""))
    return TorchRecPlan(tables)


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"expected an object, found {type(value).__name__}", Where(path=path))
    return value


def _tables(node: Mapping[str, Any], module: str) -> Iterator[TorchRecTable]:
    """Yield the tables below `node`: a plan, a module, or several modules."""
    for name, value in node.items():
        path = f"{module}.{name}" if module else name
        inner = _mapping(value, path)
        if "sharding_type" in inner:
            yield _table(module, name, inner, path)
        else:
            yield from _tables(inner, "" if name == "plan" and not module else path)


def _table(module: str, name: str, node: Mapping[str, Any], path: str) -> TorchRecTable:
    try:
        shards = tuple(_shard(shard) for shard in node.get("shards") or ())
        ranks = node.get("ranks") or [shard.rank for shard in shards]
        kernel = str(node.get("compute_kernel", "fused"))
        numbers = tuple(int(rank) for rank in ranks)
        return TorchRecTable(module, name, str(node["sharding_type"]), kernel, numbers, shards)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"no shard as TorchRec writes it ({error!r})", Where(path=path)) from None
    except InputError as error:
        raise InputError(error.problem, Where(path=path)) from None


def _shard(node: Mapping[str, Any]) -> TorchRecShard:
    (row, column), (rows, columns) = node["shard_offsets"], node["shard_sizes"]
    rank, device = parsed_placement(str(node["placement"]))
    return TorchRecShard(Span(int(row), int(rows)), Span(int(column), int(columns)), rank, device)


def parsed_placement(text: str) -> tuple[int, str]:
    """Return (rank, device) of a placement such as `rank:3/cuda:1`. Raises InputError for any other."""
    found = _PLACEMENT.match(text.strip())
    if found is None:
        raise InputError(f'"{text}" is no placement such as rank:0/cuda:0')
    return int(found[1]), found[2]


def to_json(plan: TorchRecPlan) -> str:
    """Return the plan as TorchRec serializes it."""
    modules: dict[str, dict[str, Any]] = {}
    for table in plan.tables:
        modules.setdefault(table.module, {})[table.name] = _node(table)
    return json.dumps({"plan": modules}, indent=2) + "\n"


def _node(table: TorchRecTable) -> dict[str, Any]:
    node: dict[str, Any] = {
        "sharding_type": table.sharding,
        "compute_kernel": table.kernel,
        "ranks": list(table.ranks),
    }
    if table.shards:
        node["shards"] = [
            {
                "shard_offsets": [shard.rows.start, shard.columns.start],
                "shard_sizes": [shard.rows.size, shard.columns.size],
                "placement": shard.placement,
            }
            for shard in table.shards
        ]
    return node
