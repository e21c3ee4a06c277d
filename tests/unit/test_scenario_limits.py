"""What a scenario may not say: contradictions and sizes beyond bounds are refused in one line."""

import pytest

from simulator.errors import InputError
from simulator.scenario import load, run_scenario
from simulator.scenario.scenario import Scenario, ScenarioSpec
from simulator.scenario.shipped_files import shipped_folder
from simulator.scenario.ways_out import MOST_BUILT, _parts_built, _Tries

GROUP = "{accelerator: a100_80, hosts: 1}, "


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("policy={kind: frozen_window, micro_batches: 9000}", "at most 1024"),
        ("policy={kind: dual_buffer, buffers: true}", "must be 1 or 2, not true"),
        ("policy={kind: fae, hot: true}", "must be a number from 0 to 1, not true"),
        ("sharding.tier={kind: remote, servers: 1e9}", "at most 1048576"),
        ("cluster.groups=[{accelerator: a100_80, hosts: 1e9}]", "hosts stands in them alone"),
        (
            "cluster={accelerator: a100_80, per_host: 8, groups: [{accelerator: h100, hosts: 1}]}",
            "accelerator s",
        ),
        (
            "cluster={per_host: 8, host: dgx_1, groups: [{accelerator: h100, hosts: 1}]}",
            "leave out cluster.host",
        ),
        (
            "workload.model={kind: hstu, layers: 1, dimension: 8, sequence: 8, causal: 1}",
            "true or false, not 1",
        ),
        (
            "cluster.fabric={kind: torus, dims: [8], link_bandwidth: 50 GB/s, hop_latency: 1 us, wrap: 'no'}",
            'true or false, not "no"',
        ),
        ("run.batches=100001", "at most 100000"),
        ("run.batches=0", "from 1 to 100000, not 0"),
        ("cluster.per_host=0", "from 1 to 4096, not 0"),
        ("cluster.host_limit=0.5", "a number from 1 "),
        ("policy={kind: bagpipe, lookahead: 1}", "from 2 to 1000, not 1"),
        ("cluster.slow=[{hosts: [12], compute: 0.5}]", "host 12 of slow is not in a cluster of 1 host"),
        ("cluster.slow=[{ranks: [12], compute: 0.5}]", "rank 12 of slow is not in a cluster of 8 rank"),
        ("cluster.slow=[{ranks: [1]}]", r"cluster.slow\[0\]: says no share"),
        ("cluster.slow=[{compute: 0.5}]", r"cluster.slow\[0\]: names no hosts or ranks"),
        ("cluster.slow=[{ranks: [1], compute: 0}]", r"cluster.slow\[0\]: compute must be above 0"),
        (
            "policy={kind: nested, inter_batch: {kind: torchrec_semi_sync}, "
            "intra_batch: {kind: frozen_window, micro_batches: 4}}",
            "torchrec_semi_sync cannot be nested around frozen_window",
        ),
        (
            "sharding.tier={kind: hbm_cache, share: 0.1, hit_rate: 0.9, replacement: lru}",
            "hit_rate says what replacement would find",
        ),
        ("run.seed='07'", '"07" is text; write 7 without quotes'),
        ("run.seed='nan'", 'must be a whole number from 0 to 1e\\+15, not "nan"'),
        ("workload.tables[0].name=cat_9", 'two tables are called "cat_9"'),
        ("workload.tables[0].name=''", "a table needs a name"),
        ("workload.tables[0].copies=4000", None),
        ("workload.bucket=0 B", "a bucket must hold something"),
        ("cluster.compute={kind: utilization, share: 0, source: x}", "share must be above 0"),
        ("cluster.hosts=1000000", "workers are too many"),
        ("workload.tables[0].copies=4097", "at most 4096"),
        ("workload.model={kind: hstu, layers: 1001, dimension: 8, sequence: 8}", "at most 1000"),
        (f"cluster={{per_host: 8, groups: [{GROUP * 17}]}}", "at most 16"),
        ("cluster.per_host=100000", "at most 4096"),
    ],
)
def test_a_contradiction_is_refused_with_its_reason(setting: str, words: str | None) -> None:
    path = shipped_folder() / "quickstart.yaml"
    if words is None:
        assert len(load(path, [setting, "sharding.tier=dram"]).workload.tables) == 4_025
        return
    with pytest.raises(InputError, match=words) as refusal:
        run_scenario(load(path, [setting]))
    assert "\n" not in str(refusal.value)


def test_more_micro_batches_than_samples_are_refused() -> None:
    settings = ["workload.batch=4", "policy={kind: nestpipe, micro_batches: 8}"]
    with pytest.raises(InputError, match="8 micro-batches are more than the 4 samples"):
        _ = load(shipped_folder() / "quickstart.yaml", settings).graph


def test_more_tables_than_can_be_looked_after_are_refused() -> None:
    many = [f"workload.tables[{i}].copies=4000" for i in range(3)]
    with pytest.raises(InputError, match="more than 4,096 tables"):
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


@pytest.mark.parametrize(
    ("part", "field", "least", "most"),
    [
        ("ClusterSpec", "per_host", 1, 4096),
        ("RunSpec", "batches", 1, 100_000),
        ("IntervalSpec", "samples", 20, 10_000),
        ("RemoteSpec", "servers", 1, 2**20),
        ("BagpipeSpec", "lookahead", 2, 1000),
        ("NestpipeSpec", "micro_batches", 1, 1024),
        ("ReplicasSpec", "every", 1, 256),
        ("TableSpec", "copies", 1, 4096),
        ("HstuSpec", "layers", 1, 1000),
    ],
)
def test_the_schema_states_the_limits_that_hold(part: str, field: str, least: int, most: int) -> None:
    stated = ScenarioSpec.model_json_schema()["$defs"][part]["properties"][field]
    assert (stated["minimum"], stated["maximum"]) == (least, most)


@pytest.mark.parametrize("workers", [2**20 + 8, 10**15, 10**30])
def test_an_absurd_number_of_workers_is_refused_before_a_torus_is_shaped_for_it(workers: int) -> None:
    pod = load(shipped_folder() / "google/ads.yaml", [])
    with pytest.raises(
        InputError, match=r"--workers: .* workers are too many; at most 1,048,576 are allowed"
    ):
        pod.with_workers(workers)


def test_what_would_fit_is_searched_in_few_steps_where_a_scenario_takes_long_to_build() -> None:
    many = ["workload.tables[8].copies=2000", "workload.model.embedding_features=2015"]
    built: list[int] = []
    huge = load(shipped_folder() / "quickstart.yaml", many)

    def fits(scenario: Scenario, settings: list[str]) -> bool:
        return built.append(1) is None

    tried = _Tries(huge, fits, "workload.batch", 3)
    assert [tried(8) for _ in range(5)] == [True, True, True, False, False]
    assert len(built) == 3
    assert MOST_BUILT // _parts_built(huge) < 6
    assert MOST_BUILT // _parts_built(load(shipped_folder() / "quickstart.yaml", [])) > 100
