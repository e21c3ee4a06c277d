"""From a run to the report that scripts and people read."""

import numpy as np

from simulator.costs.lanes import MESSAGE_BY_MESSAGE
from simulator.policies.base import weaker
from simulator.quantities import AllToAllWork, HoldWork, leaves
from simulator.results.copies import declared_steps
from simulator.results.report import EXPOSED_KINDS, RAW_KINDS, StepReport, percentiles
from simulator.results.tables import counted_cycles, first_start_ns
from simulator.scenario.beyond import beyond_measurements
from simulator.scenario.busy import busy_shares, overbooked, sharing_binds
from simulator.scenario.collective_rows import collective_rows
from simulator.scenario.interval import step_interval
from simulator.scenario.priced import unlike_priced
from simulator.scenario.scenario import Scenario
from simulator.scenario.server_notes import busiest_server
from simulator.scenario.simulate import Run
from simulator.scenario.unused import unused

ABSURD = 100  # steps that take so many times their compute are told with a note


def make_report(run: Run) -> StepReport:
    """Return the report of `run`."""
    scenario, breakdown = run.scenario, run.breakdown
    mean_ns, interference = breakdown.step_ns, _interference_ms(run)
    return StepReport(
        scenario=scenario.name,
        engine=run.timeline.engine,
        seed=scenario.spec.run.seed,
        ranks=scenario.cluster.ranks,
        batches=run.timeline.batches,
        fidelity=_fidelity(run),
        consistency=weaker(scenario.policy.consistency, scenario.step.consistency),
        step_ms=percentiles(run.step_ns),
        latency_ms=_latency_ms(run),
        throughput_samples_per_s=scenario.cluster.ranks * scenario.workload.batch / (mean_ns / 1e9),
        raw_ms=_raw_ms(run),
        compute_ms=breakdown.compute_ns / 1e6,
        exposed_ms=_without_peers(
            run, {kind: breakdown.exposed_ns.get(kind, 0.0) / 1e6 for kind in EXPOSED_KINDS}
        ),
        interference_ms=sum(interference.values()),
        busy_share=busy_shares(run),
        staleness_steps=_staleness(run),
        updates=_updates(run),
        peak_memory_bytes=run.memory.totals(),
        collectives=collective_rows(run.timeline.graph, scenario.costs),
        lower_bound_ms=run.lower_bound_ns / 1e6,
        bottleneck=_once(run.pace.stages) if run.timeline.graph.period > 1 else run.pace.stages,
        extrapolated=beyond_measurements(run),
        interval_ms=step_interval(run),
        cost=cost(scenario, mean_ns / 1e9),
        events=run.timeline.events,
        notes=notes(run),
        interference_by_stage_ms=interference,
    )


def _once(stages: list[str]) -> list[str]:
    """Of a cycle through many batches, each stage once, in order of its first appearance."""
    return list(dict.fromkeys(stages))


def _fidelity(run: Run) -> str:
    """Say how ranks were carried and how the network was modelled."""
    kept = _kept(run) + _followed(run)
    if run.timeline.engine == "events" and run.scenario.spec.run.contention:
        weights = f"each {run.scenario.spec.run.weights} weighing the same"
        shared = f"stages of a rank share its resources{_hosts(run)}, collectives the network, max-min"
        return f"{kept}; {shared}, {weights}"
    return f"{kept}; nothing is shared between stages, ranks or collectives: an estimate where they meet"


def _followed(run: Run) -> str:
    """Say so where an uneven exchange has too many ranks for its messages to be followed."""
    if run.timeline.ranks <= MESSAGE_BY_MESSAGE:
        return ""
    works = (leaf for node in run.timeline.graph.nodes for leaf in leaves(node.stage.work))
    uneven = any(
        float(np.ptp(amount)) > 0.0
        for work in works
        if isinstance(work, AllToAllWork)
        for amount in (work.bytes, work.received_bytes)
        if amount is not None
    )
    return "; uneven exchanges last as long as their busiest link, for all ranks" if uneven else ""


def _hosts(run: Run) -> str:
    """Say whether ranks share their host: classes of nearly alike ranks know nothing of hosts."""
    if run.durations.longer is not None:
        return ", no host (each rank keeps its even part of it)"
    return ", unlike ranks their host" if run.hosts_shared else ""


def _kept(run: Run) -> str:
    """Say which ranks were carried together."""
    columns, ranks, longer = run.timeline.end_ns.shape[2], run.timeline.ranks, run.durations.longer
    if longer is not None:
        return (
            f"{ranks} ranks in {columns} classes of nearly alike ones, each with its longest durations: "
            f"where nothing is shared, no step comes out shorter, and none more than {longer:.2%} longer"
        )
    return "each rank apart" if columns == ranks else f"{ranks} ranks folded exactly into {columns}"


def _waits(run: Run) -> list[str]:
    """Return whether a step is so much longer than its compute that no training would be run like this."""
    step, compute = run.breakdown.step_ns / 1e6, _raw_ms(run)["compute"]
    if not compute or step <= ABSURD * compute:
        return []
    exposed = run.breakdown.exposed_ns
    kind = max(exposed, key=lambda one: exposed[one]).replace("_", "-")
    return [
        f"the step takes {step / compute:,.0f} times its compute, most of it waiting for {kind}: no measured "
        "training waits like this, so read it as a setup that does not suit, not as a time"
    ]


def _pace(run: Run) -> list[str]:
    """Say which of unlike hosts end a step last: theirs are the times of the report."""
    cluster = run.scenario.cluster
    if cluster.kind_of is None:
        return []
    place = int(cluster.kind_of[run.timeline.rank_of(run.column)])
    group = cluster.groups[place]
    return [
        f"hosts differ: those of groups[{place}] ({group.hosts} with {group.accelerator.name}) end a step "
        "last, times are theirs; links are the slowest of all groups, memories the smallest"
    ]


def _latency_ms(run: Run) -> float:
    """Mean time from a batch's first stage to its update, on the slowest rank."""
    updates = run.timeline.update_ns[run.first : run.last, run.column]
    begun = first_start_ns(run.timeline, run.column)[run.first : run.last]
    return float(np.mean(updates - begun)) / 1e6


def _raw_ms(run: Run) -> dict[str, float]:
    """Time of all stages of a kind per batch on the slowest rank, hidden or not."""
    total: dict[str, float] = dict.fromkeys(RAW_KINDS, 0.0)
    graph = run.timeline.graph
    window = counted_cycles(run.timeline, run.first, run.last)
    for index, node in enumerate(graph.nodes):
        total[node.stage.kind] += run.timeline.duration_ns[index, window, run.column].mean() / graph.period
    return _without_peers(run, {kind: float(total[kind]) / 1e6 for kind in RAW_KINDS})


def _without_peers(run: Run, by_kind: dict[str, float]) -> dict[str, float]:
    """Return times by kind; a rank that owns all rows exchanges none, it sorts keys and looks rows up."""
    if run.scenario.step.placed.world.members > 1:
        return by_kind
    return {**by_kind, "lookup": by_kind["lookup"] + by_kind["all_to_all"], "all_to_all": 0.0}


def _interference_ms(run: Run) -> dict[str, float]:
    """Return what sharing cost per batch on the slowest rank, by stage, where it cost anything."""
    graph, window = run.timeline.graph, counted_cycles(run.timeline, run.first, run.last)
    slowed = run.timeline.slowed_ns[:, window, run.column].mean(axis=1)
    found: dict[str, float] = {}
    for node, cost in zip(graph.nodes, slowed, strict=True):
        if cost > 0:
            found[node.name] = found.get(node.name, 0.0) + float(cost) / graph.period / 1e6
    return found


def _staleness(run: Run) -> dict[str, float | None]:
    seen, pipeline = run.staleness, run.timeline.graph.pipeline
    return {
        "declared": declared_steps(run.scenario.policy.staleness_steps, run.scenario.step, pipeline),
        "observed_max": seen.observed_max if seen else None,
        "observed_mean": seen.observed_mean if seen else None,
    }


def _updates(run: Run) -> dict[str, float | None]:
    fate = run.updates
    return {
        "lost_share": fate.lost_share if fate else None,
        "duplicated_share": fate.duplicated_share if fate else None,
    }


def cost(scenario: Scenario, step_s: float) -> dict[str, float] | None:
    """Return what a sample costs at so many seconds a step, where the catalog knows a price or a power."""
    cluster = scenario.cluster
    samples_per_s = cluster.ranks * scenario.workload.batch / step_s
    found = {}
    if cluster.price_usd_per_hour is not None:
        found["usd_per_million_samples"] = cluster.price_usd_per_hour / 3600 / samples_per_s * 1e6
    if cluster.power_watts is not None:
        found["joules_per_sample"] = cluster.power_watts / samples_per_s
    return found or None


def notes(run: Run) -> list[str]:
    """Return what must be said beside the numbers: measured times that no resource explains.

    They are sums over the stages of a batch, hidden or not, and may exceed the step.
    """
    graph = run.timeline.graph
    held: dict[tuple[str, str], float] = {}
    for node in graph.nodes:
        for part in leaves(node.stage.work):
            if isinstance(part, HoldWork):
                key = node.stage.kind.replace("_", "-"), part.why
                held[key] = held.get(key, 0.0) + float(np.max(part.seconds)) * 1e3 / graph.period
    explained = [
        f"{ms:,.{0 if ms >= 100 else 1}f} ms of each batch's {kind}, hidden or not, is {why}"
        for (kind, why), ms in held.items()
    ]
    slowed_ms = sum(_interference_ms(run).values()) if run.shares else 0.0
    said = _waits(run) + _pace(run) + overbooked(run) + sharing_binds(run, slowed_ms)
    said += busiest_server(graph) + unused(run.scenario)
    said += getattr(run.scenario.policy, "remarks", ())
    said += unlike_priced(run.scenario.spec.cluster, run.scenario.cluster)
    return explained + said + assumptions(run.scenario)


def assumptions(scenario: Scenario) -> list[str]:
    """Return what was left out of the scenario and taken to be free or perfect."""
    spec, found = scenario.spec, []
    if spec.workload.input is None:
        found.append("no input pipeline is given: reading and preparing samples costs nothing")
    found += spec.workload.disagreements()
    wires = spec.cluster.fabric
    if wires is not None and not isinstance(wires, str) and wires.is_perfect:
        found.append("no efficiency is given for the fabric: its links run at their nominal rate")
    return found
