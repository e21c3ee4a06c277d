"""How well a scenario scales, from its critical cycles alone."""

from simulator.errors import RecscaleError
from simulator.scenario import Run
from simulator.scenario.nominal import nominal_bottleneck


def against_one_host(run: Run) -> float | None:
    """Return throughput per worker over that of a single host, or None for a single host.

    The single host is not simulated: its critical cycle stands for its step, and it may have less
    memory than the job needs. None as well where the cluster has no smaller form (some tori).
    """
    cluster = run.scenario.cluster
    if cluster.hosts == 1:
        return None
    try:
        alone = nominal_bottleneck(run.scenario.with_workers(cluster.per_host)).period_ns
    except RecscaleError:
        return None
    return float(alone) / float(run.bottleneck.period_ns) if run.bottleneck.period_ns else None
