"""Sound inputs of every kind that the command line reads, small ones, and the commands that read them."""

import gzip
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from judging import judged

YAML, JSON, TEXT, BYTES, ZIPPED, WORD = "yaml", "json", "text", "bytes", "zipped text", "word"
PLACE = "{}"  # of the broken file, or of the broken word, in a command


@dataclass(frozen=True)
class Seed:
    """A file (or a word of the command line) that can be broken, and the commands that read it."""

    name: str
    form: str
    file: str
    commands: tuple[tuple[str, ...], ...]

    @property
    def kind(self) -> str:
        """What it is, without which of several it is."""
        return self.name.partition("/")[0]


SCENARIO = """\
cluster:
  accelerator: a100_80
  per_host: 8
  hosts: 1
  fabric: {kind: two_level, within: 200 GB/s, between: 20 GB/s, latency: 10 us}
workload:
  model: {kind: dlrm, dense_features: 13, embedding_features: 2, dimension: 32, bottom: [64, 32], top: [9, 1]}
  tables: [{name: items, rows: 20_000, dimension: 32, copies: 2}]
  keys: {kind: zipf, exponent: 1.05}
  batch: 256
sharding: {kind: row_wise, tier: hbm}
policy: {kind: serialized}
run: {batches: 12, warm_up: 4, seed: 7}
"""
GRID = """\
scenario: small.yaml
engine: vector
vary:
  - {path: policy, values: [{kind: serialized}, {kind: nestpipe, micro_batches: 2}]}
  - {path: workload.batch, range: {from: 64, to: 256, points: 2, scale: log, whole: true}}
  - together:
      - {path: run.seed, values: [1, 2]}
      - {path: workers, values: [8, 16]}
sample: {method: latin_hypercube, points: 3, seed: 3}
"""
QUESTION = """\
scenario: small.yaml
target: {samples: 1e9, within: 12 h, budget: 8 kUSD}
hardware:
  - name: a100
    workers: [8]
    settings: {workload.batch: 128}
    money: {price: 2 USD/h, power: 650 W}
policies: [{kind: serialized}, {kind: dual_buffer}]
limits: {staleness_steps: 1}
"""
GRAPH = "nodes:\n  - {name: spine, kind: switch}\n" + "".join(
    f"  - {{name: chip_{chip}, kind: accelerator}}\n" for chip in range(4)
) + "links:\n" + "".join(
    f"  - {{from: chip_{chip}, to: spine, bandwidth: 200 Gb/s, latency: 1 us}}\n" for chip in range(4)
)  # fmt: skip
NCCL = """\
mpirun -np 16 ./build/all_reduce_perf -b 1M -e 16M -f 2 -g 1
#  Rank  0 Group  0 Pid 11 on node-a device  0 [0000:04:00] ACME X100
#  Rank 15 Group  0 Pid 29 on node-b device  7 [0000:c8:00] ACME X100
NCCL version 2.29.3+cuda13.1
#       size         count      type   redop    root     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    135.5    7.74   14.51      0
     2097152        524288     float     sum      -1    235.5    8.91   16.70      0
     4194304       1048576     float     sum      -1    435.5    9.63   18.06      0
     8388608       2097152     float     sum      -1    835.5   10.04   18.83      0
"""
NCCL_ROW = {"size": 1048576, "count": 262144, "type": "float",
            "out_of_place": {"time": 135.5, "alg_bw": 7.74, "bus_bw": 14.5, "nwrong": 0.0}}  # fmt: skip
NCCL_REPORT = {
    "args": ["./build/all_reduce_perf", "-b", "8"],
    "nccl_version": 22903,
    "config": {
        "devices": [{"rank": rank, "hostname": f"host-{rank // 2}", "device_info": "H"} for rank in range(4)]
    },
    "results": [NCCL_ROW, {**NCCL_ROW, "size": 8}],
}
HCCL = """\
mpirun -n 16 ./bin/all_reduce_test -b 8K -e 64M -f 2 -p 8
data_size(Bytes) | aveg_time(us) | alg_bandwidth(GB/s) | check_result
8192 | 764.5 | 0.01071 | success
16384 | 780.1 | 0.02100 | success
"""
PARAM = "world_size: 8\n COMMS-RES-all_reduce-float 1024 256 41.1 42.2 43.3 40.0 44.4 0.02 0.04\n"
EVENTS = [
    {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{at}", "ts": 1000 * at, "dur": 999, "tid": 1}
    for at in (3, 4)
] + [
    {"ph": "X", "cat": kind, "name": name, "ts": 1000 * step + start, "dur": 300, "tid": 7, "args": {}}
    for step in (3, 4)
    for kind, name, start in (
        ("kernel", "volta_sgemm_128x32_tn", 100),
        ("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float", 400),
        ("gpu_memcpy", "Memcpy HtoD", 500),
    )
]  # fmt: skip
KINETO = {
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
    "deviceProperties": [{"id": 0, "name": "H100"}],
    "traceEvents": EVENTS,
}
SHAPES = {"values": [], "shapes": [[8, 4], [4, 2]], "types": ["Tensor(float)", "Tensor(float)"]}
CHAKRA = {
    "schema": "1.0.2-chakra.0.0.4",
    "nodes": [
        {"id": 2, "name": "aten::mm", "ctrl_deps": 1, "inputs": SHAPES, "attrs": []},
        {"id": 3, "name": "nccl:all_reduce", "ctrl_deps": 2, "inputs": SHAPES,
         "attrs": [{"name": "comm_type", "type": "int64", "value": 0}]},
    ],
}  # fmt: skip
TOPOLOGY = """\
\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV4\tPIX\t0-9\t0
GPU1\tNV4\t X \tPIX\t0-9\t0
NIC0\tPIX\tPIX\t X

Legend:
  X    = Self
"""
PLAN = """\
module: model.sparse

param    sharding type    compute kernel     ranks
-------  ---------------  -----------------  -------
users    table_wise       fused              [1]
items    row_wise         fused_uvm_caching  [0, 1]
days     data_parallel    dense              [0, 1]

param    shard offsets    shard sizes    placement
-------  ---------------  -------------  -------------
users    [0, 0]           [4096, 32]     rank:1/cuda:1
items    [0, 0]           [2048, 64]     rank:0/cuda:0
items    [2048, 0]        [2000, 64]     rank:1/cuda:1
"""
COPIES = "primitive,bytes,seconds\n" + "".join(
    f"copy,{2**power},{3e-6 + 2**power / 20e9!r}\n" for power in range(12, 22)
)
TRAINING = """\
case_id,benchmark,framework,accel,accel_memory,n_accel,n_nodes,global_batch,step_ms_median
ours_1x8,dlrm_dcnv2,HugeCTR 23.09,H100-SXM,80 GB,8,1,55296,4.1
"""
SETTINGS = (
    "workload.batch=512",
    "cluster.fabric={kind: flat, start_up: 34 us, inside: {kind: switch, bandwidth: 300 GB/s}}",
    "policy={kind: frozen_window, micro_batches: 4}",
    "run.jitter={compute: 5 %, all_to_all: 10 %}",
    "workload.tables=[{name: items, rows: 1e6, dimension: 64}]",
    "sharding.tier={kind: hbm_cache, share: 0.1}",
)
TORCHREC_JSON = ("shard", "small.yaml", "--export-torchrec", "plan.json")

IMPORT = ("calibrate", "import")
FIT = ("calibrate", "fit")


def seeds() -> list[Seed]:
    """Every kind of input but scenarios, which have a suite of their own."""
    keys = (
        ("keys", PLACE, "--batch", "16"),
        ("keys", PLACE, "--batch", "8", "--format", "json", "--caches", "50"),
    )
    logs = (("keys", PLACE, "--batch", "8"), ("import", "keys", PLACE, "--batch", "8"))
    graph = f"cluster.fabric={{kind: custom, file: {PLACE}, start_up: 3 us}}"
    curves = f"cluster.collectives={{file: {PLACE}, all_reduce: lab_nccl2_29_3_all_reduce}}"
    four = ("--set", "cluster.per_host=4")
    return [
        Seed("grid", YAML, "small.grid.yaml", (("sweep", PLACE, "--jobs", "1", "--out", "swept"),)),
        Seed("question", YAML, "small.plan.yaml", (("plan", PLACE, "--jobs", "1"),)),
        Seed("key log/csv", TEXT, "log.csv", keys),
        Seed("key log/events", TEXT, "events.csv",
             (("keys", PLACE, "--batch", "2", "--user", "user", "--item", "item", "--time", "time"),)),
        Seed("key log/gz", ZIPPED, "log.csv.gz", logs),
        Seed("key log/parquet", BYTES, "log.parquet", keys),
        Seed("key log/arrow", BYTES, "log.arrow", logs),
        Seed("key log/npz", BYTES, "log.npz", logs),
        Seed("key log/jsonl", TEXT, "log.jsonl", logs),
        Seed("key log/placing", TEXT, "items.csv", (("shard", "small.yaml", "--keys", PLACE),)),
        Seed("fabric graph", YAML, "graph.yaml", (("check", "small.yaml", *four, "--set", graph),)),
        Seed("nccl-tests", TEXT, "nccl.log",
             ((*IMPORT, "nccl-tests", PLACE), (*IMPORT, "rccl-tests", PLACE))),
        Seed("nccl-tests/json", JSON, "nccl.json", ((*IMPORT, "nccl-tests", PLACE),)),
        Seed("hccl-test", TEXT, "hccl.log", ((*IMPORT, "hccl-test", PLACE),)),
        Seed("param-comms", TEXT, "param.log", ((*IMPORT, "param-comms", PLACE, "--nodes", "1"),)),
        Seed("kineto", JSON, "rank0.json",
             ((*IMPORT, "kineto", PLACE), (*IMPORT, "kineto", PLACE, "rank1.json"))),
        Seed("chakra/json", JSON, "chakra.json", ((*IMPORT, "chakra", PLACE),)),
        Seed("chakra/protobuf", BYTES, "chakra.et", ((*IMPORT, "chakra", PLACE),)),
        Seed("topo", TEXT, "topo.txt", ((*IMPORT, "topo", PLACE, "--card", "200 Gb/s"),)),
        Seed("planner log", TEXT, "plan.txt", (("import", "torchrec", PLACE),)),
        Seed("planner log/json", JSON, "plan.json", (("import", "torchrec", PLACE),)),
        Seed("measured/csv", TEXT, "copies.csv", ((*FIT, "--measured", PLACE),)),
        Seed("measured/json", JSON, "machine.json", ((*FIT, "--measured", PLACE),)),
        Seed("collective tables", TEXT, "measured/tables.csv", ((*FIT, "--collectives", "measured"),)),
        Seed("collective tables/rows", TEXT, "measured/rows.csv", ((*FIT, "--collectives", "measured"),)),
        Seed("fitted/primitives", YAML, "primitives.yaml",
             (("check", "small.yaml", "--set", f"cluster.measured={{file: {PLACE}, memory_copy: copy}}"),)),
        Seed("fitted/curves", YAML, "curves.yaml",
             (("check", "small.yaml", "--set", "cluster.hosts=2", "--set", curves),)),
        Seed("validated/training", TEXT, "mine/training/mlperf_dlrm.csv", (("validate", "--data", "mine"),)),
        Seed("results", JSON, "results/run.json", (("report", "results", "--out", "page.html"),)),
        Seed("catalog name", WORD, "a100_80", (("catalog", "show", PLACE),)),
        *(Seed(f"setting/{number}", WORD, one, (("check", "small.yaml", "--set", PLACE),))
          for number, one in enumerate(SETTINGS)),
    ]  # fmt: skip


def write_seeds(folder: Path) -> None:
    """Write every seed into `folder`, which is the working folder of the commands."""
    texts = {
        "small.yaml": SCENARIO, "small.grid.yaml": GRID, "small.plan.yaml": QUESTION, "graph.yaml": GRAPH,
        "nccl.log": NCCL, "nccl.json": json.dumps(NCCL_REPORT), "hccl.log": HCCL, "param.log": PARAM,
        "rank0.json": json.dumps(KINETO), "chakra.json": json.dumps(CHAKRA),
        "rank1.json": json.dumps(KINETO).replace('"rank": 0', '"rank": 1'),
        "topo.txt": TOPOLOGY, "plan.txt": PLAN, "copies.csv": COPIES,
        "mine/training/mlperf_dlrm.csv": TRAINING,
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "chakra.et").write_bytes(protobuf())
    write_logs(folder)
    for words in made_by_commands():
        answer = judged(words)
        assert answer.code == 0, (words, answer)
    (folder / "machine.json").write_text(json.dumps(recording()), encoding="utf-8")


def recording() -> dict[str, Any]:
    """Return what this project measured once, with few of its parts."""
    whole = Path(__file__).parents[1] / "data" / "local_runs" / "servers_2.json"
    measured: dict[str, Any] = json.loads(whole.read_text(encoding="utf-8"))
    few = {name: measured[name][:1] for name in ("primitives", "software", "runs")}
    return {**measured, **few}


def made_by_commands() -> list[list[str]]:
    """Commands that make seeds from others."""
    return [
        [*IMPORT, "nccl-tests", "nccl.log", "--cluster", "lab", "--out", "measured"],
        [*FIT, "--collectives", "measured", "--out", "curves.yaml"],
        [*FIT, "--measured", "copies.csv", "--out", "primitives.yaml"],
        list(TORCHREC_JSON),
        ["run", "small.yaml", "--engine", "vector", "--out", "results"],
    ]


def write_logs(folder: Path) -> None:
    """Write one key log in every format."""
    import pyarrow
    from pyarrow import feather, parquet

    draw = random.Random(5)
    rows = [(draw.randrange(40), draw.randrange(9), draw.choice("abc")) for _ in range(60)]
    lines = [",".join(map(str, row)) for row in rows]
    text = "\n".join(["user,item,tag", *lines]) + "\n"
    (folder / "log.csv").write_text(text)
    (folder / "log.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    placed = "".join(f"{row[0]},{row[1]}\n" for row in rows * 5)
    (folder / "items.csv").write_text(f"items_0,items_1\n{placed}")
    (folder / "events.csv").write_text(
        "\n".join(["user,item,time", *(f"{row[1]},{row[0]},{at}" for at, row in enumerate(rows))]) + "\n"
    )
    named = [dict(zip(("user", "item", "tag"), row, strict=True)) for row in rows]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named))
    table = pyarrow.table({key: [row[key] for row in named] for key in named[0]})
    parquet.write_table(table, folder / "log.parquet")
    feather.write_feather(table, str(folder / "log.arrow"), compression="uncompressed")
    indices = np.array([row[0] for row in rows])
    np.savez(folder / "log.npz", indices=indices, offsets=np.arange(0, 60, 2))


def protobuf() -> bytes:
    """A Chakra trace of two nodes, in the wire format of protobuf."""

    def varint(number: int) -> bytes:
        found = b""
        while number > 127:
            found, number = found + bytes([number & 127 | 128]), number >> 7
        return found + bytes([number])

    def text(field: int, content: bytes) -> bytes:
        return varint(field << 3 | 2) + varint(len(content)) + content

    def whole(field: int, value: int) -> bytes:
        return varint(field << 3) + varint(value)

    size = text(10, text(1, b"comm_size") + whole(9, 4096))
    kind = text(10, text(1, b"comm_type") + whole(9, 6))
    product = whole(1, 1) + text(2, b"product") + whole(3, 4) + whole(7, 200)
    exchange = (
        whole(1, 2) + text(2, b"exchange") + whole(3, 7) + whole(7, 300) + text(5, varint(1)) + kind + size
    )
    return b"".join(varint(len(one)) + one for one in (text(1, b"0.0.4"), product, exchange))
