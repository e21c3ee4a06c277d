"""Files that are empty, cut, binary, foreign or made to hurt: one line, and bounded memory."""

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.calibration.fit_table import read_series
from simulator.calibration.imports.collective_rows import Facts, completed
from simulator.calibration.imports.execution_trace import read_execution_trace
from simulator.calibration.imports.hccl_test import read_hccl_test
from simulator.calibration.imports.kinds import read_any_nccl_tests
from simulator.calibration.imports.kineto_events import read_trace
from simulator.calibration.imports.param_comms import read_param_comms
from simulator.calibration.imports.topology import read_topology
from simulator.errors import InputError

READERS: dict[str, Callable[[str], Any]] = {
    "nccl-tests": read_any_nccl_tests,
    "hccl-test": read_hccl_test,
    "param-comms": read_param_comms,
    "kineto": read_trace,
    "chakra": read_execution_trace,
    "topo": read_topology,
    "fit": lambda path: read_series(path),
}
EVENT = json.dumps({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {}})
FILES = {
    "empty": b"",
    "blank": b"\n\n  \n",
    "binary": bytes(range(256)) * 40,
    "text": b"hello\nworld\n",
    "foreign": b'{"a": [1, 2, 3]}',
    "list_of_numbers": b"[1, 2, 3]",
    "cut_json": b'{"traceEvents": [' + EVENT.encode() + b', {"ph": "X", "na',
    "cut_gzip": gzip.compress(os.urandom(10_000))[:5000],
    "no_gzip": b"\x1f\x8b" + bytes(range(200)),
    "nested": b"[" * 200_000,
    "nested_events": b'{"traceEvents": [' + b'{"a":' * 100_000,
    "long_line": b"x" * 3_000_000,
    "huge_number": b'{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1' + b"0" * 9000 + b"}]}",
    "bad_time": b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "now", "dur": 1}]}',
    "infinite": b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1e999, "dur": 1}]}',
    "no_arg": b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": "x"}]}',
    "host_only": b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "k", "ts": 1, "dur": 1}]}',
    "not_utf8": b'{"traceEvents": [{"name": "\xff\xfe"}]}',
}


@pytest.mark.parametrize("content", FILES)
@pytest.mark.parametrize("kind", READERS)
def test_what_is_not_of_the_kind_is_refused_in_one_line(tmp_path: Path, kind: str, content: str) -> None:
    path = tmp_path / content
    path.write_bytes(FILES[content])
    with pytest.raises(InputError) as refused:
        READERS[kind](str(path))
    message = str(refused.value)
    assert message.startswith(str(path)) and "\n" not in message and len(message) < len(str(path)) + 200


@pytest.mark.parametrize("kind", READERS)
def test_pipes_folders_and_missing_files_are_refused(tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("pipe", "not a regular file"), ("", "Is a directory"), ("missing", "No such file")):
        with pytest.raises(InputError, match=reason):
            READERS[kind](str(tmp_path / name))


def test_a_trace_is_read_in_memory_that_does_not_grow_with_what_is_ignored(tmp_path: Path) -> None:
    def peak(ignored: int) -> int:
        path = tmp_path / f"{ignored}.json"
        noise = json.dumps(
            {"ph": "X", "cat": "python_function", "name": "f" * 200, "ts": 1, "dur": 1, "args": {}}
        )
        with path.open("w") as file:
            file.write('{"traceEvents": [' + EVENT)
            for _ in range(ignored):
                file.write("," + noise)
            file.write("]}")
        tracemalloc.start()
        assert len(read_trace(str(path)).events.start) == 1
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(10)  # imports
    assert peak(8_000) < peak(1_000) + 300_000  # two megabytes more of file


def test_a_gzip_bomb_without_an_event_is_refused_early(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [{"name": "' + b"a" * 40_000_000, compresslevel=1))
    with pytest.raises(InputError, match="no element ends"):
        read_trace(str(path))


ROW = "135.5 7.74 14.51 0"
LONG = {
    "size of nccl-tests": ("nccl-tests", f"all_reduce_perf\n{{}} 1 float sum -1 {ROW}\n", 2),
    "rank of nccl-tests": (
        "nccl-tests",
        f"# Rank {{}} Pid 1 on h device 0 [0x1] A\n8 2 float sum -1 {ROW}\n",
        1,
    ),
    "library of nccl-tests": ("nccl-tests", f"nccl-library={{}}\n8 2 float sum -1 {ROW}\n", 1),
    "size of hccl_test": ("hccl-test", "mpirun -n 16 all_reduce_test\n{} | 764 | 0.1 | success\n", 2),
    "ranks of hccl_test": ("hccl-test", "mpirun -n {} all_reduce_test\n8192 | 764 | 0.1 | success\n", 1),
    "ranks of PARAM": ("param-comms", "world_size: {}\n COMMS-RES-all_reduce-float 1024 41.1 77.2\n", 1),
    "NVLinks": ("topo", "GPU0 GPU1\nGPU0 X NV{0}\nGPU1 NV{0} X\n", 2),
}


@pytest.mark.parametrize("digits", [400, 4301])
@pytest.mark.parametrize("place", LONG)
def test_whole_numbers_of_hundreds_of_digits_are_refused_with_their_line(
    tmp_path: Path, place: str, digits: int
) -> None:
    kind, text, line = LONG[place]
    path = tmp_path / "log"
    path.write_text(text.format("1" * digits))
    with pytest.raises(InputError) as refused:
        READERS[kind](str(path))
    assert str(refused.value).startswith(f"{path}:{line}: ") and len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("size", "time"), [("1" + "0" * 400, "1"), ("1e999", "1"), ("8", "1e999"), ("8", "1e-300")]
)
def test_reports_with_numbers_near_the_limits_of_floats_are_refused(
    tmp_path: Path, size: str, time: str
) -> None:
    path = tmp_path / "report.json"
    one = f'{{"size": {size}, "type": "float", "out_of_place": {{"time": {time}}}}}'
    path.write_text(f'{{"args": ["all_reduce_perf"], "results": [{one}]}}')
    with pytest.raises(InputError, match=r"a size of more|a time of|too large or not finite"):
        completed(read_any_nccl_tests(str(path)).tables, Facts(ranks=4))
