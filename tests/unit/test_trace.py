"""Traces: valid JSON, slices that never overlap, nothing lost, and the ranks that were asked for."""

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.errors import InputError
from simulator.pipeline import Pipeline, Stage, compile_pipeline
from simulator.quantities import NOTHING, AllReduceWork, AllToAllWork, CopyWork, CpuWork, DenseWork, InTurn
from simulator.results.profiled import profiled_category, profiled_name
from simulator.results.timeline import Timeline
from simulator.results.trace import sampled_ranks, write_chrome_trace
from simulator.scenario import load, run_scenario

Event = dict[str, Any]

UNEVEN = [
    "cluster.hosts=1",
    "run.batches=32",
    "sharding.owners=drawn",
    "workload.tables[0].rows=1e8",
    "run.jitter.compute=5 %",
]


@pytest.fixture(scope="module")
def timeline(checkout: Path) -> Timeline:
    """Eight ranks of NestPipe that all take different times."""
    return run_scenario(load(checkout / "scenarios/nestpipe/npu.yaml", UNEVEN)).timeline


@pytest.fixture(scope="module")
def trace(timeline: Timeline, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("trace") / "run.json"
    write_chrome_trace(timeline, path, "a run")
    return dict(json.loads(path.read_bytes()))


def slices(trace: dict[str, Any]) -> list[Event]:
    """Slices of stages; those of whole steps stand on thread 0."""
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["tid"]]


def by_thread(events: list[Event]) -> dict[tuple[int, int], list[Event]]:
    threads = defaultdict(list)
    for event in events:
        threads[event["pid"], event["tid"]].append(event)
    return threads


def nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)


def small_timeline(ends: list[list[int]], column_of: list[int]) -> Timeline:
    """One compute stage; `ends[batch][column]`."""
    graph = compile_pipeline(Pipeline({"compute": [Stage("train", "compute", DenseWork(1.0))]}))
    end = np.array([ends], dtype=np.int64)
    return Timeline(graph, np.diff(end, axis=1, prepend=0), end, np.array(column_of), "vector")


def test_the_slices_of_a_stream_never_overlap(trace: dict[str, Any]) -> None:
    for events in by_thread(slices(trace)).values():
        ends = [nanoseconds(event["ts"]) + nanoseconds(event["dur"]) for event in events]
        starts = [nanoseconds(event["ts"]) for event in events]
        assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))


def test_times_never_go_back_within_a_thread(trace: dict[str, Any]) -> None:
    timed = [event for event in trace["traceEvents"] if event["ph"] != "M"]
    for events in by_thread(timed).values():
        times = [event["ts"] for event in events]
        assert times == sorted(times)


def test_every_instance_is_there_with_the_timeline_s_times_to_the_nanosecond(
    timeline: Timeline, trace: dict[str, Any]
) -> None:
    node_of = {node.name: place for place, node in enumerate(timeline.graph.nodes)}
    ranks = sampled_ranks(timeline)
    found = slices(trace)
    assert len(found) == len(node_of) * timeline.cycles * len(ranks)
    for event in found:
        at = node_of[event["args"]["stage"]], event["args"]["batch"], timeline.column_of[event["pid"]]
        assert nanoseconds(event["ts"]) == timeline.start_ns[at]
        assert nanoseconds(event["ts"]) + nanoseconds(event["dur"]) == timeline.end_ns[at]


def test_durations_without_waits_and_sharing_add_up_to_those_of_the_timeline(
    timeline: Timeline, trace: dict[str, Any]
) -> None:
    for rank in sampled_ranks(timeline):
        events = [event for event in slices(trace) if event["pid"] == rank]
        lost = [nanoseconds(e["args"]["wait_us"]) + nanoseconds(e["args"]["slowed_us"]) for e in events]
        worked = sum(nanoseconds(event["dur"]) for event in events) - sum(lost)
        assert worked == timeline.duration_ns[:, :, timeline.column_of[rank]].sum()


def test_only_collectives_wait_and_some_do(timeline: Timeline, trace: dict[str, Any]) -> None:
    waiting = {event["args"]["stage"] for event in slices(trace) if event["args"]["wait_us"] > 0}
    meeting = {node.name for node in timeline.graph.nodes if node.stage.work.rendezvous}
    assert waiting and waiting <= meeting


def test_no_stage_waits_less_than_nothing_and_only_stages_on_the_host_are_ever_hurried(
    trace: dict[str, Any],
) -> None:
    """A rank may use what others of its host leave idle, and is then quicker than with its even part."""
    assert all(event["args"]["wait_us"] >= 0 for event in slices(trace))
    hurried = {event["args"]["stage"] for event in slices(trace) if event["args"]["slowed_us"] < 0}
    assert hurried <= {"read", "inputs", "retrieve", "write_back"}


def test_a_collective_works_from_the_last_arrival_on_every_rank(
    timeline: Timeline, trace: dict[str, Any]
) -> None:
    began = defaultdict(set)
    for event in slices(trace):
        if event["name"].startswith("nccl"):
            moment = nanoseconds(event["ts"]) + nanoseconds(event["args"]["wait_us"])
            began[event["args"]["stage"], event["args"]["batch"]].add(moment)
    assert len(sampled_ranks(timeline)) == 3 and all(len(moments) == 1 for moments in began.values())


def test_threads_are_named_after_streams_and_sorted_as_the_policy_lists_them(
    timeline: Timeline, trace: dict[str, Any]
) -> None:
    named = [event for event in trace["traceEvents"] if event["name"] == "thread_name"]
    first = [
        event["args"]["name"] for event in named if event["pid"] == timeline.rank_of(timeline.slowest_column)
    ]
    assert first == ["steps", *timeline.graph.pipeline.streams]


def test_arrows_come_in_pairs_that_start_in_a_slice_and_never_point_back(trace: dict[str, Any]) -> None:
    starts = {event["id"]: event for event in trace["traceEvents"] if event["ph"] == "s"}
    ends = {event["id"]: event for event in trace["traceEvents"] if event["ph"] == "f"}
    begun = {(e["pid"], e["tid"], e["ts"]): e["dur"] for e in slices(trace) if e["dur"]}
    assert starts and starts.keys() == ends.keys()
    for number, start in starts.items():
        end = ends[number]
        assert start["pid"] == end["pid"] and start["tid"] != end["tid"]
        dur = begun[start["pid"], start["tid"], start["ts"]]
        assert nanoseconds(start["ts"]) + nanoseconds(dur) <= nanoseconds(end["ts"])
        assert (end["pid"], end["tid"], end["ts"]) in begun


def test_steps_are_as_long_as_the_time_between_updates(timeline: Timeline, trace: dict[str, Any]) -> None:
    rank = timeline.rank_of(timeline.slowest_column)
    steps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["tid"] == 0 and e["pid"] == rank]
    lengths = np.diff(timeline.update_ns[:, timeline.slowest_column], prepend=0)
    assert [nanoseconds(step["dur"]) for step in steps] == lengths.tolist()


def test_slowest_median_and_fastest_rank_are_sampled() -> None:
    timeline = small_timeline([[30, 10, 20, 40, 50]], column_of=[0, 1, 2, 3, 4])
    assert sampled_ranks(timeline) == {4: "slowest", 0: "median", 1: "fastest"}


def test_the_median_counts_ranks_and_not_columns() -> None:
    timeline = small_timeline([[30, 10, 20]], column_of=[0, 1, 1, 1, 2])
    assert sampled_ranks(timeline) == {0: "slowest", 1: "median"}


def test_ranks_that_end_together_are_told_apart_by_their_own_work() -> None:
    work, meet = Stage("train", "compute", DenseWork(1.0)), Stage("send", "all_to_all", AllToAllWork(1.0))
    graph = compile_pipeline(Pipeline({"compute": [work, meet]}))
    end = np.array([[[40, 10, 30]], [[90, 90, 90]]], dtype=np.int64)
    duration = np.array([[[40, 10, 30]], [[50, 50, 50]]], dtype=np.int64)
    timeline = Timeline(graph, duration, end, np.arange(3), "vector")
    assert sampled_ranks(timeline) == {0: "slowest", 2: "median", 1: "fastest"}


def test_alike_ranks_are_written_once_and_counted(tmp_path: Path) -> None:
    write_chrome_trace(small_timeline([[10]], column_of=[0] * 8), tmp_path / "t.json", "alike")
    events = json.loads((tmp_path / "t.json").read_bytes())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == ["rank 0 (slowest, 8 ranks alike)"]


def test_only_the_batches_and_ranks_asked_for_are_written(timeline: Timeline, tmp_path: Path) -> None:
    write_chrome_trace(timeline, tmp_path / "t.json", "some", range(20, 23), ranks=[5])
    found = json.loads((tmp_path / "t.json").read_bytes())
    assert {event["args"]["batch"] for event in slices(found)} == {20, 21, 22}
    assert {event["pid"] for event in found["traceEvents"]} == {5}
    assert found["distributedInfo"] == {"rank": 5, "world_size": 8}


def test_the_rank_is_written_as_trace_analysis_searches_for_it(timeline: Timeline, tmp_path: Path) -> None:
    write_chrome_trace(timeline, tmp_path / "t.json", "one", range(20, 21), ranks=[3])
    assert '"rank": 3' in (tmp_path / "t.json").read_text().split('"traceEvents"')[0]


@pytest.mark.parametrize("batches", [range(0), range(30, 33), range(-1, 2)])
def test_batches_that_were_not_run_are_refused(timeline: Timeline, tmp_path: Path, batches: range) -> None:
    with pytest.raises(InputError, match="batches 0 to 31"):
        write_chrome_trace(timeline, tmp_path / "t.json", "none", batches)


@pytest.mark.parametrize("ranks", [[], [8], [-1]])
def test_ranks_that_were_not_run_are_refused(timeline: Timeline, tmp_path: Path, ranks: list[int]) -> None:
    with pytest.raises(InputError, match="ranks 0 to 7"):
        write_chrome_trace(timeline, tmp_path / "t.json", "none", ranks=ranks)


def test_a_compressed_trace_holds_the_same_bytes_and_neither_name_nor_date(
    timeline: Timeline, tmp_path: Path
) -> None:
    for name in ("plain.json", "one.json.gz", "other.json.gz"):
        write_chrome_trace(timeline, tmp_path / name, "a run", range(20, 22))
    packed = (tmp_path / "one.json.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "plain.json").read_bytes()
    assert packed == (tmp_path / "other.json.gz").read_bytes()


@pytest.mark.parametrize(
    ("stage", "name", "category"),
    [
        (Stage("send.3", "all_to_all", AllToAllWork(1.0)), "ncclKernel_AllToAll (send.3)", "kernel"),
        (Stage("reduce", "all_reduce", AllReduceWork(1.0)), "ncclKernel_AllReduce (reduce)", "kernel"),
        (Stage("in", "input", CopyWork(1.0, "host_to_device")), "Memcpy HtoD (in)", "gpu_memcpy"),
        (
            Stage("route", "lookup", InTurn((DenseWork(1.0), AllToAllWork(1.0)))),
            "ncclKernel_AllToAll (route)",
            "kernel",
        ),
        (Stage("read", "input", CpuWork(1.0)), "read", "cpu_op"),
        (Stage("forward", "compute", DenseWork(1.0)), "forward", "kernel"),
        (Stage("refresh", "lookup", NOTHING), "refresh", "kernel"),
    ],
)
def test_a_stage_is_called_what_a_profiler_would_call_it(stage: Stage, name: str, category: str) -> None:
    assert (profiled_name(stage), profiled_category(stage)) == (name, category)


def test_what_runs_on_the_host_has_no_device_stream(trace: dict[str, Any]) -> None:
    with_stream = {event["args"]["stage"] for event in slices(trace) if "stream" in event["args"]}
    assert "read" not in with_stream and {"retrieve", "forward.0", "send.7"} <= with_stream
