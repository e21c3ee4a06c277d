"""What the input pipeline does to a batch on host cores."""

from simulator.quantities import CpuWork, InTurn, Work
from simulator.sharding.step import TrainStep
from simulator.workload.clustering import clustering_cpu_seconds


def read_samples(step: TrainStep, parts: int = 1) -> Work:
    """Return the reading and preparing of a batch, and its clustering into `parts` micro-batches.

    One batch is clustered on one core; loaders of several batches share a rank's cores, so its core
    seconds count like those of preparing samples.
    """
    workload = step.workload
    if parts == 1 or not workload.input.clusters:
        return step.read
    regrouping = clustering_cpu_seconds(workload.batch, workload.keys_per_sample, parts)
    return InTurn((step.read, CpuWork(regrouping)))
