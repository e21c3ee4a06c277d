"""`recscale calibrate import` and `calibrate fit --measured`, as typed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from analysis.cli.running import run

Command = Callable[..., tuple[int, str, str]]
LOG = """\
mpirun -np 4 ./build/all_reduce_perf -b 8
#  Rank  0 Group  0 Pid  1 on a device  0 [0x10] ACME H100
#  Rank  3 Group  0 Pid  4 on b device  1 [0x10] ACME H100
#       size         count      type   redop    root     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    135.5    7.74   11.61      0
     2097152        524288     float     sum      -1    235.5    8.91   13.36      0
     4194304       1048576     float     sum      -1    435.5    9.63   14.45      0
"""
EVENTS = [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "ts": 0, "dur": 1000, "tid": 1},
    {"ph": "X", "cat": "kernel", "name": "volta_sgemm_tn", "ts": 100, "dur": 400, "tid": 7, "args": {}},
    {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce", "ts": 400, "dur": 300, "tid": 8, "args": {}},
]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "80")

    def command(*words: str) -> tuple[int, str, str]:
        code = run(["calibrate", *words])
        return (code, *capsys.readouterr())

    return command


def kept(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


@pytest.mark.parametrize("kind", ["nccl-tests", "rccl-tests"])
def test_a_log_becomes_a_folder_that_fit_reads(told: Command, tmp_path: Path, kind: str) -> None:
    log, out = kept(tmp_path, "log", LOG), str(tmp_path / "tables")
    code, table, err = told("import", kind, log, "--cluster", "lab", "--out", out)
    assert (
        code == 0 and "all_reduce" in table and err == f"recscale: wrote tables.csv and rows.csv to {out}\n"
    )
    data = json.loads(told("fit", "--collectives", out, "--format", "json")[1])
    assert [(row["system"], row["nodes"], row["ranks"]) for row in data["systems"]] == [
        ("lab_unnamed_all_reduce", [2], [4])
    ]


def test_json_and_csv_tell_the_tables(told: Command, tmp_path: Path) -> None:
    log = kept(tmp_path, "log", LOG + "8388608 2097152 float sum -1 1 1 1 1\n")
    data = json.loads(told("import", "nccl-tests", log, "--format", "json")[1])
    assert data["kind"] == "nccl-tests" and data["tables"][0]["n_ranks"] == 4
    assert data["notes"] == [f"{log}: 1 damaged lines were left out"]
    header, row, *_ = told("import", "nccl-tests", log, "--format", "csv")[1].splitlines()
    assert header.startswith("table_id,") and "all_reduce" in row


def test_a_trace_is_told_as_table_json_and_file(told: Command, tmp_path: Path) -> None:
    file, out = (
        kept(tmp_path, "trace.json", json.dumps({"traceEvents": EVENTS})),
        str(tmp_path / "steps.json"),
    )
    code, table, err = told("import", "kineto", file, "--out", out)
    assert code == 0 and "gemm" in table and max(map(len, table.splitlines())) <= 80
    assert err == f"recscale: wrote {out}\n"
    data = json.loads(told("import", "kineto", file, "--format", "json")[1])
    assert data == json.loads(Path(out).read_text())
    (step,) = data["ranks"][0]["steps"]
    assert (step["step_ms"], step["compute_ms"], step["exposed_ms"], step["idle_ms"]) == pytest.approx(
        (1.0, 0.4, 0.2, 0.4)
    )


def test_an_execution_trace_is_told(told: Command, tmp_path: Path) -> None:
    graph = {"workload_graph": [{"Id": 1, "Name": "x", "NodeType": 7, "comm_type": 0, "comm_size": 64}]}
    file = kept(tmp_path, "et.json", json.dumps(graph))
    code, table, _ = told("import", "chakra", file)
    assert code == 0 and "all_reduce" in table and "64 B" in table


def test_the_wiring_is_written_as_a_part_of_a_scenario(told: Command, tmp_path: Path) -> None:
    file = kept(tmp_path, "topo", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-9\nGPU1\tNV4\t X \t0-9\n")
    code, text, _ = told("import", "topo", file, "--nvlink", "50 GB/s")
    fabric = yaml.safe_load(text)["cluster"]["fabric"]
    assert code == 0 and fabric["inside"] == {"kind": "full_mesh", "bandwidth": "200 GB/s"}
    code, _, err = told("import", "topo", file, "--nvlink", "50")
    assert code == 2 and err.startswith("recscale: --nvlink: ") and "unit" in err


def test_wrong_files_cost_one_line_and_code_2(told: Command, tmp_path: Path) -> None:
    empty = kept(tmp_path, "empty", "")
    for kind in ("nccl-tests", "rccl-tests", "hccl-test", "param-comms", "kineto", "chakra", "topo"):
        code, out, err = told("import", kind, empty)
        assert (code, out, err) == (2, "", f"recscale: {empty}: is empty\n")


def test_measured_primitives_are_fitted_and_written(told: Command, tmp_path: Path) -> None:
    lines = "".join(f"copy,{2**power},{1e-6 + 2**power / 1e9!r}\n" for power in range(10, 24))
    file, out = kept(tmp_path, "m.csv", "primitive,bytes,seconds\n" + lines), tmp_path / "fit.yaml"
    code, table, err = told("fit", "--measured", file, "--out", str(out))
    assert code == 0 and "copy" in table and err == f"recscale: wrote {out}\n"
    entry = yaml.safe_load(out.read_text())["entries"]["copy"]
    assert entry["form"] == "affine" and entry["parameters"]["bytes"]["value"] == pytest.approx(1e9, rel=1e-3)
    data = json.loads(told("fit", "--measured", file, "--format", "json")[1])
    assert data["primitives"][0]["held_out_median"] < 1e-3


def test_fit_takes_one_kind_of_measurement(told: Command, tmp_path: Path) -> None:
    code, _, err = told("fit")
    assert code == 2 and err == "recscale: give either --collectives DIR or --measured FILE\n"


def test_ranks_that_contradict_the_log_are_refused(told: Command, tmp_path: Path) -> None:
    code, out, err = told("import", "nccl-tests", kept(tmp_path, "log", LOG), "--ranks", "16")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "the log says 4 ranks, --ranks 16" in err


def test_an_import_never_overwrites_the_one_before(told: Command, tmp_path: Path) -> None:
    log, out = kept(tmp_path, "log", LOG), tmp_path / "tables"
    assert told("import", "nccl-tests", log, "--cluster", "first", "--out", str(out))[0] == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    code, shown, err = told("import", "nccl-tests", log, "--cluster", "second", "--out", str(out))
    assert (code, shown) == (2, "")
    assert err.startswith(f"recscale: {out}/tables.csv: is there already, from an import before")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    (out / "tables.csv").unlink()
    assert told("import", "nccl-tests", log, "--out", str(out))[2].startswith(f"recscale: {out}/rows.csv: is")
