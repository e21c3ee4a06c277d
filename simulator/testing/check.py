"""The check itself: every part of the contract, on several steps, machines and slow stages."""

from collections.abc import Iterator

import numpy as np

from simulator.costs import CostModel
from simulator.engine import Durations, Variation, tabulate
from simulator.engine.events import run_events
from simulator.engine.recurrence import run_recurrence
from simulator.errors import RecscaleError
from simulator.pipeline import MarkedGraph, Pipeline, compile_pipeline
from simulator.policies.base import CONSISTENCY, Policy
from simulator.results.conservation import conserved
from simulator.results.exposed import break_down
from simulator.results.key_classes import Reuse, longest_gap
from simulator.results.memory import scheduled_memory
from simulator.results.staleness import observe, readers
from simulator.results.timeline import Timeline
from simulator.sharding import TrainStep
from simulator.testing.error import PolicyError
from simulator.testing.examples import example_clusters, example_steps
from simulator.testing.movement import check_movement, parts_of
from simulator.testing.structure import structure

SETTLED = 8  # batches after the deepest lookahead from which a run counts
SHARED = 0.5  # share of a batch's rows that the previous one used too, for the mean staleness
BASE_NS = 1000


def check_policy(policy: Policy, step: TrainStep | None = None) -> None:
    """Return if `policy` keeps its contract; raise PolicyError with the reason if it does not.

    Checked on `step` (default: small and large batches, rows in host memory and in HBM, drawn
    owners), on machines on which different resources bind, and with each stage in turn far slower
    than all others:

    - `plan` is pure: two calls give pipelines of the same structure and the same amounts;
    - it has compute on its compute stream, compiles, and neither deadlocks nor runs away;
    - both engines, folded or not, give the same times, and compute + exposed time is the step;
    - no batch of a whole period trains on rows that lack an update older than `staleness_steps` (0:
      synchronous), however many batches ago they were last used;
    - no update of a row is applied twice, and none is lost for good unless the policy says so in
      `loses_updates` (then `staleness_steps` is about updates that are late, not about lost ones);
    - rows are exchanged once per batch and their gradients once, as bytes, when the batch is
      exchanged in `policy.micro_batches` parts (1 when it says nothing); all bytes sent are received;
    - a policy that needs servers and exchanges nothing moves as many bytes of rows to each rank, and as
      many back, as its `moves(step)` returns (without it: the distinct rows of the batch, both ways);
    - peak memory can be told.
    """
    _check_promise(policy)
    needs = tuple(getattr(policy, "needs", ()))
    for one in [step] if step is not None else list(example_steps(needs=needs)):
        pipeline = _pure_plan(policy, one)
        graph = _compiled(pipeline)
        _check_compute(pipeline)
        check_movement(policy, one, pipeline)
        _check_memory(policy, one, graph)
        for durations in [*_machine_durations(graph, one), *_one_slow_stage(graph)]:
            _check_run(policy, graph, durations)


def _check_promise(policy: Policy) -> None:
    if policy.consistency not in CONSISTENCY:
        raise PolicyError(f'consistency is "{policy.consistency}", not one of {", ".join(CONSISTENCY)}')
    stale = policy.staleness_steps
    if stale < 0 or (policy.consistency == "synchronous") != (stale == 0):
        raise PolicyError(f"a policy that is {policy.consistency} cannot have staleness_steps = {stale}")


def _pure_plan(policy: Policy, step: TrainStep) -> Pipeline:
    try:
        first, second = policy.plan(step), policy.plan(step)
    except RecscaleError as refusal:
        raise PolicyError(f"the plan is refused: {refusal.problem}") from refusal
    if not isinstance(first, Pipeline):
        raise PolicyError(f"plan returned a {type(first).__name__}, not a Pipeline")
    if structure(first) != structure(second):
        raise PolicyError("plan is not pure: two calls with the same step give different pipelines")
    return first


def _compiled(pipeline: Pipeline) -> MarkedGraph:
    try:
        return compile_pipeline(pipeline)
    except RecscaleError as refusal:
        raise PolicyError(f"the pipeline is refused: {refusal.problem}") from refusal


def _check_compute(pipeline: Pipeline) -> None:
    if not any(stage.kind == "compute" for stage in pipeline.streams[pipeline.compute]):
        raise PolicyError(f'no stage of kind "compute" stands on the compute stream "{pipeline.compute}"')
    if not readers(pipeline):
        raise PolicyError(
            'no stage of kind "all_to_all" (or "compute", without an exchange) declares the rows it reads, '
            "so nobody can tell how stale they are"
        )


def _check_memory(policy: Policy, step: TrainStep, graph: MarkedGraph) -> None:
    timeline = run_recurrence(graph, next(_one_slow_stage(graph)))
    totals = scheduled_memory(step, timeline, parts_of(policy)).totals()
    if not all(np.isfinite(size) and size > 0 for size in totals.values()):
        raise PolicyError(f"peak memory cannot be told: {totals}")


def _cycles(graph: MarkedGraph) -> int:
    """Return how many cycles leave a whole period to be looked at."""
    looked_at = max(graph.period, SETTLED)
    return -(-(_first(graph) + looked_at + _deepest(graph)) // graph.period) + 1


def _first(graph: MarkedGraph) -> int:
    """Return the first batch that counts: all that it may have been used after lie within the run."""
    return max(_deepest(graph) + SETTLED, longest_gap(graph.pipeline))


def _deepest(graph: MarkedGraph) -> int:
    return max(stage.ahead for stage in graph.pipeline.stages)


def _machine_durations(graph: MarkedGraph, step: TrainStep) -> Iterator[Durations]:
    """Each example cluster, first without and then with durations drawn from a wide spread."""
    uneven = Variation(dict.fromkeys(("compute", "input", "lookup", "all_to_all"), 0.5), seed=1)
    for cluster in example_clusters(step.ranks, step.workload.precision):
        for variation in (Variation(), uneven):
            yield tabulate(graph, CostModel(cluster).seconds, step.ranks, _cycles(graph), variation)


def _one_slow_stage(graph: MarkedGraph) -> Iterator[Durations]:
    """Every stage takes as long, except one that takes longer than all others together."""
    count, cycles, alone = len(graph.nodes), _cycles(graph), np.zeros(1, dtype=np.int64)
    for slow in graph.pipeline.stages:
        nominal = np.array([[BASE_NS * (3 * count if node.stage is slow else 1)] for node in graph.nodes])
        yield Durations(np.broadcast_to(nominal[:, None, :], (count, cycles, 1)), alone, nominal)


def _check_run(policy: Policy, graph: MarkedGraph, durations: Durations) -> None:
    timeline = run_events(graph, durations)
    _check_engines(graph, durations, timeline)
    first = _first(graph)
    last = timeline.batches - _deepest(graph) - graph.period
    break_down(timeline, timeline.slowest_column, first, last)
    reuse = Reuse.alike(SHARED, longest_gap(graph.pipeline))
    seen = observe(timeline, timeline.slowest_column, range(first, last), reuse)
    loses = getattr(policy, "loses_updates", False)
    observed = 0 if seen is None else seen.late_max if loses else seen.observed_max
    if seen and observed > policy.staleness_steps:
        raise PolicyError(
            f"a batch trains on rows that lack an update {observed} batches old "
            f"({seen.where}), and the policy declares a staleness of {policy.staleness_steps}"
        )
    _check_conserved(timeline, reuse, loses)


def _check_conserved(timeline: Timeline, reuse: Reuse, loses: bool) -> None:
    """Raise PolicyError where updates are applied twice, or lost and the policy does not say so."""
    kept = conserved(timeline, timeline.slowest_column, reuse)
    if kept is None:
        return
    if kept.duplicated_share:
        raise PolicyError(f"{kept.duplicated_share:.1%} of all updates are applied twice: {kept.where}")
    if kept.lost_share and not loses:
        raise PolicyError(
            f"{kept.lost_share:.1%} of all updates are lost for good: {kept.where}, and the policy does not "
            "declare loses_updates"
        )


def _check_engines(graph: MarkedGraph, durations: Durations, timeline: Timeline) -> None:
    wanted = timeline.end_ns[:, :, timeline.column_of]
    others = [run_recurrence(graph, durations)]
    if timeline.ranks > 1:
        others.append(run_events(graph, durations, folded=False))
    for other in others:
        if not np.array_equal(other.end_ns[:, :, other.column_of], wanted):
            raise PolicyError(
                f"the {other.engine} engine gives other times than the event engine with ranks folded"
            )
