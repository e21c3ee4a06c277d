"""How many hosts a collective ran on: said by the log or a person, else taken as one and noted."""

import csv
from pathlib import Path

import pytest

from simulator.calibration.imports.collective_folder import Labels, write_folder
from simulator.calibration.imports.collective_rows import ONE_HOST, Facts, Found, Row, completed
from simulator.errors import Where

ROWS = (Row(1024, 5.0), Row(2048, 6.0))


@pytest.mark.parametrize(
    ("told", "given", "nodes", "note"),
    [
        (Facts("all_reduce", 64), Facts(), 1, ONE_HOST),
        (Facts("all_reduce", 64), Facts(nodes=8), 8, ""),
        (Facts("all_reduce", 64, 4), Facts(), 4, ""),
        (Facts("all_reduce", 64), Facts(nodes=1), 1, ""),
    ],
)
def test_one_host_is_assumed_only_with_a_note(
    tmp_path: Path, told: Facts, given: Facts, nodes: int, note: str
) -> None:
    tables = completed([Found(told, ROWS, Where("log.txt"))], given)
    assert [(one.nodes, one.note) for one in tables] == [(nodes, note)]
    write_folder(tmp_path, tables, Labels())
    with (tmp_path / "tables.csv").open(encoding="utf-8") as opened:
        assert [line["notes"] for line in csv.DictReader(opened)] == [note]
