"""Profiler traces, execution traces and wiring: what is read off small ones, and off real ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.calibration.imports.execution_trace import read_execution_trace
from simulator.calibration.imports.kernel_classes import kernel_class
from simulator.calibration.imports.kineto import read_traces
from simulator.calibration.imports.spans import both, covered, union
from simulator.calibration.imports.topology import Rates, fragment, read_topology
from simulator.errors import InputError
from simulator.scenario import load, run_scenario

COMPUTE, REDUCE = "void gemmSN_TN_kernel<float>(int)", "ncclKernel_AllReduce_RING_LL_Sum_float(int)"


def event(name: str, start: float, duration: float, category: str = "kernel", **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "tid": 7, "args": args}


def trace(folder: Path, events: list[dict[str, Any]], rank: int = 0) -> str:
    path = folder / f"rank{rank}.json"
    head = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
    path.write_text(json.dumps({**head, "traceEvents": events}), encoding="utf-8")
    return str(path)


def step(number: int, start: float, duration: float) -> dict[str, Any]:
    return event(f"ProfilerStep#{number}", start, duration, "user_annotation")


def test_the_time_of_a_step_is_parted_without_rest(tmp_path: Path) -> None:
    events = [
        step(4, 1000, 100),
        event(COMPUTE, 1010, 30),
        event(REDUCE, 1030, 40),  # ten of them under the product
        event("Memcpy HtoD", 1060, 20, "gpu_memcpy"),  # ten of them under the collective
        step(5, 1100, 50),
        event(COMPUTE, 1110, 60),  # the device ends after the host
    ]
    first, second = read_traces([trace(tmp_path, events)]).ranks[0].table.steps
    assert (first.number, first.step, first.compute, first.communication) == (4, 0.1, 0.03, 0.04)
    assert (first.overlapped, first.exposed) == pytest.approx((0.01, 0.03))
    assert (first.memcpy, first.exposed_memcpy, first.idle) == pytest.approx((0.02, 0.01, 0.03))
    assert (second.step, second.host, second.idle, second.launches) == pytest.approx((0.07, 0.05, 0.01, 1))


spans = st.lists(st.tuples(st.integers(0, 80), st.integers(0, 20)), max_size=12)


@given(spans, spans, st.integers(0, 50), st.integers(0, 60))
def test_spans_cover_what_their_moments_cover(
    one: list[tuple[int, int]], other: list[tuple[int, int]], start: int, length: int
) -> None:
    def built(pairs: list[tuple[int, int]]) -> Any:
        starts = np.array([begin for begin, _ in pairs], dtype=np.float64)
        return union(starts, starts + np.array([took for _, took in pairs], dtype=np.float64))

    def moments(pairs: list[tuple[int, int]]) -> set[int]:
        return {at for begin, took in pairs for at in range(begin, begin + took)}

    window = set(range(start, start + length))
    assert covered(built(one), start, start + length) == len(moments(one) & window)
    together = both(built(one), built(other))
    assert covered(together, start, start + length) == len((moments(one) | moments(other)) & window)


def test_bytes_of_a_collective_come_from_its_kernel_or_from_the_call_around_its_launch(
    tmp_path: Path,
) -> None:
    noted = {"In msg nelems": 100, "Out msg nelems": 400, "dtype": "BFloat16", "correlation": 1}
    shaped = {"Input Dims": [[10, 8]], "Input type": ["float"]}
    events = [
        event("nccl:all_to_all", 5, 10, "user_annotation", **shaped),
        event("cudaLaunchKernelExC", 8, 1, "cuda_runtime", correlation=2),
        event(REDUCE, 0, 3, **noted),
        event("ncclKernel_SendRecv_RING", 20, 5, correlation=2),
        event("ncclKernel_SendRecv_RING", 30, 5, correlation=3),
    ]
    found = read_traces([trace(tmp_path, events)]).ranks[0].collectives
    assert [(one.operation, one.bytes) for one in found] == [
        ("all_reduce", 800.0),
        ("all_to_all", 320.0),
        ("all_to_all", None),
    ]


def test_the_shortest_rank_tells_a_collective_from_waiting_for_it(tmp_path: Path) -> None:
    late = trace(tmp_path, [event(COMPUTE, 0, 90), event(REDUCE, 90, 10)], 0)
    early = trace(tmp_path, [event(COMPUTE, 0, 20), event(REDUCE, 20, 80)], 1)
    (met,) = read_traces([early, late]).meetings or ()
    assert (met.shortest, met.waited) == (10, 35)
    alone = read_traces([late])
    assert alone.meetings is None


def test_two_traces_of_one_rank_are_refused(tmp_path: Path) -> None:
    first = trace(tmp_path, [event(COMPUTE, 0, 1)], 0)
    (tmp_path / "copy.json").write_text(Path(first).read_text())
    with pytest.raises(InputError, match=r"copy.json: is of rank 0, as .*rank0.json is"):
        read_traces([first, str(tmp_path / "copy.json")])


def test_a_bare_list_of_events_without_steps_is_one_step(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps([event(COMPUTE, 100, 10), event(COMPUTE, 130, 10)]))
    (only,) = read_traces([str(path)]).ranks[0].table.steps
    assert (only.step, only.compute, only.idle) == pytest.approx((0.04, 0.02, 0.02))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("void split_embedding_codegen_forward_unweighted_kernel<float>", "embedding_forward"),
        (
            "split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1",
            "embedding_backward",
        ),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4>", "gemm"),
        ("volta_sgemm_128x32_tn", "gemm"),
        ("Cijk_Ailk_Bljk_HB_MT128x128x32", "gemm"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
            "element_wise",
        ),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>", "element_wise"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", "reduction"),
        ("void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long>>", "indexing"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "collective"),
        ("hcom_allReduce_", "collective"),
    ],
)
def test_kernels_are_classed_by_their_names(name: str, kind: str) -> None:
    assert kernel_class(name) == kind


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def bytes_field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def integer_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def test_protobuf_and_json_of_one_trace_say_the_same(tmp_path: Path) -> None:
    size = bytes_field(10, bytes_field(1, b"comm_size") + integer_field(9, 4096))
    kind = bytes_field(10, bytes_field(1, b"comm_type") + integer_field(9, 6))
    exchange = integer_field(1, 2) + bytes_field(2, b"exchange") + integer_field(3, 7) + integer_field(7, 300)
    nodes = [
        integer_field(1, 1) + bytes_field(2, b"product") + integer_field(3, 4) + integer_field(7, 200),
        exchange + bytes_field(5, varint(1)) + kind + size,
    ]
    messages = [bytes_field(1, b"0.0.4"), *nodes]
    (tmp_path / "trace.et").write_bytes(b"".join(varint(len(one)) + one for one in messages))
    graph = [
        {"Id": 1, "Name": "product", "NodeType": 4, "runtime": 200},
        {
            "Id": 2,
            "Name": "exchange",
            "NodeType": 7,
            "runtime": 300,
            "data_deps": [1],
            "comm_type": 6,
            "comm_size": 4096,
        },
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"workload_graph": graph}))
    binary, text = (read_execution_trace(str(tmp_path / name)).data() for name in ("trace.et", "trace.json"))
    assert binary["collectives"] == [{"operation": "all_to_all", "bytes": 4096.0, "count": 1}]
    assert {**binary, "file": ""} == {**text, "file": ""}


def test_operators_of_pytorch_tell_products_by_shape(tmp_path: Path) -> None:
    inputs = {"shapes": [[16, 367], [367, 512]], "types": ["Tensor(float)", "Tensor(float)"]}
    nodes = [{"id": 2, "name": "aten::mm", "ctrl_deps": 1, "inputs": inputs, "attrs": []}]
    path = tmp_path / "et.json"
    path.write_text(json.dumps({"schema": "1.0.2-chakra.0.0.4", "nodes": nodes}))
    (product,) = read_execution_trace(str(path)).data()["products"]
    assert (product["m"], product["n"], product["k"], product["flops"]) == (16, 512, 367, 2 * 16 * 512 * 367)


def matrix(way: str, cards: int = 0, count: int = 4) -> str:
    names = [f"GPU{place}" for place in range(count)] + [f"NIC{place}" for place in range(cards)]
    rows = []
    for one in names:
        cells = [
            "X" if one == other else way if "GPU" in one + other and "NIC" not in one + other else "SYS"
            for other in names
        ]
        rows.append("\t".join([one, *cells, "0-23", "0", "N/A"]))
    return (
        "\t".join(["\x1b[4m", *names, "CPU Affinity", "NUMA Affinity\x1b[0m"]) + "\n" + "\n".join(rows) + "\n"
    )


@pytest.mark.parametrize(
    ("way", "count", "inside"),
    [
        ("NV12", 8, "{kind: switch, bandwidth: 300 GB/s}"),
        ("NV4", 4, "{kind: full_mesh, bandwidth: 100 GB/s}"),
        ("PIX", 4, "{kind: pcie, lane: {bandwidth: 25 GB/s}, per_switch: 4, trunk: {bandwidth: 25 GB/s}}"),
        ("SYS", 4, "{kind: pcie, lane: {bandwidth: 25 GB/s}, per_switch: 1, trunk: {bandwidth: 25 GB/s}}"),
    ],
)
def test_a_matrix_of_ways_becomes_a_fabric_that_runs(
    tmp_path: Path, checkout: Path, way: str, count: int, inside: str
) -> None:
    import yaml

    path = tmp_path / "topo.txt"
    path.write_text("$ nvidia-smi topo -m\n" + matrix(way, 2, count), encoding="utf-8")
    text = fragment(read_topology(str(path)), Rates(card=25e9))
    assert f"inside: {inside}" in text
    cluster = yaml.safe_load(text)["cluster"]
    settings = [f"cluster.{key}={json.dumps(value)}" for key, value in cluster.items()]
    scenario = load(checkout / "scenarios" / "quickstart.yaml", settings)
    assert scenario.cluster.per_host == count
    assert run_scenario(scenario).report.step_ms["mean"] > 0


def test_a_matrix_without_all_its_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "topo.txt"
    path.write_text("\n".join(matrix("NV4").splitlines()[:3]))
    with pytest.raises(InputError, match="the rows of GPU2, GPU3 are missing"):
        read_topology(str(path))


def test_the_eight_ranks_of_a_real_step_are_told_apart(measured_data: Path) -> None:
    folder = measured_data / "traces" / "param" / "dlrm_8xV100" / "kineto"
    traces = read_traces([str(path) for path in sorted(folder.glob("*.gz"))])
    rows = traces.rows()
    assert [row["rank"] for row in rows] == list(range(8))
    for row in rows:
        parts = row["compute_ms"] + row["exposed_ms"] + row["exposed_memcpy_ms"] + row["idle_ms"]
        assert parts == pytest.approx(row["step_ms"], abs=1e-9)
        assert 1.0 < row["compute_ms"] < 1.3  # tiny batches: the same kernels on every rank
        assert row["idle_ms"] > 5  # launch-bound: the device mostly waits for the host
    assert traces.meetings is not None
    assert [met.operation for met in traces.meetings].count("all_to_all") == 5
    assert [met.operation for met in traces.meetings].count("all_reduce") == 3
    assert max(met.shortest for met in traces.meetings) < 100  # us; the rest of exposed time is waiting


def test_the_bytes_of_profile_and_execution_trace_agree(measured_data: Path) -> None:
    folder = measured_data / "traces" / "param" / "dlrm_8xV100"
    for rank in range(8):
        seen = read_traces([str(folder / f"kineto/rank{rank}.kineto.json.gz")]).ranks[0].collectives
        asked = read_execution_trace(str(folder / f"et/rank{rank}.et.json.gz")).data()["collectives"]
        told = sorted((one["operation"], one["bytes"]) for one in asked for _ in range(one["count"]))
        assert sorted((one.operation, one.bytes) for one in seen) == told


def test_formats_of_a_real_execution_trace_agree(measured_data: Path) -> None:
    folder = measured_data / "traces" / "chakra"
    binary, text = (read_execution_trace(str(folder / f"chakra.0.{end}.gz")) for end in ("et", "json"))
    assert (binary.nodes, dict(binary.by_type)) == (text.nodes, dict(text.by_type))
    assert dict(binary.duration_by_type) == dict(text.duration_by_type)
