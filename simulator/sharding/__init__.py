"""Who owns which rows, and what a step therefore asks of each rank."""

from simulator.sharding.exchange import Exchange, RowExchange
from simulator.sharding.kinds import (
    ColumnWise,
    DataParallel,
    Grid,
    Kind,
    Part,
    Placed,
    RowWise,
    TableRowWise,
    TableWise,
)
from simulator.sharding.load import PairTraffic, RankLoad
from simulator.sharding.micro import MicroStep
from simulator.sharding.plan import PlacedPlan, Replicas, Rule, ShardingPlan
from simulator.sharding.pooled import PooledExchange
from simulator.sharding.stacks import Stacks
from simulator.sharding.step import TrainStep
from simulator.sharding.tiers import Dram, Hbm, HbmCache, Remote, Ssd, Tier
from simulator.sharding.traffic import Traffic

__all__ = [
    "ColumnWise",
    "DataParallel",
    "Dram",
    "Exchange",
    "Grid",
    "Hbm",
    "HbmCache",
    "Kind",
    "MicroStep",
    "PairTraffic",
    "Part",
    "Placed",
    "PlacedPlan",
    "PooledExchange",
    "RankLoad",
    "Remote",
    "Replicas",
    "RowExchange",
    "RowWise",
    "Rule",
    "ShardingPlan",
    "Ssd",
    "Stacks",
    "TableRowWise",
    "TableWise",
    "Tier",
    "Traffic",
    "TrainStep",
]
