"""What a scenario may not say: contradictions and sizes beyond bounds are refused in one line."""

import pytest

from simulator.errors import InputError
from simulator.scenario import load, run_scenario
from simulator.scenario.shipped_files import shipped_folder


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("policy={kind: frozen_window, micro_batches: 9000}", "at most 1024"),
        ("policy={kind: dual_buffer, buffers: true}", "must be 1 or 2, not true"),
        ("policy={kind: fae, hot: true}", "must be a number from 0 to 1, not true"),
        ("sharding.tier={kind: remote, servers: 1e9}", "at most 1048576"),
        ("cluster.groups=[{accelerator: a100_80, hosts: 1e9}]", "hosts stands in them alone"),
        ("run.batches=100001", "at most 100000"),
        ("run.seed='07'", '"07" is text; write 7 without quotes'),
        ("run.seed='nan'", 'must be a whole number from 0 to 1e\\+15, not "nan"'),
        ("workload.tables[0].name=cat_9", 'two tables are called "cat_9"'),
        ("workload.tables[0].name=''", "a table needs a name"),
        ("workload.tables[0].copies=10000", None),
        ("workload.bucket=0 B", "a bucket must hold something"),
        ("cluster.compute={kind: utilization, share: 0, source: x}", "share must be above 0"),
        ("cluster.hosts=1000000", "workers are too many"),
        ("cluster.per_host=100000", "at most 4096"),
    ],
)
def test_a_contradiction_is_refused_with_its_reason(setting: str, words: str | None) -> None:
    path = shipped_folder() / "quickstart.yaml"
    if words is None:
        assert len(load(path, [setting, "sharding.tier=dram"]).workload.tables) == 10_025
        return
    with pytest.raises(InputError, match=words) as refusal:
        run_scenario(load(path, [setting]))
    assert "\n" not in str(refusal.value)


def test_more_micro_batches_than_samples_are_refused() -> None:
    settings = ["workload.batch=4", "policy={kind: nestpipe, micro_batches: 8}"]
    with pytest.raises(InputError, match="8 micro-batches are more than the 4 samples"):
        _ = load(shipped_folder() / "quickstart.yaml", settings).graph


def test_more_tables_than_can_be_looked_after_are_refused() -> None:
    many = [f"workload.tables[{i}].copies=10000" for i in range(3)]
    with pytest.raises(InputError, match="more than 20,000 tables"):
        _ = load(shipped_folder() / "quickstart.yaml", many).workload


def test_every_rank_on_its_own_is_refused_where_memory_would_not_do() -> None:
    huge = ["cluster.hosts=131072", "run.fold=off"]
    with pytest.raises(InputError, match="the run is too large"):
        run_scenario(load(shipped_folder() / "quickstart.yaml", huge))


def test_where_model_and_tables_disagree_the_report_says_so() -> None:
    settings = ["workload.model.embedding_features=27", "workload.tables[0].dimension=64"]
    notes = run_scenario(load(shipped_folder() / "quickstart.yaml", settings), "vector").report.notes
    assert any("27 embedding features, but there are 26 tables" in note for note in notes)
    assert any("rows have 64, 128 values" in note for note in notes)
