"""Output of nccl-tests, rccl-tests, hccl_test and PARAM, in every layout and with noise around it."""

import json
from pathlib import Path

import pytest

from simulator.calibration.collective_tables import read_tables
from simulator.calibration.collectives import fit_folder
from simulator.calibration.imports.collective_folder import Labels, write_folder
from simulator.calibration.imports.collective_rows import Facts, Imported, completed, merged
from simulator.calibration.imports.hccl_test import read_hccl_test
from simulator.calibration.imports.kinds import read_any_nccl_tests
from simulator.calibration.imports.nccl_tests import read_nccl_tests
from simulator.calibration.imports.param_comms import read_param_comms
from simulator.errors import InputError

HEAD = (
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw\n"
)
DEVICES = "".join(
    f"#  Rank {rank:2} Group  0 Pid {100 + rank} on host-{rank // 2} device {rank % 2} [0x10] ACME H100\n"
    for rank in range(4)
)
RUN = "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20\n"


def kept(folder: Path, text: str, name: str = "log.txt") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("layout", "wrong", "in_place"),
    [
        ("1048576 262144 float sum -1 135.5 7.74 14.51 0 130.1 8.06 15.11 0", "0", 130.1),
        ("1048576 262144 float sum -1 135.5 7.74 14.51 3 130.1 8.06 15.11 0", "3", 130.1),
        ("1048576 262144 float none -1 135.5 7.74 14.51 0 130.1 8.06 15.11 N/A", "0", 130.1),
        ("1048576 262144 float sum 135.5 7.74 14.51 0e+00 130.1 8.06 15.11 1e-07", "", 130.1),
        ("1048576 262144 float 135.5 7.74 14.51 N/A 130.1 8.06 15.11 N/A", "", 130.1),
        ("1048576 262144 float sum 135.5 7.74 14.51 130.1 8.06 15.11", "", 130.1),
        ("1048576 262144 float sum 135.5 7.74 14.51", "", None),
        ("1048576 262144 float sum 0 135.5 7.74 14.51 0", "0", None),
        ("1048576 262144 float sum -1 135.5 7.74 14.51 0 130.1 8.06 15.11 0 2025-08-01 10:00:00", "0", 130.1),
    ],
)
@pytest.mark.parametrize(
    "noise", ["", "[1,0]<stdout>:", "0: ", "2025-08-01T10:00:00.1Z stdout F ", "\x1b[32m"]
)
def test_a_row_of_any_release_is_read_behind_any_prefix(
    tmp_path: Path, layout: str, wrong: str, in_place: float | None, noise: str
) -> None:
    (table,) = read_nccl_tests(kept(tmp_path, f"./all_reduce_perf -g 1\n{noise}   {layout}\n")).tables
    (row,) = table.rows
    assert (row.size, row.time_us, row.dtype) == (1048576, 135.5, "float")
    assert (row.wrong, row.in_place_us) == (wrong, in_place)


def test_a_log_of_several_tests_gives_several_tables(tmp_path: Path) -> None:
    one = HEAD + "  1024 256 float sum -1 36.50 0.03 0.05 0 36.16 0.03 0.05 0\n"
    text = (
        f"mpirun ./build/all_reduce_perf\n{RUN}{DEVICES}NCCL version 2.29.3+cuda13.1\n{one}# Avg bus\n"
        "worker-1: NCCL INFO Channel 00/24 : 0 1 2 3\n# nccl-tests version 2.17.6 nccl-library=22806\n"
        f"{RUN}# Collective test starting: alltoall_perf\n{DEVICES}{one}"
    )
    found = completed(read_nccl_tests(kept(tmp_path, text)).tables, Facts())
    assert [table.operation for table in found] == ["all_reduce", "all_to_all"]
    assert {(table.ranks, table.nodes, table.accelerator) for table in found} == {(4, 2, "ACME H100")}
    assert [table.library for table in found] == ["NCCL2.29.3", "NCCL2.28.6"]


def test_elided_device_lines_still_tell_the_ranks(tmp_path: Path) -> None:
    lines = DEVICES.splitlines(keepends=True)
    text = "all_gather_perf\n" + lines[0] + lines[3] + HEAD + "1024 256 float none -1 36.50 0.03 0.02 0\n"
    (table,) = completed(read_nccl_tests(kept(tmp_path, text)).tables, Facts())
    assert (table.ranks, table.nodes) == (4, 2)


def test_rows_that_contradict_themselves_or_are_cut_are_left_out_and_counted(tmp_path: Path) -> None:
    good = "1048576 262144 float sum -1 135.5 7.74 14.51 0\n"
    wrong = "2097152 524288 float sum -1 135.5 7.74 14.51 0\n4194304 1048576 float sum -1 500\n"
    text = f"all_reduce_perf\n{good}{wrong}"
    log = read_nccl_tests(kept(tmp_path, text))
    assert [row.size for row in log.tables[0].rows] == [1048576]
    assert log.notes == ("2 damaged lines were left out",)


def test_what_a_log_does_not_say_is_asked_for_by_name(tmp_path: Path) -> None:
    log = read_nccl_tests(kept(tmp_path, "1048576 262144 float sum -1 135.5 7.74 14.51 0\n"))
    with pytest.raises(InputError, match="give --collective"):
        completed(log.tables, Facts())
    with pytest.raises(InputError, match="give --ranks"):
        completed(log.tables, Facts("all_reduce"))
    with pytest.raises(InputError, match="8 ranks do not fill 3 nodes"):
        completed(log.tables, Facts("all_reduce", 8, 3))
    with pytest.raises(InputError, match=r'"all_redcue" is unknown .did you mean "all_reduce"'):
        completed(log.tables, Facts("all_redcue", 8))
    assert completed(log.tables, Facts("all_reduce", 8, 2))[0].nodes == 2


def test_the_json_report_of_nccl_tests_says_the_same_as_its_text(tmp_path: Path) -> None:
    row = {
        "size": 1048576,
        "count": 262144,
        "type": "float",
        "out_of_place": {"time": 135.5, "alg_bw": 7.74, "bus_bw": 14.5, "nwrong": 0.0},
        "in_place": {"time": 130.1, "alg_bw": 8.06, "bus_bw": 15.1, "nwrong": None},
    }
    devices = [
        {"rank": rank, "hostname": f"host-{rank // 2}", "device_info": "ACME H100 80GB"} for rank in range(4)
    ]
    report = {
        "args": ["./build/all_reduce_perf", "-b", "8"],
        "nccl_version": 22903,
        "config": {"devices": devices},
        "results": [row, {**row, "size": 8, "out_of_place": None}],
    }
    (table,) = completed(read_any_nccl_tests(kept(tmp_path, json.dumps(report))).tables, Facts())
    assert (table.operation, table.ranks, table.nodes, table.library) == ("all_reduce", 4, 2, "NCCL2.29.3")
    assert [(row.size, row.time_us, row.wrong, row.in_place_us) for row in table.rows] == [
        (1048576, 135.5, "0", 130.1)
    ]


def test_hccl_columns_are_found_by_their_names(tmp_path: Path) -> None:
    text = (
        "mpirun -n 16 /tools/hccl_test/bin/all_reduce_test -p 8 -b 8K -e 64M -f 2\n"
        "data_size(Bytes): |   aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n"
        "8192              |     764.55    |       0.00998        | success\n"
        "16384             |     770.0     |       0.02128        | failed\n"
        "65536 | \n"
        "check_result: | data_size(Bytes): | avg_time(us): | alg_bandwidth(GB/s):\n"
        "NULL | 1024 | 10.5 | 0.1\n"
    )
    log = read_hccl_test(kept(tmp_path, text))
    first, second = completed(log.tables, Facts())
    assert (first.operation, first.ranks, first.nodes) == ("all_reduce", 16, 2)
    assert [(row.size, row.time_us, row.wrong) for row in first.rows] == [
        (8192, 764.55, "0"),
        (16384, 770.0, "1"),
    ]
    assert [(row.size, row.time_us, row.wrong) for row in second.rows] == [(1024, 10.5, "")]
    assert log.notes == ("1 damaged lines were left out",)


def test_param_lines_of_all_releases_are_read(tmp_path: Path) -> None:
    text = (
        "world_size: 8\n"
        "0: \tCOMMS-RES-all_reduce-float32        1073741824         41.187      77.226\n"
        "\tCOMMS-RES-all_to_all   1048576   32768   120.5  121.0  125.0  110.2  130.0  8.702  7.614\n"
        "\tCOMMS-RES-all_to_all   2097152   65536   220.5  221.0  225.0  210.2  230.0  9.511  8.322 1.5\n"
        "\tCOMMS-RES-QUANT-all_to_all-float16\t 2097152   65536  10.0 200.0 10.0 220.0\n"
    )
    reduce, exchange = completed(read_param_comms(kept(tmp_path, text)).tables, Facts())
    assert reduce.rows[0].time_us == pytest.approx(1073741824 / 41.187e3)
    assert [(row.size, row.time_us) for row in exchange.rows] == [(1048576, 120.5), (2097152, 220.5)]
    assert (exchange.operation, exchange.ranks) == ("all_to_all", 8)


@pytest.mark.parametrize("lines", [True, False])
def test_param_metrics_are_read_as_a_list_and_line_by_line(tmp_path: Path, lines: bool) -> None:
    objects = [
        {"commsOp": "all_reduce", "Datatype": "float32", "InputSize": size, "p50_latency_us": size / 1e3}
        for size in (1024, 2048)
    ]
    text = "\n".join(map(json.dumps, objects)) if lines else json.dumps(objects)
    (table,) = read_param_comms(kept(tmp_path, text)).tables
    assert [(row.size, row.time_us) for row in table.rows] == [(1024, 1.024), (2048, 2.048)]


def imported(folder: Path, name: str, ranks: int) -> Imported:
    times = [(2**power, 20 + 2**power / 5e3) for power in range(3, 27)]
    rows = "".join(f"{size} 1 float sum -1 {us:.4f} {size / us / 1e3:.4f} 1 0\n" for size, us in times)
    log = read_nccl_tests(kept(folder, f"all_reduce_perf\n{rows}", name))
    return completed(log.tables, Facts(ranks=ranks, nodes=ranks // 8))[0]


def test_an_imported_folder_is_fitted_to_the_law_behind_it(tmp_path: Path) -> None:
    tables = [imported(tmp_path, "two", 16), imported(tmp_path, "four", 32), imported(tmp_path, "again", 16)]
    write_folder(tmp_path / "out", merged(tables), Labels("lab"))
    found = read_tables(tmp_path / "out")
    assert [(table.cluster, table.scale.nodes, len(table.sizes)) for table in found] == [
        ("lab", 2, 48),
        ("lab", 4, 24),
    ]
    (system,) = fit_folder(tmp_path / "out").fitted
    line = max(next(iter(system.lines.values())).segments.lines, key=lambda one: one.latency)
    assert line.bandwidth == pytest.approx(5e9, rel=0.05)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (Facts(ranks=8), "the log says 4 ranks, --ranks 8"),
        (Facts("all_gather"), "the log says all_reduce, --collective all_gather"),
    ],
)
def test_what_contradicts_a_log_is_refused_and_both_are_named(
    tmp_path: Path, given: Facts, problem: str
) -> None:
    text = f"all_reduce_perf\n{DEVICES}1048576 262144 float sum -1 135.5 7.74 14.51 0\n"
    log = read_nccl_tests(kept(tmp_path, text))
    with pytest.raises(InputError, match=problem):
        completed(log.tables, given)
    assert completed(log.tables, Facts("allreduce", 4))[0].ranks == 4


def test_the_name_of_a_file_is_a_guess_that_a_person_overrules(tmp_path: Path) -> None:
    log = read_nccl_tests(
        kept(tmp_path, "1048576 262144 float sum -1 135.5 7.74 14.51 0\n", "all_reduce.txt")
    )
    assert completed(log.tables, Facts(ranks=4))[0].operation == "all_reduce"
    assert completed(log.tables, Facts("all_gather", 4))[0].operation == "all_gather"


@pytest.mark.parametrize(("unit", "time_us"), [("us", 2.5), ("ms", 2500.0), ("s", 2.5e6)])
def test_hccl_times_are_read_in_the_unit_of_their_column(tmp_path: Path, unit: str, time_us: float) -> None:
    text = f"data_size(Bytes): | aveg_time({unit}): | alg_bandwidth(GB/s): | check_result:\n"
    log = read_hccl_test(kept(tmp_path, f"{text}8192 | 2.5 | 0.1 | success\n"))
    assert log.tables[0].rows[0].time_us == pytest.approx(time_us)


def test_hccl_times_in_an_unknown_unit_are_refused(tmp_path: Path) -> None:
    text = "data_size(Bytes): | aveg_time(ticks): | check_result:\n8192 | 2.5 | success\n"
    with pytest.raises(InputError, match=r'txt:1: times in "ticks": us, ms, s are read'):
        read_hccl_test(kept(tmp_path, text))
