"""What rows and grouped collectives cost: closed forms."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from simulator.costs import CostModel
from simulator.costs.occupancy import occupancy
from simulator.costs.rows import OnChip, narrow_row_penalty, whole_units
from simulator.errors import InputError
from simulator.hardware import Cluster, Torus, TwoLevel, catalog
from simulator.quantities import (
    AllGatherWork,
    AllReduceWork,
    AllToAllWork,
    DenseWork,
    Group,
    ReduceScatterWork,
    RowWork,
)
from simulator.sharding import HbmCache, PooledExchange, Remote, RowWise, ShardingPlan, TrainStep
from simulator.workload.dense import Mlp
from simulator.workload.job import Workload
from simulator.workload.keys import BoundedZipf, Uniform
from simulator.workload.tables import EmbeddingTable

NEAR, FAR, NEAR_LATENCY, FAR_LATENCY = 200e9, 25e9, 1e-5, 2e-5
SIZE = 64e6


def cluster(fabric: TwoLevel | None = None, per_host: int = 8, hosts: int = 4) -> Cluster:
    machine = catalog.machine("dgx_a100")
    given = fabric or TwoLevel(NEAR, FAR, NEAR_LATENCY, FAR_LATENCY)
    return Cluster(machine.accelerator, machine.host, given, per_host, hosts)


class TestGroups:
    """Groups of neighbours or of every s-th rank, all at once."""

    def seconds(self, group: Group, fabric: TwoLevel | None = None) -> float:
        return float(CostModel(cluster(fabric)).seconds(AllToAllWork(SIZE, group=group)))

    def test_a_group_inside_a_host_uses_the_fast_level_only(self) -> None:
        assert self.seconds(Group(4)) == pytest.approx(NEAR_LATENCY + SIZE * 3 / 4 / NEAR)

    def test_a_group_of_two_hosts_sends_half_of_its_bytes_out(self) -> None:
        assert self.seconds(Group(16)) == pytest.approx(FAR_LATENCY + SIZE * 8 / 16 / FAR)

    def test_a_group_of_every_eighth_rank_has_no_neighbour_in_its_host(self) -> None:
        assert self.seconds(Group(4, 8)) == pytest.approx(FAR_LATENCY + SIZE * 3 / 4 / FAR)

    def test_a_group_of_every_second_rank_has_four_of_them_in_each_host(self) -> None:
        assert self.seconds(Group(16, 2)) == pytest.approx(FAR_LATENCY + SIZE * 12 / 16 / FAR)

    def test_one_group_of_all_ranks_is_all_ranks(self) -> None:
        costs = CostModel(cluster())
        assert self.seconds(Group(32)) == pytest.approx(float(costs.seconds(AllToAllWork(SIZE))))

    def test_where_the_rate_falls_with_scale_that_of_a_group_falls_with_its_size(self) -> None:
        falling = TwoLevel(NEAR, FAR, decay_workers=16.0)
        assert self.seconds(Group(16), falling) == pytest.approx(SIZE / 2 / (FAR / 2))
        assert self.seconds(Group(32), falling) == pytest.approx(SIZE * 24 / 32 / (FAR / 3))

    def test_replicas_beside_each_other_are_averaged_inside_the_host(self) -> None:
        costs = CostModel(cluster())
        near = costs.seconds(AllReduceWork(SIZE, Group(4, 1)))
        far = costs.seconds(AllReduceWork(SIZE, Group(4, 8)))
        assert near == pytest.approx(NEAR_LATENCY + 2 * 3 / 4 * SIZE / NEAR)
        assert far == pytest.approx(FAR_LATENCY * 2 + 2 * 3 / 4 * SIZE / FAR)

    def test_a_reduce_scatter_and_an_all_gather_are_an_all_reduce(self) -> None:
        costs = CostModel(cluster(TwoLevel(NEAR, FAR)))
        halves = sum(costs.seconds(kind(SIZE)) for kind in (ReduceScatterWork, AllGatherWork))
        assert halves == pytest.approx(costs.seconds(AllReduceWork(SIZE)))

    def test_groups_on_other_fabrics_are_refused(self) -> None:
        machine = catalog.machine("dgx_a100")
        torus = Cluster(machine.accelerator, machine.host, Torus((4, 4), 50e9), 4, 4)
        with pytest.raises(InputError, match="not known on a torus"):
            CostModel(torus).seconds(AllToAllWork(SIZE, group=Group(4)))


class TestRows:
    """Width, lines, pages and reuse."""

    def seconds(self, work: RowWork, costs: CostModel | None = None) -> float:
        return float((costs or CostModel(cluster())).seconds(work))

    @pytest.mark.parametrize(
        ("row_bytes", "penalty"), [(2048, 1), (512, 1), (256, 1.15), (255, 1.75), (4, 1.75)]
    )
    def test_narrow_rows_take_longer_per_byte(self, row_bytes: float, penalty: float) -> None:
        chip = cluster().accelerator
        rate = chip.hbm_bandwidth * chip.gather_efficiency
        assert narrow_row_penalty(row_bytes) == penalty
        assert self.seconds(RowWork(1e6, row_bytes, "hbm")) == pytest.approx(1e6 * row_bytes * penalty / rate)

    @pytest.mark.parametrize(("row_bytes", "read"), [(64, 64), (65, 128), (1, 64), (512, 512)])
    def test_host_memory_reads_whole_lines(self, row_bytes: float, read: float) -> None:
        one = cluster()
        rate = one.dram_bandwidth_per_rank * one.host.dram_efficiency
        assert self.seconds(RowWork(1e6, row_bytes, "dram", 2)) == pytest.approx(1e6 * read * 2 / rate)

    def test_disks_read_whole_pages_and_are_shared_by_the_host(self) -> None:
        one = cluster()
        with_disk = replace(one, host=replace(one.host, ssd_bandwidth=8e9))
        found = self.seconds(RowWork(1e5, 512, "ssd"), CostModel(with_disk))
        assert found == pytest.approx(1e5 * 4096 / (8e9 / 8))
        with pytest.raises(InputError, match="no ssd_bandwidth"):
            self.seconds(RowWork(1e5, 512, "ssd"))

    def test_whole_units_round_up(self) -> None:
        assert [whole_units(size, 4096) for size in (1, 4096, 4097)] == [4096, 4096, 8192]

    def test_parameter_servers_are_bound_by_the_wire_or_by_their_memory(self) -> None:
        one = cluster()
        assert self.seconds(RowWork(1e6, 512, "remote")) == pytest.approx(1e6 * 512 / FAR)
        memory = one.host.dram_bandwidth * one.host.dram_efficiency
        assert self.seconds(RowWork(1e6, 512, "server")) == pytest.approx(1e6 * 512 / min(memory, 8 * FAR))

    def test_an_unknown_memory_is_refused_with_the_nearest_name(self) -> None:
        with pytest.raises(InputError, match=r'"dran".*"dram"'):
            self.seconds(RowWork(1.0, 512, "dran"))


@dataclass(frozen=True)
class Even:
    """Accesses that fall on `distinct` rows alike."""

    distinct: float

    def share_on_hottest(self, rows: float) -> float:
        return min(rows / self.distinct, 1.0)


class TestReuse:
    """Rows that come again may still be on the chip."""

    cache = 40e6  # of an A100

    def rows(self, accesses: float, distinct: float) -> float:
        work = RowWork(accesses, 512.0, "hbm", reuse=Even(distinct))
        return float(OnChip(speedup=4.0).equivalent_rows(work, self.cache))

    def test_rows_that_all_fit_come_from_memory_once(self) -> None:
        misses, hits = 1e4, 1e6 - 1e4
        assert self.rows(1e6, 1e4) == pytest.approx(misses + hits / 4)

    def test_of_rows_that_do_not_fit_as_many_hit_as_the_cache_holds(self) -> None:
        slots = self.cache / 512
        hits = 1e6 * slots / 1e6 - slots  # one access per row: nothing comes again
        assert hits == 0
        assert self.rows(1e6, 1e6) == 1e6
        assert self.rows(1e7, 1e6) == pytest.approx(1e7 - (1e7 * slots / 1e6 - slots) * 3 / 4)

    def test_rows_of_unknown_reuse_all_come_from_memory(self) -> None:
        assert OnChip().equivalent_rows(RowWork(1e6, 512.0, "hbm"), self.cache) == 1e6

    def test_a_cache_slower_than_its_memory_is_refused(self) -> None:
        with pytest.raises(InputError, match="at least 1"):
            OnChip(0.5)

    def test_reuse_is_not_modelled_unless_asked_for(self) -> None:
        work = RowWork(1e6, 512.0, "hbm", reuse=Even(1e4))
        plain, cached = CostModel(cluster()), CostModel(cluster(), rows=OnChip())
        assert plain.seconds(work) == plain.seconds(RowWork(1e6, 512.0, "hbm"))
        assert cached.seconds(work) < plain.seconds(work) / 2

    @pytest.mark.parametrize("once", [True, False])
    def test_the_accesses_of_an_owner_are_as_skewed_as_sampled_ones(self, once: bool) -> None:
        """16 sources of 500 lookups over 4 owners, against 200 sampled batches."""
        rows, sources, m = 1000, 16, 500
        table = EmbeddingTable("t", rows, 32, BoundedZipf(rows, 1.1), pooling=1.0)
        exchange = {} if once else {"exchange": PooledExchange()}
        step = TrainStep(
            Workload(Mlp(8, (4, 1)), (table,), m), ShardingPlan(RowWise("hbm"), **exchange), sources
        )
        hot = step.traffic.reuse(table.row_bytes, once)
        assert hot is not None
        counts = sampled_accesses(rows, sources * m, m, once)
        top = np.sort(counts)[::-1]
        for share in (0.01, 0.1, 0.3):
            expected = top[: int(share * rows)].sum() / top.sum()
            assert hot.share_on_hottest(share * rows / sources) == pytest.approx(expected, abs=0.01)
        assert hot.distinct == pytest.approx(table.popularity.union(m, sources) / sources)


def sampled_accesses(rows: int, lookups: int, batch: int, once: bool) -> np.ndarray:
    """Mean accesses per row, over 200 steps; `once`: a batch counts a row once."""
    weights = np.arange(1, rows + 1) ** -1.1
    random, counts = np.random.default_rng(5), np.zeros(rows)
    for _ in range(200):
        keys = random.choice(rows, size=(lookups // batch, batch), p=weights / weights.sum())
        for one in keys:
            counts += np.minimum(np.bincount(one, minlength=rows), 1 if once else batch)
    return counts


class TestCache:
    """Device memory in front of host memory."""

    table = EmbeddingTable("t", 1e6, 32, BoundedZipf(1_000_000, 1.0))

    def missed(self, tier: HbmCache, table: EmbeddingTable | None = None) -> float:
        table = table or self.table
        return tier.missed(table, 1e5, table.popularity.distinct(1e5))

    def test_a_cache_of_nothing_misses_all_and_one_of_everything_nothing(self) -> None:
        distinct = self.table.popularity.distinct(1e5)
        assert self.missed(HbmCache(0.0)) == pytest.approx(distinct)
        assert self.missed(HbmCache(1.0)) == pytest.approx(0.0, abs=1e-6 * distinct)

    def test_a_given_rate_is_the_share_of_the_rows_of_a_batch(self) -> None:
        assert self.missed(HbmCache(0.1, 0.75)) == pytest.approx(self.table.popularity.distinct(1e5) / 4)

    def test_of_equally_likely_rows_the_cache_holds_its_share(self) -> None:
        even = EmbeddingTable("t", 1e6, 32, Uniform(1_000_000))
        assert self.missed(HbmCache(0.2), even) == pytest.approx(0.8 * even.popularity.distinct(1e5))

    def test_the_hottest_rows_are_missed_as_seldom_as_in_a_sample(self) -> None:
        """A top share of lookups would promise far more: hot rows are asked for again within the batch."""
        weights = np.arange(1, 1_000_001, dtype=np.float64) ** -1.0
        edges = np.cumsum(weights / weights.sum())
        random = np.random.default_rng(2)
        missed = [
            np.count_nonzero(np.unique(np.searchsorted(edges, random.random(100_000))) >= 10_000)
            for _ in range(10)
        ]
        found = self.missed(HbmCache(0.01))
        assert found == pytest.approx(np.mean(missed), rel=0.005)
        by_lookups = self.table.popularity.distinct(1e5) * (1 - self.table.popularity.top_share(0.01))
        assert found > 1.5 * by_lookups

    def test_only_misses_cross_the_host_link(self) -> None:
        def link_bytes(tier: str | HbmCache) -> float:
            step = TrainStep(Workload(Mlp(8, (4, 1)), (self.table,), 4096), RowWise(tier), 4)
            return occupied(step, "host_to_device")

        assert link_bytes("hbm") == 0
        assert 0 < link_bytes(HbmCache(0.1)) < 0.9 * link_bytes("dram")
        assert link_bytes(HbmCache(0.0)) == pytest.approx(link_bytes("dram"))

    def test_every_parameter_server_serves_its_part_of_all_rows(self) -> None:
        step = TrainStep(Workload(Mlp(8, (4, 1)), (self.table,), 4096), RowWise(Remote(2)), 32)
        one = TrainStep(Workload(Mlp(8, (4, 1)), (self.table,), 4096), RowWise(Remote(1)), 32)
        assert occupied(one, "server") == pytest.approx(2 * occupied(step, "server"))


def test_a_dense_pass_holds_the_engine_and_its_element_wise_part_the_memory() -> None:
    costs, chip = CostModel(cluster()), cluster().accelerator
    work = DenseWork(3e12, memory_bytes=4e9)
    seconds = float(costs.seconds(work))
    expected = {"tensor": seconds, "hbm": 4e9 / (chip.hbm_bandwidth * chip.memory_efficiency)}
    assert 0 < expected["hbm"] < seconds
    assert occupancy(work, costs) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("tier", ["remote", "server"])
def test_rows_on_parameter_servers_occupy_what_is_called_like_their_tier(tier: str) -> None:
    work, costs = RowWork(1e6, 512, tier), CostModel(cluster())
    assert occupancy(work, costs) == {tier: float(costs.seconds(work))}


def occupied(step: TrainStep, resource: str) -> float:
    return occupancy(step.retrieve_rows, CostModel(cluster())).get(resource, 0.0)
