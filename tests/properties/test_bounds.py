"""The lower bound of a step is one: unlike ranks and hosts, random spread, buckets, servers, both engines."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator.engine.shortest import shortest
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.bounds import least_step_ns

QUIET = list(HealthCheck)
TEXT = """
cluster:
  accelerator: a100_80
  per_host: 4
  hosts: 2
  host: {name: h, cores: 64, dram_bytes: 2 TB, dram_bandwidth: 100 GB/s, dram_efficiency: 0.5}
  fabric: {kind: two_level, within: 100 GB/s, between: 5 GB/s, latency: 10 us}
workload:
  model: {kind: mlp, inputs: 256, layers: [1024, 512, 1], precision: tf32}
  tables:
    - {name: users, rows: 1e6, dimension: 64, pooling: 20}
    - {name: items, rows: 1e5, dimension: 128}
  keys: {kind: zipf, exponent: 1.0}
  batch: 512
  input: {bytes: 400 B, cpu_time: 2 us}
sharding: {kind: row_wise}
policy: {kind: serialized}
run: {batches: 40, warm_up: 12}
"""
HOST = "{name: g, cores: %d, dram_bytes: 2 TB, dram_bandwidth: %d GB/s, dram_efficiency: 0.5}"
GROUPS = (
    f"cluster={{per_host: 4, groups: [{{accelerator: a100_80, hosts: 1, host: {HOST % (64, 100)}}}, "
    f"{{accelerator: h100, hosts: 1, host: {HOST % (8, 40)}}}], "
    "fabric: {kind: two_level, within: 100 GB/s, between: 5 GB/s, latency: 10 us}}"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    path = tmp_path_factory.mktemp("bounds") / "random.yaml"
    path.write_text(TEXT)
    return load(path)


POLICIES: list[dict[str, Any]] = [
    *({"kind": kind} for kind in ("serialized", "stale_prefetch", "dual_buffer", "torchrec_sparse_dist")),
    {"kind": "nestpipe", "micro_batches": 2},
    {"kind": "frozen_window", "micro_batches": 3},
    {"kind": "hugectr"},
]
SERVED: list[dict[str, Any]] = [{"kind": "rpc_coalesced"}, {"kind": "bagpipe", "lookahead": 8}]


@st.composite
def cases(draw: Any) -> tuple[dict[str, Any], list[str]]:
    """A policy, and settings that make ranks unlike, stages meet and durations vary."""
    tier = draw(st.sampled_from(("dram", "hbm")))
    chosen = [
        f"sharding.kind={draw(st.sampled_from(('row_wise', 'table_wise')))}",
        f"sharding.tier={tier}",
        f"workload.batch={draw(st.sampled_from((64, 512, 4096)))}",
        f"workload.input.cpu_time={draw(st.sampled_from(('0 us', '2 us', '50 us')))}",
        f"cluster.fabric.between={draw(st.sampled_from(('20 MB/s', '1 GB/s', '50 GB/s')))}",
        f"run.contention={draw(st.sampled_from(('true', 'true', 'false')))}",
        f"run.seed={draw(st.integers(0, 99))}",
    ]
    chosen += draw(st.sampled_from(([], ["cluster.host_limit=2"], ["cluster.host_limit=1"])))
    chosen += draw(st.sampled_from(([], ["cluster.slow=[{ranks: [1], memory: 0.3, host: 0.5}]"])))
    unlike = draw(st.sampled_from(("no", "groups", "owners")))
    if unlike == "owners" and "sharding.kind=row_wise" in chosen:
        chosen += ["sharding.owners=drawn"]
    varied = draw(st.sampled_from(("no", "jitter", "fold", "off")))
    kinds = ("compute", "input", "lookup", "all_to_all", "all_reduce")
    chosen += {
        "jitter": [f"run.jitter.{kind}=30%" for kind in kinds],
        "fold": ["run.fold={within: 10%}"],
        "off": ["run.fold=off"],
        "no": [],
    }[varied]
    served = draw(st.integers(0, 4)) == 0
    if served:
        chosen[:2] = ["sharding={kind: row_wise, tier: {kind: remote, servers: 2}}"]
        chosen = [one for one in chosen if "owners" not in one]
    chosen[:0] = [GROUPS] if unlike == "groups" else []
    return draw(st.sampled_from(SERVED if served else POLICIES)), chosen


def check(base: Scenario, case: tuple[dict[str, Any], list[str]]) -> None:
    policy, settings_ = case
    batches = ["run.batches=64", "run.warm_up=20"] if policy["kind"] == "bagpipe" else []
    scenario = base.with_policy(policy).with_overrides([*settings_, *batches])
    least = least_step_ns(scenario)
    for engine in ("events", "vector"):
        run = run_scenario(scenario, engine)
        report = run.report
        assert report.lower_bound_ms <= report.step_ms["mean"], (engine, case)
        assert least <= run.breakdown.step_ns * (1 + 1e-12), (engine, case)
        ran = run.timeline.end_ns - run.timeline.began_ns
        if scenario.spec.run.contention and engine == "events" and run.durations.longer is None:
            ours = shortest(run.timeline.graph, run.durations, scenario.costs)
            every = ours.ns[:, :, ours.column_of]
            assert (ran[:, :, run.timeline.column_of] >= every).all(), case


@pytest.mark.parametrize("engine", ["events", "vector"])
def test_a_step_that_is_shorter_than_its_bound_by_more_than_rounding_ends_the_run(
    base: Scenario, engine: str
) -> None:
    run = run_scenario(base, engine)
    assert run.lower_bound_ns <= run.breakdown.step_ns
    quicker = replace(run, timeline=replace(run.timeline, end_ns=run.timeline.end_ns // 16))
    with pytest.raises(AssertionError, match="shorter than the shortest durations allow"):
        quicker.lower_bound_ns  # noqa: B018


@settings(max_examples=25, suppress_health_check=QUIET)
@given(cases())
def test_no_step_is_shorter_than_its_lower_bound(
    base: Scenario, case: tuple[dict[str, Any], list[str]]
) -> None:
    check(base, case)


@pytest.mark.nightly
@settings(max_examples=600, suppress_health_check=QUIET)
@given(cases())
def test_no_step_of_many_is_shorter_than_its_lower_bound(
    base: Scenario, case: tuple[dict[str, Any], list[str]]
) -> None:
    check(base, case)
