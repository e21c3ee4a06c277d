"""Whether a policy can run on the hardware and the sharding of a scenario at all."""

from simulator.errors import InfeasibleError, InputError
from simulator.hardware import Cluster
from simulator.policies.base import REQUIREMENTS, Policy
from simulator.scenario.server_notes import check_servers_hold
from simulator.sharding import TrainStep


def check_applicable(policy: Policy, cluster: Cluster, step: TrainStep) -> None:
    """Raise InfeasibleError naming what `policy` needs and the scenario has not, or servers too small.

    Raises InputError where a policy needs something that nobody knows, and where a batch has fewer
    samples than its micro-batches.
    """
    check_servers_hold(cluster, step)
    met = _met(cluster, step)
    for need in getattr(policy, "needs", ()):
        if need not in REQUIREMENTS:
            raise InputError(f'the policy needs "{need}", which is none of {", ".join(REQUIREMENTS)}')
        if not met[need]:
            raise InfeasibleError(f"not applicable here: the policy needs {REQUIREMENTS[need]}")
    parts, batch = getattr(policy, "micro_batches", 1), step.workload.batch
    if parts > batch:
        raise InputError(f"{parts} micro-batches are more than the {batch} samples of a batch")


def _met(cluster: Cluster, step: TrainStep) -> dict[str, bool]:
    return {
        "sparse_cores": cluster.accelerator.sparse_cores > 0,
        "servers": "parameter_server" in {home.stage_kind for home in step.traffic.by_tier},
        "replicas": step.placed.world.replicas > 1,
    }
