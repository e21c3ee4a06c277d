"""The folder that `validate` reads: parts by name, each with one of its files, or a plain answer."""

from pathlib import Path

import pytest

from analysis.validating import PARTS, validate_folder
from simulator.errors import InputError

WRONG = {
    "training/mlperf.csv": "training: holds none of mlperf_dlrm.csv, other_benchmarks.csv",
    "collectives/table.csv": "collectives: holds none of tables.csv",
    "kernels/products.csv": r"kernels: holds none of gemm\*.csv",
    "traces/notes.txt": "traces: holds none of",
    "local_runs/run.yaml": r"local_runs: holds none of \*.json",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_part_with_none_of_its_files_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=WRONG[name]):
        validate_folder(tmp_path)


@pytest.mark.parametrize("wrong", ["colectives", "Kernels", "local-runs", "trainings", "trace"])
def test_a_part_with_a_misspelt_name_is_refused(tmp_path: Path, wrong: str) -> None:
    (tmp_path / wrong).mkdir()
    with pytest.raises(InputError, match="did you mean") as refused:
        validate_folder(tmp_path)
    assert any(f'"{part}"' in str(refused.value) for part in PARTS)


def test_folders_of_other_things_are_passed_over(tmp_path: Path) -> None:
    for name in ("access_traces", "cluster", "kernels"):
        (tmp_path / name).mkdir()
    head, row = "device,batch,m,n,k,dtypes,time_us\n", "H100-SXM,1,300,300,384,bf16xbf16->bf16,9\n"
    (tmp_path / "kernels" / "gemm.csv").write_text(head + row + row, encoding="utf-8")
    found = validate_folder(tmp_path)
    assert len({case.case_id for case in found}) == len(found) == 2, "a row twice is two cases"


TABLES = {
    "kernels/gemm.csv": "device,batch,m,n,k,dtypes,time_us\n",
    "training/other_benchmarks.csv": "case_id,model_config_id,accel,n_accel,metric,value,unit\n",
    "training/mlperf_dlrm.csv": "case_id,benchmark,accel,n_accel,step_ms_median\n",
    "collectives/tables.csv": "table_id,group,collective,accel,n_ranks,n_nodes\n",
}


def headed(place: Path, name: str) -> None:
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_text(TABLES[name], encoding="utf-8")
    if name.startswith("collectives"):
        (place / "collectives" / "rows.csv").write_text("table_id,size_bytes,time_us\n", encoding="utf-8")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_a_header_alone_is_refused_by_name(tmp_path: Path, name: str) -> None:
    headed(tmp_path, name)
    with pytest.raises(InputError, match=f"{name}: holds no rows") as refused:
        validate_folder(tmp_path)
    assert refused.value.exit_code == 2


def test_several_tables_without_rows_are_all_named(tmp_path: Path) -> None:
    for name in TABLES:
        headed(tmp_path, name)
    with pytest.raises(InputError, match="holds no rows") as refused:
        validate_folder(tmp_path)
    assert all(name in str(refused.value) for name in TABLES)


def test_a_table_without_rows_beside_others_is_listed(tmp_path: Path) -> None:
    for name in TABLES:
        headed(tmp_path, name)
    with (tmp_path / "kernels" / "gemm.csv").open("a", encoding="utf-8") as file:
        file.write("H100-SXM,1,300,300,384,bf16xbf16->bf16,9\n")
    found = {case.case_id: case for case in validate_folder(tmp_path)}
    silent = {name for name, case in found.items() if case.role == "none"}
    assert silent == TABLES.keys() - {"kernels/gemm.csv"} and len(found) == 4
    assert all(found[name].note == "not predicted: holds no rows" for name in silent)
