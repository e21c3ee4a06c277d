"""From a placement to a sharding plan that a run can use."""

from glob import escape

from simulator.sharding.kinds import DataParallel, Kind, Part, Placed, RowWise
from simulator.sharding.placement.placed import Placement
from simulator.sharding.placement.shard import Shard
from simulator.sharding.plan import Rule, ShardingPlan


def as_sharding_plan(placement: Placement, tier: str = "dram") -> ShardingPlan:
    """Return the plan in which every table lies as placed, its rows in `tier`; copies live in hbm.

    A row piece is taken as a share of hashed rows: which rows it holds, and where the hottest one is,
    is not carried over. Raises InputError for an unknown tier, or pieces that leave a part of a table out.
    """
    by_table: dict[str, list[tuple[Shard, int]]] = {}
    for shard, chip in zip(placement.shards, placement.chip_of, strict=True):
        by_table.setdefault(shard.table, []).append((shard, chip))
    rules = tuple(Rule((escape(name),), _kind(pieces, tier)) for name, pieces in by_table.items())
    return ShardingPlan(RowWise(tier), rules)


def _kind(pieces: list[tuple[Shard, int]], tier: str) -> Kind:
    if pieces[0][0].copies > 1:
        return DataParallel()
    rows = max(shard.rows.start + shard.rows.size for shard, _ in pieces)
    width = max(shard.columns.start + shard.columns.size for shard, _ in pieces)
    parts = (Part(chip, shard.columns.of(width), shard.rows.of(rows)) for shard, chip in pieces)
    return Placed(tier, parts=tuple(parts))
