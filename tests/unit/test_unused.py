"""Settings that change nothing are named in the report, and settings that work are not."""

import pytest

from simulator.scenario import load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

CURVE = "sb_a100_nccl2_8_2_10_all_to_all"


def notes(file: str, *settings: str) -> list[str]:
    found = run_scenario(load(shipped_folder() / file, list(settings)), "vector").report.notes
    return [note for note in found if "not used" in note]


@pytest.mark.parametrize(
    ("file", "settings", "unused"),
    [
        ("servers/caught_up.yaml", [], ""),
        ("servers/caught_up.yaml", ["sharding.tier=dram", "policy={kind: serialized}"], "cluster.servers"),
        ("quickstart.yaml", [f"cluster.collectives={{all_to_all: {CURVE}}}"], ""),
        (
            "quickstart.yaml",
            [
                f"cluster.collectives={{all_to_all: {CURVE}}}",
                "sharding={kind: data_parallel}",
                "workload.batch=64",
            ]
            + [f"workload.tables[{i}].rows=1000" for i in range(6)],
            "collectives.all_to_all",
        ),
        ("quickstart.yaml", ["cluster.collectives={algorithms: {broadcast: tree}}"], "algorithms.broadcast"),
        ("servers/caught_up.yaml", ["cluster.unexplained_host_time=1 ms"], "unexplained_host_time"),
        ("servers/caught_up.yaml", ["cluster.unexplained_host_time=1 ms", "policy={kind: serialized}"], ""),
        ("quickstart.yaml", ["cluster.collectives={algorithms: {all_reduce: ring}, per_peer: 1 us}"], ""),
    ],
)
def test_what_a_run_does_not_use_stands_among_its_notes(file: str, settings: list[str], unused: str) -> None:
    found = notes(file, *settings)
    assert bool(found) == bool(unused)
    assert all(unused in note for note in found)
