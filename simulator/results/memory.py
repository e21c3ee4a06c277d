"""Peak memory of one rank: what must be held at once, item by item."""

from dataclasses import dataclass

from simulator.errors import InfeasibleError
from simulator.hardware import Cluster
from simulator.pipeline import Pipeline, Stage
from simulator.sharding import TrainStep

GIB = 2.0**30


@dataclass(frozen=True)
class Memory:
    """Bytes per rank by item, in device memory (`hbm`) and in its share of host memory (`host`)."""

    hbm: dict[str, float]
    host: dict[str, float]

    def totals(self) -> dict[str, float]:
        """Return the sums, as the report prints them."""
        return {"hbm": sum(self.hbm.values()), "host": sum(self.host.values())}


def peak_memory(step: TrainStep, pipeline: Pipeline, micro_batches: int) -> Memory:
    """Return the peak for batches that are computed in `micro_batches` parts, one after the other.

    Row buffers and inputs are counted for as many batches as the pipeline holds at once.
    """
    hbm = {**_dense_state(step), **_activations(step, micro_batches), **_rows(step, pipeline)}
    host: dict[str, float] = {}
    tables = hbm if step.plan.tier == "hbm" else host
    tables["embedding tables and their optimizer state"] = _table_bytes(step) / step.ranks
    inputs = step.workload.batch * step.workload.input_bytes_per_sample
    host["input batches"] = inputs * (1 + _deepest(pipeline, ("read",)))
    return Memory(hbm, host)


def _dense_state(step: TrainStep) -> dict[str, float]:
    values = 2 + step.workload.optimizer.dense_state  # parameter and gradient, both kept in fp32
    return {
        "dense parameters, gradients, optimizer state": 4
        * values
        * step.workload.model.quantities().parameters
    }


def _activations(step: TrainStep, micro_batches: int) -> dict[str, float]:
    dense, samples = step.workload.model.quantities(), step.workload.batch / micro_batches
    return {"activations": samples * (dense.activation_bytes + dense.peak_layer_bytes)}


def _rows(step: TrainStep, pipeline: Pipeline) -> dict[str, float]:
    """Owned rows wait in buffers; exchanged rows and their gradients exist twice at the source."""
    slots = max([buffer.slots for buffer in pipeline.buffers], default=1 + _deepest(pipeline, ("retrieve",)))
    inputs = (
        step.workload.batch * step.workload.input_bytes_per_sample * (1 + _deepest(pipeline, ("inputs",)))
    )
    return {
        "row buffers": slots * step.traffic.bytes_owned,
        "exchanged rows and gradients": 2 * step.traffic.row_bytes_received,
        "input batches": inputs,
    }


def _deepest(pipeline: Pipeline, names: tuple[str, ...]) -> int:
    return max((stage.ahead for stage in _named(pipeline, names)), default=0)


def _named(pipeline: Pipeline, names: tuple[str, ...]) -> list[Stage]:
    return [stage for stage in pipeline.stages if stage.name in names]


def _table_bytes(step: TrainStep) -> float:
    state = 4 * step.workload.optimizer.row_state
    return sum(table.bytes + state * table.rows for table in step.workload.tables)


def check_fits(memory: Memory, cluster: Cluster) -> None:
    """Raise InfeasibleError naming the largest item and the shortage when a rank's memory is too small."""
    sizes = {"hbm": cluster.accelerator.hbm_bytes, "host": cluster.dram_bytes_per_rank}
    for tier, items in (("hbm", memory.hbm), ("host", memory.host)):
        need, have = sum(items.values()), sizes[tier]
        if need > have:
            raise InfeasibleError(_shortage(tier, items, need, have))


ADVICE = {
    "activations": "recompute layers, use more micro-batches or a smaller batch",
    "embedding tables and their optimizer state": "use more workers, or host memory (sharding.tier: dram)",
    "row buffers": "use a smaller batch or fewer row buffers",
}


def _shortage(tier: str, items: dict[str, float], need: float, have: float) -> str:
    largest = max(items, key=lambda name: items[name])
    name = {"hbm": "device memory", "host": "host memory per rank"}[tier]
    advice = ADVICE.get(largest, "use more workers or a smaller batch")
    return (
        f"does not fit in {name}: every rank needs {need / GIB:.1f} GiB and has {have / GIB:.1f} GiB, "
        f"{(need - have) / GIB:.1f} GiB short; the largest item is {largest} "
        f"with {items[largest] / GIB:.1f} GiB: {advice}"
    )
