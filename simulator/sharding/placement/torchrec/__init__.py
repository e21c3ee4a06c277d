"""TorchRec's sharding plans: read, judged by our loads, written."""

from simulator.sharding.placement.torchrec.files import parsed, read_torchrec_plan, write_torchrec_plan
from simulator.sharding.placement.torchrec.plan import TorchRecPlan, TorchRecShard, TorchRecTable
from simulator.sharding.placement.torchrec.printed import to_printed
from simulator.sharding.placement.torchrec.serialized import to_json

__all__ = [
    "TorchRecPlan",
    "TorchRecShard",
    "TorchRecTable",
    "parsed",
    "read_torchrec_plan",
    "to_json",
    "to_printed",
    "write_torchrec_plan",
]
