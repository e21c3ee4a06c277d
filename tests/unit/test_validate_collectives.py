"""Measured collectives in `validate`: every row once, bad ones listed with the reason, none ends the run."""

from pathlib import Path

import pytest

from analysis.nominal_links import nominal_seconds
from analysis.validated import Validated
from analysis.validating import validate_folder
from simulator.calibration.collective_tables import read_tables
from simulator.errors import InputError

HEAD = "table_id,group,collective,accel,n_ranks,n_nodes,nic_gbps_per_gpu,library,notes\n"
ROWS = "table_id,size_bytes,time_us,wrong\n"
SIZES = tuple(2**power for power in range(10, 20))


def table(name: str, words: str, group: str = "here") -> str:
    return f"{name},{group},{words},200,L,\n"


def sweep(name: str, nodes: int = 1) -> str:
    """A direct exchange: 5 us and a message at 10 GB/s for each of eight peers per node."""
    return "".join(f"{name},{size},{8 * nodes * (5 + size / 8 / nodes / 1e4)},0\n" for size in SIZES)


def folder(place: Path, tables: str, rows: str) -> Path:
    (place / "collectives").mkdir()
    (place / "collectives" / "tables.csv").write_text(HEAD + tables, encoding="utf-8-sig")
    (place / "collectives" / "rows.csv").write_text(ROWS + rows, encoding="utf-8")
    return place


def cases(place: Path, tables: str, rows: str) -> dict[str, Validated]:
    found = validate_folder(folder(place, tables, rows))
    assert len({case.case_id for case in found}) == len(found)
    return {case.case_id: case for case in found}


def test_each_row_is_one_case_and_only_the_end_sizes_are_extrapolated(tmp_path: Path) -> None:
    found = cases(tmp_path, table("t", "alltoall,A100,8,1"), sweep("t"))
    assert list(found) == [f"t {size} B" for size in SIZES]
    assert {case.role for case in found.values()} == {"predict"}
    assert [case.extrapolated for case in found.values()] == [True, *[False] * 8, True]
    assert all(abs(case.error or 1) < 0.1 for case in list(found.values())[1:-1])
    assert all(case.low and case.low < (case.predicted_ms or 0) for case in found.values())


def test_a_table_at_more_nodes_is_predicted_as_a_whole_from_the_smaller_ones(tmp_path: Path) -> None:
    heads = [table(f"t{n}", f"alltoall,A100,{8 * n},{n}", f"here_{n}n") for n in (2, 4, 64)]
    found = cases(tmp_path, "".join(heads), "".join(sweep(f"t{n}", n) for n in (2, 4, 64)))
    groups = {
        case.case_id.split()[0]: case.group for case in found.values() if case.case_id.endswith(" 4096 B")
    }
    assert groups["t4"] == "all_to_all, larger scales", "from 2 nodes"
    assert groups["t2"] == groups["t64"] == "all_to_all, other sizes", "nothing is at a quarter of 64 nodes"
    four = [case for case in found.values() if case.case_id.startswith("t4 ")]
    assert all(case.unlike == ("4 nodes from at most 2",) for case in four)


BAD = {
    "an unknown collective": (table("x", "gather,A100,8,1"), "x,1024,5,0\n", '"gather" is unknown'),
    "ranks that do not fill hosts": (table("x", "alltoall,A100,10,4"), "x,1024,5,0\n", "evenly over 4 nodes"),
    "no number of ranks": (table("x", "alltoall,A100,many,1"), "x,1024,5,0\n", "a positive number"),
    "a time of zero": (table("x", "alltoall,A100,8,1"), "x,1024,0,0\n", "no usable row"),
    "a time in words": (table("x", "alltoall,A100,8,1"), sweep("x") + "x,3,N/A,0\n", "a positive number"),
    "a negative time": (table("x", "alltoall,A100,8,1"), sweep("x") + "x,3,-3,0\n", 'not "-3"'),
    "wrong results": (table("x", "alltoall,A100,8,1"), sweep("x") + "x,3000,5,7\n", "counted wrong results"),
    "a message of nothing": (table("x", "alltoall,A100,8,1"), sweep("x") + "x,0,5,0\n", "zero bytes"),
    "a single size": (table("x", "alltoall,A100,8,1"), "x,1024,5,0\n", "one size only"),
    "a table without rows": (table("x", "alltoall,A100,8,1"), "", "no row of the table"),
    "rows without a table": ("", "x,1024,5,0\n", 'no table "x"'),
    "a table for noise studies": (
        "x,other,alltoall,A100,8,1,200,L,fit for noise studies only\n",
        "x,1024,5,0\n",
        "noise studies only",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_predicted_is_listed_and_the_rest_is_predicted(tmp_path: Path, name: str) -> None:
    head, rows, reason = BAD[name]
    found = cases(tmp_path, table("t", "alltoall,A100,8,1") + head, sweep("t") + rows)
    assert len(found) == len(SIZES) + max(1, rows.count("\n"))
    (silent,) = [case for case in found.values() if case.role == "none"]
    assert silent.predicted_ms is silent.error is silent.low is None
    assert silent.note.startswith("not predicted: ") and reason in silent.note
    assert all(case.predicted_ms for case in found.values() if case is not silent)


def test_repeats_of_a_size_are_hidden_together_and_told_apart(tmp_path: Path) -> None:
    found = cases(tmp_path, table("t", "alltoall,A100,8,1"), sweep("t") + "t,4096,99,0\n")
    first, again = found["t 4096 B"], found["t 4096 B (2)"]
    assert first.predicted_ms == again.predicted_ms and first.configuration == again.configuration
    assert first.predicted_ms == pytest.approx(0.0405, rel=0.01), "neither repeat is in its own prediction"


def test_two_sizes_give_each_other_in_proportion(tmp_path: Path) -> None:
    found = cases(tmp_path, table("t", "allreduce,A100,8,1"), "t,1000000,100,0\nt,4000000,390,0\n")
    assert [case.predicted_ms for case in found.values()] == pytest.approx([0.0975, 0.4])
    assert all(case.extrapolated for case in found.values())


def test_beside_each_stands_bytes_over_the_nominal_rate(tmp_path: Path) -> None:
    heads = table("in", "allreduce,A100,8,1") + table("out", "alltoall,A100,16,2", "a")
    heads += table("ring", "allreduce,A100,16,2", "b") + table("strange", "allreduce,Z9,8,1", "c")
    place = folder(tmp_path, heads, "".join(sweep(name) for name in ("in", "out", "ring", "strange")))
    found = {one.name: nominal_seconds(one, 1e9) for one in read_tables(place / "collectives")}
    assert found["in"] == pytest.approx(2 * 7 / 8 * 1e9 / 300e9), "NVLink, bus bandwidth"
    assert found["out"] == pytest.approx(8 / 16 * 1e9 / 25e9), "half of the peers are on the other host"
    assert found["ring"] == pytest.approx(2 * 15 / 16 * 1e9 / (8 * 25e9)), "all eight cards of a host"
    assert found["strange"] is None


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("rows.csv", None, "cannot be read"),
        ("rows.csv", "table_id,time_us\n", "no column size_bytes"),
        ("tables.csv", HEAD + table("t", "alltoall,A,8,1") * 2, "given twice"),
        ("tables.csv", "", "no column table_id"),
    ],
)
def test_files_that_are_no_tables_end_the_run(
    tmp_path: Path, file: str, text: str | None, message: str
) -> None:
    place = folder(tmp_path, table("t", "alltoall,A100,8,1"), sweep("t")) / "collectives" / file
    place.unlink()
    if text is not None:
        place.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        validate_folder(tmp_path)
    assert message in str(refused.value) or "there is no such file" in str(refused.value)


def test_the_measured_tables_are_all_there(measured_data: Path) -> None:
    from analysis.validating_collectives import collectives

    found = collectives(measured_data)
    lines = (measured_data / "collectives" / "rows.csv").read_text(encoding="utf-8").splitlines()
    assert len(found) == len({case.case_id for case in found}) == len(lines) - 1
    assert all(case.predicted_ms is not None or case.note for case in found)
