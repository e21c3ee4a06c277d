"""A cache in device memory is worth what it holds: never more than all rows in device memory."""

from itertools import pairwise

import pytest

from simulator.policies import catalog
from simulator.scenario import load, run_scenario

PLAIN = """
name: tiers
cluster: {accelerator: h100, per_host: 2, hosts: 1, host: dgx_h100, fabric: dgx_h100}
workload:
  model: {kind: dlrm, dense_features: 64, embedding_features: 4, dimension: 128, bottom: [128, 128],
    top: [512, 1], precision: fp32}
  tables: [{name: t, rows: 100_000, dimension: 128, pooling: 10, copies: 4}]
  keys: KEYS
  batch: 4096
sharding: {kind: table_wise, tier: hbm, exchange: EXCHANGE}
policy: {kind: serialized}
run: {batches: 24, warm_up: 8}
"""
SHARES = (0.0, 0.01, 0.2, 0.6, 0.9, 1.0)
OVERLAPPING = (
    "serialized",
    "dual_buffer",
    "torchrec_base",
    "torchrec_sparse_dist",
    "torchrec_fused",
    "torchrec_prefetch",
    "torchrec_semi_sync",
    "stale_prefetch",
    "frozen_window",
    "gradient_accumulation",
    "nestpipe",
    "hugectr",
)
# They read rows whenever the network is free: how long a retrieval takes decides what it shares memory
# bandwidth with, by up to 1 % of a step either way. So they are compared without contention.
UNCONTENDED = {"stale_prefetch", "torchrec_semi_sync"}
KEYS = ("{kind: uniform}", "{kind: zipf, exponent: 1.0}")


def steps(tmp_path_factory: pytest.TempPathFactory, policy: str, keys: str, exchange: str) -> list[float]:
    """Return the steps with no cache, caches that grow, and everything in device memory, ms."""
    path = tmp_path_factory.mktemp("tiers") / "tiers.yaml"
    path.write_text(PLAIN.replace("KEYS", keys).replace("EXCHANGE", exchange))
    scenario = load(path).with_policy({"kind": policy, **MORE.get(policy, {})})
    tiers = ["dram", *(f"{{kind: hbm_cache, share: {share}}}" for share in SHARES), "hbm"]
    engine = "vector" if policy in UNCONTENDED else "events"
    runs = (run_scenario(scenario.with_overrides([f"sharding.tier={tier}"]), engine) for tier in tiers)
    return [run.report.step_ms["mean"] for run in runs]


MORE = {"frozen_window": {"micro_batches": 2}, "nestpipe": {"micro_batches": 2}}
CASES = [
    pytest.param(policy, keys, exchange, id=f"{policy}-{keys.split()[1].rstrip(',}')}-{exchange}")
    for policy in OVERLAPPING
    for keys in KEYS
    for exchange in ("pooled", "rows")
]


@pytest.mark.nightly
@pytest.mark.parametrize(("policy", "keys", "exchange"), CASES)
def test_no_cache_whatever_its_size_is_faster_than_all_rows_in_device_memory(
    policy: str, keys: str, exchange: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    *slower, all_in_hbm = steps(tmp_path_factory, policy, keys, exchange)
    assert min(slower) >= all_in_hbm * (1 - 1e-9)
    for less, more in pairwise(slower):
        assert more <= less * (1 + 1e-9), slower


def test_prefetch_gains_nothing_that_the_tables_have_no_memory_for(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    keys, exchange = KEYS[0], "pooled"
    plain = steps(tmp_path_factory, "torchrec_sparse_dist", keys, exchange)
    ahead = steps(tmp_path_factory, "torchrec_prefetch", keys, exchange)
    assert ahead[:4] == plain[:4]  # no cache, or one that does not hold a batch
    assert ahead[5] < plain[5]
    assert ahead[-1] == plain[-1] == min(ahead)


def test_every_policy_that_can_run_beside_a_cache_is_looked_at() -> None:
    """The others deal with parameter servers, keep copies of all tables, or need sparse cores."""
    others = {"rpc_per_table", "rpc_coalesced", "no_cache", "bagpipe", "fae", "het", "two_d_sparse"}
    others |= {"sparse_core", "sparse_core_pipelined"}
    assert {*OVERLAPPING} == set(catalog.BUILT_IN) - others
