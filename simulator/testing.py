"""Check a policy: that it is pure, live, bounded, fresh as declared, and moves what a step asks for.

For everyone who writes a policy, in this distribution or outside of it:

    from simulator.testing import check_policy
    from simulator.policies.dual_buffer import DualBuffer

    check_policy(DualBuffer(buffers=2))          # returns nothing, or raises PolicyError with the reason
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from simulator.costs import CostModel
from simulator.engine import Durations, Variation, tabulate
from simulator.engine.events import run_events
from simulator.engine.recurrence import run_recurrence
from simulator.errors import RecscaleError
from simulator.hardware import Cluster, TwoLevel, catalog
from simulator.pipeline import MarkedGraph, Pipeline, Stage, compile_pipeline
from simulator.policies.base import Policy
from simulator.quantities import AllToAllWork, InTurn, ReduceScatterWork, Together, Work
from simulator.results.exposed import break_down
from simulator.results.memory import scheduled_memory
from simulator.results.staleness import geometric, observe, readers
from simulator.results.timeline import Timeline
from simulator.sharding import RowWise, TrainStep
from simulator.workload.dense import Mlp
from simulator.workload.job import InputPipeline, Workload
from simulator.workload.keys import BoundedZipf
from simulator.workload.tables import EmbeddingTable

CONSISTENCIES = ("synchronous", "stale", "asynchronous")
SETTLED = 8  # batches after the deepest lookahead from which a run counts
SHARED = 0.5  # share of a batch's rows that the previous one used too, for the mean staleness
BASE_NS = 1000


class PolicyError(RecscaleError, AssertionError):
    """A policy breaks its contract; the message says which part of it, and where."""


def check_policy(policy: Policy, step: TrainStep | None = None) -> None:
    """Return if `policy` keeps its contract; raise PolicyError with the reason if it does not.

    Checked on `step` (default: small and large batches, rows in host memory and in HBM, drawn
    owners), on machines on which different resources bind, and with each stage in turn far slower
    than all others:

    - `plan` is pure: two calls give pipelines of the same structure and the same amounts;
    - it has compute on its compute stream, compiles, and neither deadlocks nor runs away;
    - both engines, folded or not, give the same times, and compute + exposed time is the step;
    - no batch trains on rows that lack an update older than `staleness_steps` (0: synchronous);
    - rows are exchanged once per batch and their gradients once, as bytes, when the batch is
      exchanged in `policy.micro_batches` parts (1 when it says nothing); all bytes sent are received;
    - peak memory can be told.
    """
    _check_promise(policy)
    for one in [step] if step is not None else list(example_steps()):
        pipeline = _pure_plan(policy, one)
        graph = _compiled(pipeline)
        _check_compute(pipeline)
        _check_exchange(policy, one, pipeline)
        _check_memory(policy, one, graph)
        for durations in [*_machine_durations(graph, one), *_one_slow_stage(graph)]:
            _check_run(policy, graph, durations)


def example_steps(ranks: int = 4) -> Iterator[TrainStep]:
    """Yield steps that differ in batch size, memory tier and in how evenly owners are loaded."""
    for batch, tier, owners in ((64, "dram", "expected"), (8192, "hbm", "expected"), (2048, "dram", "drawn")):
        tables = (
            EmbeddingTable("users", 1e6, 64, BoundedZipf(1_000_000, 0.9)),
            EmbeddingTable("items", 1e5, 32, BoundedZipf(100_000, 1.1), pooling=20.0),
        )
        model = Mlp(inputs=96, layers=(512, 256, 1))
        workload = Workload(model, tables, batch, InputPipeline(bytes=400.0, cpu_time=2e-6), bucket_bytes=3e5)
        yield TrainStep(workload, RowWise(tier, owners), ranks)


def example_clusters(ranks: int, precision: str) -> Iterator[Cluster]:
    """Yield clusters of `ranks` ranks in which nothing, the network, the host or the accelerator is slow."""
    machine = catalog.machine(catalog.names("machine")[0])
    chip = replace(machine.accelerator, peak_flops={precision: max(machine.accelerator.peak_flops.values())})
    quick = Cluster(chip, machine.host, TwoLevel(100e9, 100e9, 1e-6, 1e-6), 1, ranks)
    yield quick
    yield replace(quick, fabric=TwoLevel(1e9, 1e8, 1e-4, 1e-3))
    yield replace(
        quick, host=replace(machine.host, cores=1, dram_bandwidth=machine.host.dram_bandwidth / 100)
    )
    slow = replace(
        chip, peak_flops={precision: chip.peak(precision) / 1000}, hbm_bandwidth=chip.hbm_bandwidth / 100
    )
    yield replace(quick, accelerator=slow)


def _check_promise(policy: Policy) -> None:
    if policy.consistency not in CONSISTENCIES:
        raise PolicyError(f'consistency is "{policy.consistency}", not one of {", ".join(CONSISTENCIES)}')
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


def structure(value: Any) -> Any:
    """Return plain nested tuples that are equal for pipelines of equal structure and amounts."""
    if isinstance(value, Stage):
        return (
            value.name,
            *(_field(value, name) for name in ("kind", "work", "ahead", "every", "phase")),
            *(tuple(before.name for before in value.after), structure(value.reads), structure(value.writes)),
        )
    if isinstance(value, np.ndarray):
        return value.shape, tuple(value.ravel().tolist())
    if isinstance(value, dict):
        return tuple((key, structure(held)) for key, held in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(structure(held) for held in value)
    if is_dataclass(value):
        return type(value).__name__, *(_field(value, one.name) for one in fields(value))
    return value


def _field(value: Any, name: str) -> Any:
    return structure(getattr(value, name))


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
            'no stage of kind "all_to_all" declares the rows it reads, so nobody can tell how stale they are'
        )


def _check_exchange(policy: Policy, step: TrainStep, pipeline: Pipeline) -> None:
    """Rows out and gradients back, once each: 2 x the rows that the parts of a batch ask for."""
    moved = 0.0
    for stage in pipeline.stages:
        for part in _exchanges(stage.work):
            sent, received = np.mean(part.bytes), np.mean(_received(part))
            if not np.isclose(sent, received, rtol=1e-9):
                raise PolicyError(
                    f"{stage.name}: ranks send {sent:.6g} bytes each and receive {received:.6g}"
                )
            moved += float(received) / stage.every if stage.kind == "all_to_all" else 0.0
    micro = step.micro_batch(parts := _parts(policy))
    ways = _exchanges(InTurn((micro.exchange_rows, micro.send_gradients)))
    asked = parts * sum(float(np.mean(_received(way))) for way in ways)
    if not np.isclose(moved, asked, rtol=1e-9):
        raise PolicyError(
            f"the all-to-all stages move {moved:.6g} bytes per rank and batch; its rows and their gradients, "
            f"once each in {parts} parts, are {asked:.6g}"
        )


def _received(work: AllToAllWork | ReduceScatterWork) -> Any:
    return next(size for size in (getattr(work, "received_bytes", None), work.bytes) if size is not None)


def _exchanges(work: Work) -> Iterator[AllToAllWork | ReduceScatterWork]:
    if isinstance(work, AllToAllWork | ReduceScatterWork):
        yield work
    elif isinstance(work, InTurn | Together):
        for part in work.parts:
            yield from _exchanges(part)


def _parts(policy: Policy) -> int:
    return int(getattr(policy, "micro_batches", 1))


def _check_memory(policy: Policy, step: TrainStep, graph: MarkedGraph) -> None:
    timeline = run_recurrence(graph, next(_one_slow_stage(graph)))
    totals = scheduled_memory(step, timeline, _parts(policy)).totals()
    if not all(np.isfinite(size) and size > 0 for size in totals.values()):
        raise PolicyError(f"peak memory cannot be told: {totals}")


def _cycles(graph: MarkedGraph) -> int:
    return -(-(2 * (_deepest(graph) + SETTLED) + 4) // graph.period) + 1


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
    first = _deepest(graph) + SETTLED
    last = timeline.batches - _deepest(graph) - graph.period
    break_down(timeline, timeline.slowest_column, first, last)
    seen = observe(timeline, timeline.slowest_column, range(first, last), geometric(SHARED))
    if seen and seen.observed_max > policy.staleness_steps:
        raise PolicyError(
            f"a batch trains on rows that lack an update {seen.observed_max} batches old, "
            f"and the policy declares a staleness of {policy.staleness_steps}"
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
