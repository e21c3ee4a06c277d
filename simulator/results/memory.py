"""Peak memory of one rank: what must be held at once, item by item, and whether it fits.

It is read off a timeline, and exact for that schedule.
"""

from dataclasses import dataclass, field

import numpy as np

from simulator.errors import InfeasibleError
from simulator.hardware import Cluster
from simulator.results.in_flight import SENDING, Holding, holdings, peak
from simulator.results.resident import CACHE, COPIES, TABLES, Resident, largest_table
from simulator.results.timeline import Timeline
from simulator.sharding import TrainStep
from simulator.sharding.load import per_rank

GIB = 2.0**30
MEMORIES = ("hbm", "host", "ssd")


@dataclass(frozen=True)
class Memory:
    """Bytes per rank by item, in device memory (`hbm`), its share of host memory, and of host disks.

    `rank` is the fullest rank of each memory (left out where all are alike), `table` its largest table
    with its bytes, `batches` how many batches have something there at the peak.
    """

    hbm: dict[str, float]
    host: dict[str, float]
    ssd: dict[str, float] = field(default_factory=dict)
    rank: dict[str, int] = field(default_factory=dict)
    table: dict[str, tuple[str, float]] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)

    def totals(self) -> dict[str, float]:
        """Return the sums, as the report prints them."""
        return {"hbm": sum(self.hbm.values()), "host": sum(self.host.values())}


def scheduled_memory(step: TrainStep, timeline: Timeline, micro_batches: int) -> Memory:
    """Return the peak of the fullest rank for batches computed in `micro_batches` parts."""
    resident, held = Resident.of(step), holdings(step, timeline.graph.pipeline, micro_batches)
    rank = {memory: _fullest(step, resident, held, memory) for memory in MEMORIES}
    items: dict[str, dict[str, float]] = {}
    batches: dict[str, int] = {}
    for memory in MEMORIES:
        moment = peak(timeline, [one for one in held if one.memory == memory], rank[memory])
        items[memory] = {**resident.at(memory, rank[memory], step.ranks), **moment.items}
        batches[memory] = moment.batches
    items["hbm"] |= timeline.graph.pipeline.caches
    apart, tables = _told_apart(step, resident, rank), _tables(step, rank)
    return Memory(items["hbm"], items["host"], items["ssd"], apart, tables, batches)


def _fullest(step: TrainStep, resident: Resident, held: tuple[Holding, ...], memory: str) -> int:
    """Return the rank with most in a memory, one of each buffer counted."""
    total = np.zeros(step.ranks)
    for size in resident.items[memory].values():
        total += per_rank(size, step.ranks)
    for one in held:
        if one.memory == memory:
            total += per_rank(one.bytes, step.ranks)
    return int(np.argmax(total))


def _told_apart(step: TrainStep, resident: Resident, rank: dict[str, int]) -> dict[str, int]:
    uneven = np.ndim(step.traffic.bytes_owned) > 0
    return {
        memory: one
        for memory, one in rank.items()
        if uneven or any(np.ndim(size) > 0 for size in resident.items[memory].values())
    }


def _tables(step: TrainStep, rank: dict[str, int]) -> dict[str, tuple[str, float]]:
    if len(step.workload.tables) == 1:
        return {}
    return {memory: largest_table(step, memory, one) for memory, one in rank.items()}


def shortage(memory: Memory, cluster: Cluster) -> float:
    """Return by how many bytes the memory that is shortest falls short; 0 when all fits."""
    return max((need - have for need, have in _needs(memory, cluster).values()), default=0.0)


def _needs(memory: Memory, cluster: Cluster) -> dict[str, tuple[float, float]]:
    have = {"hbm": cluster.hbm_bytes, "host": cluster.dram_bytes_per_rank, "ssd": cluster.ssd_bytes_per_rank}
    return {name: (sum(getattr(memory, name).values()), have[name]) for name in MEMORIES}


def check_fits(memory: Memory, cluster: Cluster, way_out: str | None = None) -> None:
    """Raise InfeasibleError naming rank, largest item and table, and the shortage, when it does not fit.

    `way_out` says what would fit (default: general advice on the largest item).
    """
    for tier, (need, have) in _needs(memory, cluster).items():
        if need > have:
            raise InfeasibleError(_shortage(memory, tier, (need, have), way_out))


ADVICE = {
    ("hbm", "activations"): "recompute layers, use more micro-batches or a smaller batch",
    ("hbm", TABLES): "cut tables finer (sharding.kind), or put them in host memory (sharding.tier: dram)",
    ("hbm", "row buffers"): "use a smaller batch or fewer row buffers",
    ("hbm", COPIES): "let fewer tables be data_parallel",
    ("hbm", "rows kept on the device"): "use a smaller batch, or let the policy keep fewer rows",
    ("hbm", SENDING): "use a smaller batch, or let more ranks own a table's rows (sharding.kind: row_wise)",
    ("hbm", CACHE): "cut tables finer, or cache a smaller share of their rows",
    ("host", TABLES): "cut tables finer (sharding.kind), or take hosts with more memory",
    ("ssd", TABLES): "cut tables finer (sharding.kind), or give the disks' size (cluster.host.ssd_bytes)",
}
DEFAULT_ADVICE = "use a smaller batch"
NAMES = {"hbm": "device memory", "host": "host memory per rank", "ssd": "disk per rank"}


def general_advice(memory: Memory, cluster: Cluster) -> str:
    """Return what helps against the largest item of the first memory that does not suffice."""
    short = [tier for tier, (need, have) in _needs(memory, cluster).items() if need > have]
    if not short:
        return DEFAULT_ADVICE
    items = getattr(memory, short[0])
    return ADVICE.get((short[0], max(items, key=lambda name: items[name])), DEFAULT_ADVICE)


def _shortage(memory: Memory, tier: str, bytes_: tuple[float, float], way_out: str | None) -> str:
    (need, have), items = bytes_, getattr(memory, tier)
    largest = max(items, key=lambda name: items[name])
    who = f"rank {memory.rank[tier]}" if tier in memory.rank else "every rank"
    table, size = memory.table.get(tier, ("", 0.0))
    which = f' (table "{table}": {size / GIB:.1f} GiB)' if largest in (TABLES, COPIES) and size else ""
    advice = ADVICE.get((tier, largest), DEFAULT_ADVICE)
    return (
        f"does not fit in {NAMES[tier]}: {who} needs {need / GIB:.1f} GiB and has {have / GIB:.1f} GiB, "
        f"{(need - have) / GIB:.1f} GiB short; the largest item is {largest} "
        f"with {items[largest] / GIB:.1f} GiB{which}: {way_out or advice}"
    )
