"""Whether a scenario can run, and what was understood of it: all checks, no simulation."""

from collections.abc import Iterator

from analysis.times import duration
from simulator.scenario import Scenario
from simulator.scenario.bounds import STILL, every_rank
from simulator.scenario.simulate import check_window, checked_memory
from simulator.units import format_bytes


def check(scenario: Scenario) -> list[tuple[str, str]]:
    """Return what was understood, as pairs of a name and a text.

    Raises InputError and InfeasibleError as a run would: world sizes, memory, deadlocks, warm-up.
    """
    memory = checked_memory(scenario).totals()
    check_window(scenario)
    return [
        ("scenario", f"{scenario.name} (hash {scenario.hash})"),
        ("cluster", _cluster(scenario)),
        ("workload", _workload(scenario)),
        ("tables", _tables(scenario)),
        ("policy", _policy(scenario)),
        ("pipeline", _pipeline(scenario)),
        ("memory", "; ".join(_memory(scenario, memory))),
        ("run", _run(scenario)),
    ]


def _cluster(scenario: Scenario) -> str:
    cluster = scenario.cluster
    hosts = "1 host" if cluster.hosts == 1 else f"{cluster.hosts:,} hosts"
    machines = f"{hosts} ({cluster.host.name}) with {cluster.per_host} x {cluster.accelerator.name}"
    return f"{machines}: {cluster.ranks:,} workers"


def _workload(scenario: Scenario) -> str:
    workload, ranks = scenario.workload, scenario.cluster.ranks
    dense = workload.model.quantities()
    per_sample = (dense.forward_flops + dense.backward_flops) / 1e9
    return (
        f"{scenario.spec.workload.model.kind}, {dense.parameters:,.0f} dense parameters, "
        f"{per_sample:,.4g} GFLOP per sample; batch {workload.batch:,} per worker, "
        f"{workload.batch * ranks:,} in all"
    )


def _tables(scenario: Scenario) -> str:
    tables = scenario.workload.tables
    rows, size = sum(table.rows for table in tables), sum(table.bytes for table in tables)
    count = "1 table" if len(tables) == 1 else f"{len(tables)} tables"
    where = " and ".join(dict.fromkeys(_where(scenario)))
    keys = scenario.workload.keys_per_sample
    return f"{count}, {rows:,.4g} rows, {format_bytes(size)} in {where}; {keys:,.6g} keys per sample"


def _where(scenario: Scenario) -> Iterator[str]:
    """Name the memories that hold rows, table by table."""
    placed = scenario.step.placed
    for shard in placed.shards:
        yield shard.piece.kind.home.noun
    if placed.replicated:
        yield "the device memory of every worker"


def _policy(scenario: Scenario) -> str:
    parts = scenario.spec.policy.model_dump(mode="json")
    stated = ", ".join(f"{name} {_short(value)}" for name, value in parts.items() if name != "kind")
    promise = scenario.policy.consistency
    return f"{parts['kind']}{f' ({stated})' if stated else ''}: {promise}"


def _short(value: object) -> str:
    return str(value.get("kind")) if isinstance(value, dict) else str(value)


def _pipeline(scenario: Scenario) -> str:
    pipeline = scenario.graph.pipeline
    deepest = max(stage.ahead for stage in pipeline.stages)
    ahead = {0: "one batch at a time", 1: "up to 1 batch ahead"}.get(
        deepest, f"up to {deepest} batches ahead"
    )
    slowest = duration(float(every_rank(scenario, 1, STILL).nominal_ns.max()) / 1e6)
    return (
        f"{len(pipeline.stages)} stages on {len(pipeline.streams)} streams, {ahead}; no deadlock, "
        f"no unbounded queue; the longest stage takes {slowest}"
    )


def _memory(scenario: Scenario, need: dict[str, float]) -> Iterator[str]:
    """Yield what each worker needs of each memory, and what it has."""
    cluster = scenario.cluster
    have = {"hbm": cluster.hbm_bytes, "host": cluster.dram_bytes_per_rank}
    for name, words in (("hbm", "device memory"), ("host", "host memory")):
        yield f"{format_bytes(need[name])} of {format_bytes(have[name])} {words} per worker"


def _run(scenario: Scenario) -> str:
    settings = scenario.spec.run
    varied = [kind for kind, spread in settings.jitter if spread]
    jitter = f"jitter on {', '.join(varied)}" if varied else "no jitter"
    counted = f"{settings.batches:,} batches, the first {settings.warm_up:,} not counted"
    return f"{counted}; seed {settings.seed}; {jitter}"
