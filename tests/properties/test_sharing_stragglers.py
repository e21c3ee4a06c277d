"""Stragglers with measured spreads: what they cost, in the mean and in the tail, and how that grows.

Mini-batch times of ten workers each in three production jobs (Alibaba, CC-BY-4.0) give two spreads: how
much a worker differs from itself from one batch to the next, and how much workers differ for good. The
first is `run.jitter`, the second `cluster.slow`. Two-node all-to-alls between all pairs of seventeen
hosts give the share of bandwidth that the worst host reaches with all the others.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import pytest
from tiers import at_night

from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

SIZES = (16, 64, 256, 1024)
JOBS = (1, 2, 3)  # the fourth shares its accelerators with others


def batch_times(folder: Path, job: int) -> pd.DataFrame:
    """One row per batch, one column per worker."""
    path = folder / f"cluster/alibaba_cc_by/minibatch_job_{job}_norm.csv.gz"
    return pd.read_csv(path).pivot_table(index="time", columns="worker", values="batch_time_norm")


def from_batch_to_batch(folder: Path) -> float:
    """Standard deviation over mean of one worker's batches: the middle worker of the middle job."""
    times = [batch_times(folder, job) for job in JOBS]
    return median(float((one.std() / one.mean()).median()) for one in times)


def for_good(folder: Path, job: int) -> list[float]:
    """The speed of each worker as a share of the fastest one's."""
    mean = batch_times(folder, job).mean()
    return sorted(float(share) for share in mean.min() / mean)


def worst_host(folder: Path) -> float:
    """The worst host's median bandwidth to all others as a share of the median over all pairs."""
    pairs = pd.read_csv(folder / "collectives/pairwise_variability.csv")
    chosen = (
        (pairs.cluster == "clusterB") & (pairs.collective == "alltoall_perf") & (pairs.gpus_per_node == 4)
    )
    pairs = pairs[chosen].dropna()
    ends = pd.concat([pairs.set_index(end).avg_busbw_gbps for end in ("node_a", "node_b")])
    return float(ends.groupby(level=0).median().min() / pairs.avg_busbw_gbps.median())


# ---------------------------------------------------------------- runs


POLICIES: dict[str, dict[str, int]] = {"serialized": {}, "nestpipe": {"micro_batches": 8}}
# a table that two hosts can hold, so that only the number of ranks differs
FIXED = [
    "workload.tables=[{name: items, rows: 1e8, dimension: 512}]",
    "run.contention=true",
    "run.batches=60",
    "run.warm_up=10",
]


def scenario_of(policy: str, ranks: int, *settings: str) -> Scenario:
    scenario = load(shipped_folder() / "nestpipe/npu.yaml", [*FIXED, *settings]).with_workers(ranks)
    return scenario.with_policy({"kind": policy, **POLICIES[policy]})


@dataclass(frozen=True)
class Steps:
    """Mean and tail of the step, ms."""

    mean: float
    p95: float
    p99: float


@cache
def steps(policy: str, ranks: int, *settings: str) -> Steps:
    """NestPipe's NPU cluster, sharing on; as many batches as a tail needs."""
    found = run_scenario(scenario_of(policy, ranks, *settings)).report.step_ms
    return Steps(found["mean"], found["p95"], found["p99"])


def slow_ranks(shares: list[float], ranks: int) -> str:
    """Ranks take turns in being each of the measured workers."""
    entries = [
        f"{{ranks: {[*range(place, ranks, len(shares))]}, compute: {100 * share:.3f} %}}"
        for place, share in enumerate(shares)
        if share < 1.0 and place < ranks
    ]
    return f"cluster.slow=[{', '.join(entries)}]"


def jitter_of(folder: Path) -> str:
    return f"run.jitter.compute={100 * from_batch_to_batch(folder):.3f} %"


# ---------------------------------------------------------------- the spreads themselves


def test_measured_spreads_are_what_the_runs_below_assume(measured_data: Path) -> None:
    assert 0.02 < from_batch_to_batch(measured_data) < 0.05
    assert all(0.7 < for_good(measured_data, job)[0] < 0.95 for job in JOBS)
    assert 0.7 < worst_host(measured_data) < 0.9


# ---------------------------------------------------------------- jitter


@pytest.mark.parametrize("policy", ["serialized", at_night("nestpipe")])
def test_what_jitter_costs_grows_with_the_number_of_ranks_that_wait_for_each_other(
    policy: str, measured_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jitter = jitter_of(measured_data)
    calm, rough = ([steps(policy, n, *setting) for n in SIZES] for setting in ((), (jitter,)))
    cost = [with_it.mean - without.mean for with_it, without in zip(rough, calm, strict=True)]
    with capsys.disabled():
        print(f"\n  {policy}, {jitter}:")
        for ranks, extra, one in zip(SIZES, cost, rough, strict=True):
            tail = f"p95 {one.p95 / one.mean - 1:+.2%}, p99 {one.p99 / one.mean - 1:+.2%} of the mean"
            print(f"    {ranks:5,} ranks: step {one.mean:8,.1f} ms, {extra:5.1f} by jitter; {tail}")
    assert cost[0] > 0 and all(fewer < more for fewer, more in pairwise(cost))
    assert all(one.mean < one.p95 <= one.p99 for one in rough)
    assert all(one.p99 <= one.mean * (1 + 1e-6) for one in calm)


def test_the_tail_shrinks_where_more_ranks_wait_because_the_slowest_varies_less(measured_data: Path) -> None:
    few, many = (steps("serialized", ranks, jitter_of(measured_data)) for ranks in (SIZES[0], SIZES[-1]))
    assert many.p99 / many.mean < few.p99 / few.mean


def test_jitter_costs_what_the_slowest_of_so_many_draws_costs(measured_data: Path) -> None:
    """Serialized, a rank computes a forward and a backward pass between two rendezvous: a sum of draws."""
    jitter, spread = jitter_of(measured_data), from_batch_to_batch(measured_data)
    draw, sigma = np.random.default_rng(3), np.sqrt(np.log1p(spread**2))
    for ranks in SIZES:
        calm = scenario_of("serialized", ranks)
        passes = [
            node.stage for node in calm.graph.nodes if node.stage.name.startswith(("forward", "backward"))
        ]
        lone = np.array([float(np.max(calm.costs.seconds(stage.work))) * 1e3 for stage in passes])
        factor = np.exp(sigma * draw.standard_normal((400, ranks, len(lone))) - sigma**2 / 2)
        expected = float((factor @ lone).max(axis=1).mean() - lone.sum())
        found = steps("serialized", ranks, jitter).mean - steps("serialized", ranks).mean
        assert found == pytest.approx(expected, rel=0.1)


# ---------------------------------------------------------------- slow for good


def test_ranks_that_are_slow_for_good_cost_the_same_at_every_size_and_leave_no_tail(
    measured_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shares = for_good(measured_data, 1)
    cost = []
    for ranks in SIZES:
        slow, calm = steps("nestpipe", ranks, slow_ranks(shares, ranks)), steps("nestpipe", ranks)
        cost.append(slow.mean / calm.mean - 1)
        assert slow.p99 <= slow.mean * (1 + 1e-6)
    with capsys.disabled():
        print(f"\n  workers at {shares[0]:.1%} to 100 % of speed: step {cost[0]:+.2%} to {cost[-1]:+.2%}")
    assert max(cost) <= (1 / shares[0] - 1) * 1.001  # never more than the slowest alone
    assert min(cost) >= 0.5 * (1 / shares[0] - 1)  # the compute stream is most of this step


def test_one_host_with_poor_links_slows_every_all_to_all_and_a_pipeline_hides_it(
    measured_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    share, ranks = worst_host(measured_data), 256
    setting = f"cluster.slow=[{{hosts: [5], network: {100 * share:.2f} %}}]"
    cost = {
        policy: steps(policy, ranks, setting).mean / steps(policy, ranks).mean - 1
        for policy in ("serialized", "nestpipe")
    }
    with capsys.disabled():
        told = ", ".join(f"{policy} {extra:+.2%}" for policy, extra in cost.items())
        print(f"\n  one host of {ranks // 8} at {share:.1%} of its links: {told}")
    assert 0 < cost["nestpipe"] < cost["serialized"] < 1 / share - 1


def test_jitter_and_slow_ranks_together_cost_more_than_either(measured_data: Path) -> None:
    jitter, slow = jitter_of(measured_data), slow_ranks(for_good(measured_data, 1), 64)
    both = steps("nestpipe", 64, jitter, slow).mean
    assert both > max(steps("nestpipe", 64, jitter).mean, steps("nestpipe", 64, slow).mean)
