"""Placements and TorchRec's plans as the `sharding` part of a scenario, and placements as TorchRec's."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from glob import escape
from typing import Any

from analysis.placing import Placing
from simulator.sharding.placement import Shard
from simulator.sharding.placement.torchrec import TorchRecPlan, TorchRecTable
from simulator.sharding.placement.torchrec.plan import REPLICATED

Part = dict[str, Any]
CACHED_SHARE = 0.2  # FBGEMM's default `cache_load_factor`; a plan does not say
NEARLY = 0.01  # blocks of rows on all chips that differ less are simply row-wise
# The memory that TorchRec's compute kernels keep rows in; `dense` and `fused` are in device memory.
KERNEL_TIERS: dict[str, Any] = {
    "fused_uvm": "dram",
    "quant_uvm": "dram",
    "fused_uvm_caching": {"kind": "hbm_cache", "share": CACHED_SHARE},
    "quant_uvm_caching": {"kind": "hbm_cache", "share": CACHED_SHARE},
    "key_value": "ssd",
    "ssd_virtual_table": "ssd",
}
SET_LIMIT = 60_000  # characters: --set takes a little more


def placed_part(placing: Placing) -> Part:
    """Return the sharding part in which tables lie as placed; tiers, copies and exchange stay as they are.

    Row pieces become shares of rows by a hash: which rows a piece holds is not carried over.
    """
    own = placing.scenario.resolved()["sharding"]
    by_table = _by_table(placing)
    copied = [table.name for table in placing.scenario.step.placed.replicated]
    whole: dict[str, tuple[Part, list[str]]] = {}
    rules: list[Part] = []
    for name, pieces in by_table.items():
        tier = _spec_of(own, name).get("tier", "dram")
        kind = _kind(pieces, tier, placing.placement.chips.count)
        if kind["kind"] == "table_wise":
            whole.setdefault(repr(kind), (kind, []))[1].append(name)
        else:
            rules.append(_rule([name], kind))
    ordered = sorted(whole.values(), key=lambda one: int(one[0]["rank"]))
    rules += [_rule(names, kind) for kind, names in ordered]
    rules += [_rule(copied, {"kind": "data_parallel"})] if copied else []
    kept = [name for name in ("exchange", "replicas", "stacks") if own.get(name) is not None]
    return _mixture(rules, {name: own[name] for name in kept})


def torchrec_part(plan: TorchRecPlan) -> Part:
    """Return the sharding part that says what a TorchRec plan says, as far as we know its kernels."""
    return _mixture([_rule([table.name], _imported(table, plan.ranks)) for table in plan.tables], {})


def written(part: Part, title: str) -> str:
    """Return a part as YAML text below a comment that says what it is."""
    import yaml

    body = str(yaml.safe_dump(part, sort_keys=False, default_flow_style=None, width=100))
    or_else = ', or on the command line: --set "sharding=$(cat FILE)"' if len(body) < SET_LIMIT else ""
    return f"# {title}\n# Use it as the `sharding` part of a scenario{or_else}\n{body}"


def exported(placing: Placing) -> TorchRecPlan:
    """Return a placement as a TorchRec plan, tables that every rank holds included.

    Raises InputError when hosts of the replica group are not filled.
    """
    step, own = placing.scenario.step, placing.scenario.resolved()["sharding"]
    plan = TorchRecPlan.of(placing.placement, step.placed.world.neighbours)
    everyone = tuple(range(placing.placement.chips.count))
    owned = [replace(one, kernel=_kernel(_spec_of(own, one.name).get("tier"))) for one in plan.tables]
    copies = [TorchRecTable("", one.name, REPLICATED, "dense", everyone) for one in step.placed.replicated]
    return TorchRecPlan((*owned, *copies))


def oddities(plan: TorchRecPlan) -> Iterator[str]:
    """Yield what is unusual about a plan, or what it leaves open, one sentence each."""
    unusual = plan.unusual()
    if unusual:
        yield f"row-wise, but not one block on every rank in order: {', '.join(unusual)}"
    for table in plan.tables:
        yield from _odd(table)
    busy = {rank for table in plan.tables for rank in table.ranks}
    idle = [rank for rank in range(plan.ranks) if rank not in busy]
    if idle:
        yield f"ranks without any table: {spans(idle)}"
    cached = [one.name for one in plan.tables if isinstance(KERNEL_TIERS.get(one.kernel), dict)]
    if cached:
        yield f"the plan does not say how many rows are cached, {CACHED_SHARE:.0%} is assumed: " + ", ".join(
            cached
        )


def _odd(table: TorchRecTable) -> Iterator[str]:
    if table.size is not None:
        rows, columns = table.size
        held = sum(shard.rows.size * shard.columns.size for shard in table.shards)
        if held != rows * columns:
            yield f'the shards of "{table.name}" hold {held / (rows * columns):.4g} of its values'
    if {shard.rank for shard in table.shards} - set(table.ranks):
        yield f'"{table.name}" has shards on ranks that its list of ranks lacks'
    if table.kernel not in {*KERNEL_TIERS, "dense", "fused", "quant"}:
        yield f'"{table.name}" has the unknown compute kernel "{table.kernel}": device memory is assumed'


def spans(numbers: Sequence[int]) -> str:
    """Return rising whole numbers in short: `0-3,7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _by_table(placing: Placing) -> dict[str, list[tuple[Shard, int]]]:
    found: dict[str, list[tuple[Shard, int]]] = {}
    placement = placing.placement
    for shard, chip in zip(placement.shards, placement.chip_of, strict=True):
        found.setdefault(shard.table, []).append((shard, chip))
    return found


def _spec_of(sharding: Part, table: str) -> Part:
    """Return the part of a resolved sharding part that is about `table`."""
    for rule in sharding.get("rules", ()):
        if any(fnmatchcase(table, pattern) for pattern in rule["tables"]):
            return dict(rule["sharding"])
    return dict(sharding.get("default", sharding))


def _kind(pieces: Sequence[tuple[Shard, int]], tier: Any, chips: int) -> Part:
    rows = max(shard.rows.start + shard.rows.size for shard, _ in pieces)
    width = max(shard.columns.start + shard.columns.size for shard, _ in pieces)
    places = [(chip, shard.columns.of(width), shard.rows.of(rows)) for shard, chip in pieces]
    if sorted(chip for chip, _, _ in places) == list(range(chips)) and _alike([n for _, _, n in places]):
        return {"kind": "row_wise", "tier": tier}
    return _placed(places, tier)


def _alike(shares: Sequence[float]) -> bool:
    return max(shares) < 1.0 and max(shares) - min(shares) <= NEARLY * max(shares)


def _placed(places: Iterable[tuple[int, float, float]], tier: Any) -> Part:
    """Return the kind that puts shares (rank, columns, rows) of a table where they are said to be."""
    parts = sorted(places)
    if len(parts) == 1:
        return {"kind": "table_wise", "rank": parts[0][0], "tier": tier}
    return {"kind": "placed", "tier": tier, "parts": [_share(*part) for part in parts]}


def _share(rank: int, columns: float, rows: float) -> Part:
    """Return one part; a share of 1 is the default and not written."""
    shares = {"columns": columns, "rows": rows}
    return {"rank": rank, **{name: share for name, share in shares.items() if share != 1.0}}


def _rule(names: Sequence[str], kind: Part) -> Part:
    return {"tables": [escape(name) for name in names], "sharding": kind}


def _mixture(rules: list[Part], more: Part) -> Part:
    tiers = (rule["sharding"]["tier"] for rule in rules if "tier" in rule["sharding"])
    rest = {"kind": "row_wise", "tier": next(tiers, "hbm")}
    return {"kind": "mixture", **more, "default": rest, "rules": rules}


def _imported(table: TorchRecTable, ranks: int) -> Part:
    tier = KERNEL_TIERS.get(table.kernel, "hbm")
    if table.sharding == REPLICATED or table.size is None:
        return {"kind": "data_parallel"}
    if table.sharding == "row_wise" and list(table.ranks) == list(range(ranks)):
        return {"kind": "row_wise", "tier": tier}
    rows, width = table.size
    places = ((one.rank, one.columns.of(width), one.rows.of(rows)) for one in table.shards if one.rows.size)
    return _placed(places, tier)


def _kernel(tier: Any) -> str:
    """Return TorchRec's kernel for rows in a tier of a resolved scenario."""
    if isinstance(tier, dict):
        return "fused_uvm_caching"
    return {"dram": "fused_uvm", "ssd": "key_value"}.get(str(tier), "fused")
