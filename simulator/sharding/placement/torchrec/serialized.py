"""The JSON form of a TorchRec plan: modules, their tables, and the shards of each, below `plan`."""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from simulator.errors import InputError, Where, did_you_mean
from simulator.sharding.placement.shard import Span
from simulator.sharding.placement.torchrec.plan import TorchRecPlan, TorchRecShard, TorchRecTable, whole
from simulator.units import shown

KEYS = ("sharding_type", "compute_kernel", "ranks", "shards")
# What else TorchRec keeps of a parameter; some of it is spelled nearly like what is read.
IGNORED = ("sharding_spec", "cache_params", "enforce_hbm", "stochastic_rounding", "bounds_check_mode")
_PLACEMENT = re.compile(r"rank:(\d+)/(\w+(?::\d+)?)$")


def from_json(text: str) -> TorchRecPlan:
    """Return the plan in `text`; the level `plan` and the level of modules may be missing.

    Raises InputError with the line for broken JSON, and with the path for what is no plan.
    """
    try:
        document = json.loads(text)
        return TorchRecPlan(tuple(_tables(_mapping(document, "the document"), "")))
    except json.JSONDecodeError as error:
        raise InputError(f"broken JSON: {error.msg}", Where(line=error.lineno)) from None
    except RecursionError:
        raise InputError("nested too deeply for a sharding plan") from None
    except (ValueError, OverflowError):  # Python refuses to read thousands of digits
        raise InputError("a number has too many digits") from None


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
    _refuse_misspelled(node, path)
    try:
        shards = tuple(_shard(shard) for shard in node.get("shards") or ())
        ranks = node.get("ranks") or [shard.rank for shard in shards]
        kernel = str(node.get("compute_kernel", "fused"))
        numbers = tuple(whole(rank) for rank in ranks)
        return TorchRecTable(module, name, str(node["sharding_type"]), kernel, numbers, shards)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"no shard as TorchRec writes it ({error!r})", Where(path=path)) from None
    except InputError as error:
        raise InputError(error.problem, Where(path=path)) from None


def _shard(node: Mapping[str, Any]) -> TorchRecShard:
    (row, column), (rows, columns) = node["shard_offsets"], node["shard_sizes"]
    rank, device = parsed_placement(str(node["placement"]))
    across, down = Span(whole(column), whole(columns)), Span(whole(row), whole(rows))
    return TorchRecShard(down, across, rank, device)


def _refuse_misspelled(node: Mapping[str, Any], path: str) -> None:
    """Refuse a key that is nearly one of ours: what it says would be lost."""
    for key in node:
        if key not in (*KEYS, *IGNORED) and get_close_matches(key, KEYS, n=1, cutoff=0.6):
            raise InputError(f"unknown key {shown(key)}{did_you_mean(key, KEYS)}", Where(path=path))


def parsed_placement(text: str) -> tuple[int, str]:
    """Return (rank, device) of a placement such as `rank:3/cuda:1`. Raises InputError for any other."""
    found = _PLACEMENT.match(text.strip())
    if found is None:
        raise InputError(f'"{text}" is no placement such as rank:0/cuda:0')
    return whole(found[1]), found[2]


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
