"""Every kind of sharding: what owners hold and send, who is loaded most, and what is refused."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtri
from tiers import some

from simulator.errors import InputError
from simulator.policies import catalog
from simulator.quantities import (
    AllGatherWork,
    AllReduceWork,
    AllToAllWork,
    Group,
    PartsWork,
    ReduceScatterWork,
    Work,
    leaves,
)
from simulator.sharding import (
    ColumnWise,
    DataParallel,
    Grid,
    HbmCache,
    Kind,
    PairTraffic,
    Part,
    Placed,
    PooledExchange,
    RankLoad,
    Remote,
    Replicas,
    RowWise,
    Rule,
    ShardingPlan,
    TableRowWise,
    TableWise,
    Traffic,
    TrainStep,
)
from simulator.sharding.load import per_rank
from simulator.testing import check_policy
from simulator.workload.dense import Mlp
from simulator.workload.draws import uniforms
from simulator.workload.job import Workload
from simulator.workload.keys import BoundedZipf
from simulator.workload.tables import EmbeddingTable

USERS = EmbeddingTable("users", 1e6, 64, BoundedZipf(1_000_000, 0.9))
ITEMS = EmbeddingTable("items", 1e5, 32, BoundedZipf(100_000, 1.1), pooling=20.0)
RANKS, PER_HOST, BATCH = 8, 2, 256
KINDS: dict[str, Kind] = {
    "row_wise": RowWise("hbm"),
    "uneven": RowWise("hbm", shares=(3.0, 1.0)),
    "drawn": RowWise("hbm", "drawn"),
    "table_wise": TableWise("hbm"),
    "column_wise": ColumnWise("hbm", shards=3),
    "table_row_wise": TableRowWise("hbm"),
    "table_row_wise_drawn": TableRowWise("hbm", "drawn"),
    "grid": Grid("hbm", shards=2),
    "placed": Placed("hbm", parts=(Part(2, 0.5), Part(1, 0.5, 0.25), Part(3, 0.5, 0.75))),
}


def distinct_rows_drawn(lookups: int) -> float:
    """Return the mean number of different rows of USERS among so many lookups, counted."""
    weights = np.arange(1, 1_000_001) ** -0.9
    chances = np.random.default_rng(5)
    drawn = [chances.choice(1_000_000, lookups, p=weights / weights.sum()) for _ in range(4)]
    return float(np.mean([len(np.unique(keys)) for keys in drawn]))


def step_of(plan: Kind | ShardingPlan, tables: tuple[EmbeddingTable, ...] = (USERS, ITEMS)) -> TrainStep:
    workload = Workload(Mlp(96, (64, 1)), tables, BATCH)
    return TrainStep(workload, plan, RANKS, seed=3, per_host=PER_HOST)


def total(amount: object) -> float:
    return float(np.sum(per_rank(amount, RANKS)))  # type: ignore[arg-type]


@pytest.mark.parametrize("exchange", ["rows", "pooled"])
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_what_is_sent_is_received_and_every_row_has_one_owner_per_copy(
    name: str, replicas: int, exchange: str
) -> None:
    plan = ShardingPlan(KINDS[name], replicas=Replicas(replicas))
    plan = replace(plan, exchange=PooledExchange()) if exchange == "pooled" else plan
    traffic = step_of(plan).traffic
    members = RANKS // replicas
    assert total(traffic.requests) == pytest.approx(traffic.distinct * RANKS)
    union = sum(table.popularity.union(table.lookups(BATCH), members) for table in (USERS, ITEMS))
    columns = {"column_wise": 3, "grid": 2, "placed": 2}.get(name, 1)
    assert total(traffic.rows_owned) == pytest.approx(replicas * columns * union)
    size = sum(t.popularity.union(t.lookups(BATCH), members) * t.dimension * 4 for t in (USERS, ITEMS))
    assert total(traffic.bytes_owned) == pytest.approx(replicas * size)
    for work in (*leaves(step_of(plan).micro_batch(2).exchange_rows), *leaves(step_of(plan).route_keys)):
        if isinstance(work, AllToAllWork):
            assert total(work.bytes) == pytest.approx(total(work.received_bytes))


@pytest.mark.parametrize(
    ("name", "policy"), some(list(product(KINDS, ["serialized", "stale_prefetch", "nestpipe"])), gate=14)
)
def test_policies_keep_their_contract_under_every_kind(name: str, policy: str) -> None:
    plan = ShardingPlan(KINDS[name], exchange=PooledExchange(), replicas=Replicas(2, every=2))
    built = catalog.build(policy, **{one: 8 for one in catalog.taken_by(policy) if one == "micro_batches"})
    check_policy(built, step_of(plan))
    check_policy(built, step_of(KINDS[name]))


def test_distinct_rows_do_not_change_with_the_plan_but_keys_travel_once_per_column_part() -> None:
    row, column = step_of(RowWise("hbm")).traffic, step_of(ColumnWise("hbm", shards=4)).traffic
    assert column.row_bytes_received == pytest.approx(row.row_bytes_received)
    assert column.key_bytes_sent == 4 * row.key_bytes_sent


def test_four_chips_of_which_one_does_half_of_the_work_have_an_imbalance_of_two() -> None:
    """Loads of 0.6, 0.3, 0.2 and 0.1: the busiest does twice an even share of 1.2 / 4."""
    plan = RowWise("hbm", shares=(0.6, 0.3, 0.2, 0.1))
    workload = Workload(Mlp(96, (64, 1)), (USERS,), BATCH)
    load = RankLoad.of(TrainStep(workload, plan, 4).traffic)
    assert load.imbalance == pytest.approx({"lookups": 2.0, "rows": 2.0, "bytes": 2.0})
    assert load.lookups / load.lookups.sum() == pytest.approx([6 / 12, 3 / 12, 2 / 12, 1 / 12])


def test_ranks_that_are_alike_have_an_imbalance_of_one() -> None:
    assert RankLoad.of(step_of(RowWise("hbm")).traffic).imbalance == {"lookups": 1, "rows": 1, "bytes": 1}


def test_tables_go_to_the_least_loaded_rank_the_heaviest_first() -> None:
    tables = tuple(
        EmbeddingTable(f"t{size}", 1e5, 32, BoundedZipf(100_000, 1.0), pooling=float(size))
        for size in (2, 7, 5, 3, 6, 4)
    )
    workload = Workload(Mlp(96, (64, 1)), tables, BATCH)
    plan = ShardingPlan(TableWise("hbm"), exchange=PooledExchange())
    step = TrainStep(workload, plan, 3)
    # longest first onto three ranks: 7 | 6 | 5, then 4 to the third, 3 to the second, 2 to the first
    placed = {shard.piece.table.name: shard.first for shard in step.placed.shards}
    assert placed == {"t2": 0, "t7": 0, "t5": 2, "t3": 1, "t6": 1, "t4": 2}
    assert RankLoad.of(step.traffic).lookups == pytest.approx([BATCH * 3 * 9.0] * 3)


def test_given_places_are_kept_and_the_rest_avoids_them() -> None:
    rules = (Rule(("items",), TableWise("hbm", rank=0)),)
    shards = step_of(ShardingPlan(TableWise("hbm"), rules)).placed.shards
    assert {shard.piece.table.name: shard.first for shard in shards} == {"users": 1, "items": 0}


def test_a_table_of_one_host_is_spread_over_its_ranks_only() -> None:
    requests = per_rank(step_of(TableRowWise("hbm", host=1), (USERS,)).traffic.requests, RANKS)
    assert requests[2] == requests[3] > 0
    assert requests.sum() == pytest.approx(requests[2] * 2)


def test_column_parts_have_whole_columns_and_all_of_them() -> None:
    shards = step_of(ColumnWise("hbm", shards=3), (ITEMS,)).placed.shards
    assert [shard.piece.row_bytes for shard in shards] == [44.0, 44.0, 40.0]


def test_every_rank_of_a_drawn_table_row_wise_shard_has_its_own_load() -> None:
    requests = per_rank(step_of(TableRowWise("hbm", "drawn"), (USERS,)).traffic.requests, RANKS)
    busy = requests[requests > 0]
    assert len(busy) == PER_HOST and busy[0] != busy[1]
    assert busy.sum() == pytest.approx(RANKS * step_of(RowWise("hbm"), (USERS,)).traffic.distinct)


def test_owners_of_a_few_ranks_spread_as_much_more_as_their_share_of_keys_is_larger() -> None:
    """A hash gives an owner a key with chance 1/s: variance p (1 - p) per key, here 1/2 against 1/8."""
    requests = per_rank(step_of(TableRowWise("hbm", "drawn", host=0), (USERS,)).traffic.requests, RANKS)
    load = USERS.popularity.owner_load(float(BATCH), RANKS)
    few, all_ranks = 1 / PER_HOST * (1 - 1 / PER_HOST), 1 / RANKS * (1 - 1 / RANKS)
    normal = ndtri(uniforms(3, "owner of table 0", 0, np.arange(PER_HOST)))
    drawn = load.mean * RANKS / PER_HOST + load.sd * (few / all_ranks) ** 0.5 * normal
    assert requests[:PER_HOST] == pytest.approx(
        load.mean * RANKS / PER_HOST * drawn / drawn.mean(), rel=1e-12
    )


def test_a_table_in_an_unknown_format_is_refused_with_the_formats_that_are_known() -> None:
    with pytest.raises(InputError, match=r'"fp12" \(known: fp32, tf32, fp16, bf16, fp8, int8\)'):
        replace(USERS, dtype="fp12")
    assert [replace(USERS, dtype=one).row_bytes for one in ("fp32", "bf16", "fp8")] == [256, 128, 64]


class TestPooled:
    """One vector per sample and feature, as TorchRec's planner counts: b samples, p keys, d bytes."""

    b, n, p = BATCH, RANKS, 20.0
    d = 32 * 4.0

    def exchange(self, kind: Kind) -> list[Work]:
        plan = ShardingPlan(kind, exchange=PooledExchange())
        works = leaves(step_of(plan, (ITEMS,)).micro_batch(1).exchange_rows)
        return [work for work in works if isinstance(work, AllToAllWork | ReduceScatterWork)]

    def traffic(self, kind: Kind) -> Traffic:
        return step_of(ShardingPlan(kind, exchange=PooledExchange()), (ITEMS,)).traffic

    def test_table_wise_sends_the_sums_of_all_samples_by_all_to_all(self) -> None:
        (work,) = self.exchange(TableWise("hbm"))
        assert isinstance(work, AllToAllWork)
        assert np.max(work.bytes) == self.n * self.b * self.d
        assert work.received_bytes == self.b * self.d

    def test_row_wise_adds_up_partial_sums_of_all_samples_by_reduce_scatter(self) -> None:
        (work,) = self.exchange(RowWise("hbm"))
        assert isinstance(work, ReduceScatterWork)
        assert work.bytes == self.n * self.b * self.d

    def test_gradients_of_partial_sums_are_gathered_by_all_ranks_and_not_added_up(self) -> None:
        plan = ShardingPlan(RowWise("hbm"), exchange=PooledExchange())
        back = leaves(step_of(plan, (ITEMS,)).micro_batch(1).send_gradients)
        (work,) = [one for one in back if isinstance(one, PartsWork)]
        assert isinstance(work, AllGatherWork) and not isinstance(work, ReduceScatterWork)
        assert work.bytes == self.n * self.b * self.d

    def test_table_row_wise_scatters_in_the_host_and_exchanges_across_hosts(self) -> None:
        inside, across = self.exchange(TableRowWise("hbm", host=0))
        assert isinstance(inside, ReduceScatterWork) and isinstance(across, AllToAllWork)
        assert (inside.group, across.group) == (Group(PER_HOST, 1), Group(RANKS // PER_HOST, PER_HOST))
        assert np.max(inside.bytes) == self.n * self.b * self.d
        assert np.max(across.bytes) == self.b * self.n / PER_HOST * self.d
        assert across.received_bytes == self.b * self.d

    def test_grid_moves_as_much_as_table_row_wise_for_all_columns_together(self) -> None:
        _, across = self.exchange(Grid("hbm", shards=2))
        assert isinstance(across, AllToAllWork)
        assert across.received_bytes == self.b * self.d
        assert total(across.bytes) == pytest.approx(self.n * self.b * self.d)

    def test_keys_travel_with_their_duplicates(self) -> None:
        assert self.traffic(TableWise("hbm")).key_bytes_sent == 8 * self.b * self.p
        assert self.traffic(RowWise("hbm")).requests == self.b * self.p

    def test_multi_hot_features_move_fewer_bytes_pooled_than_as_distinct_rows(self) -> None:
        pooled = self.traffic(TableWise("hbm")).row_bytes_received
        assert pooled < step_of(TableWise("hbm"), (ITEMS,)).traffic.row_bytes_received


def test_tables_on_all_ranks_are_not_exchanged_and_their_gradients_are_reduced() -> None:
    plan = ShardingPlan(RowWise("hbm"), (Rule(("item*",), DataParallel()),))
    step, alone = step_of(plan), step_of(RowWise("hbm"), (USERS,))
    assert step.traffic.row_bytes_received == alone.traffic.row_bytes_received
    micro, plain = step.micro_batch(1), alone.micro_batch(1)
    assert micro.gradient_bytes - plain.gradient_bytes == ITEMS.rows * ITEMS.dimension * 4
    reduced = micro.all_reduce_bucket
    assert isinstance(reduced, AllReduceWork)
    assert reduced.bytes * micro.buckets == pytest.approx(micro.gradient_bytes)


def test_a_plan_of_copies_only_exchanges_nothing() -> None:
    step = step_of(DataParallel())
    works = [step.route_keys, step.retrieve_rows, step.micro_batch(1).exchange_rows]
    assert not any(work.rendezvous for work in works)
    assert step.traffic.row_bytes_received == 0


class TestReplicas:
    """Two-dimensional sparse parallelism: groups of N / M ranks."""

    def test_rows_are_exchanged_in_the_group_and_copies_averaged_across_groups(self) -> None:
        block = step_of(ShardingPlan(RowWise("hbm"), replicas=Replicas(4, every=3)))
        beside = step_of(ShardingPlan(RowWise("hbm"), replicas=Replicas(4, adjacent=True)))
        groups = [
            [w.group for w in leaves(step.micro_batch(1).exchange_rows) if isinstance(w, AllToAllWork)]
            for step in (block, beside)
        ]
        assert groups == [[Group(2, 1)], [Group(2, 4)]]
        averages = [step.synchronize for step in (block, beside)]
        assert [work.group for work in averages if isinstance(work, AllReduceWork)] == [
            Group(4, 2),
            Group(4, 1),
        ]
        assert (block.synchronize_every, beside.synchronize_every) == (3, 1)

    def test_an_averaging_moves_a_shard_and_its_state_or_only_rows_used_since_the_last_one(self) -> None:
        whole = step_of(ShardingPlan(RowWise("hbm"), replicas=Replicas(2, every=5)), (USERS,)).synchronize
        part = step_of(
            ShardingPlan(RowWise("hbm"), replicas=Replicas(2, every=5, touched=True)), (USERS,)
        ).synchronize
        assert isinstance(whole, AllReduceWork) and isinstance(part, AllReduceWork)
        assert whole.bytes == 1e6 * (64 * 4 + 4) / 4
        rows = distinct_rows_drawn(lookups=5 * BATCH * RANKS)  # of all copies: any use makes copies differ
        assert part.bytes == pytest.approx(rows * (64 * 4 + 4) / 4, rel=0.02)

    def test_an_owner_reads_more_rows_because_fewer_sources_share_them(self) -> None:
        one, four = step_of(RowWise("hbm")), step_of(ShardingPlan(RowWise("hbm"), replicas=Replicas(4)))
        assert four.traffic.rows_owned > one.traffic.rows_owned
        assert four.traffic.row_bytes_received == one.traffic.row_bytes_received

    def test_owners_of_one_shard_are_where_the_layout_puts_its_copies(self) -> None:
        def busy(adjacent: bool) -> list[int]:
            plan = ShardingPlan(TableWise("hbm", rank=1), replicas=Replicas(2, adjacent=adjacent))
            return np.flatnonzero(per_rank(step_of(plan, (USERS,)).traffic.requests, RANKS)).tolist()

        assert busy(adjacent=False) == [1, 5]
        assert busy(adjacent=True) == [2, 3]

    def test_groups_of_unequal_size_are_refused_with_the_nearest_numbers(self) -> None:
        with pytest.raises(InputError, match="8 ranks do not make 3 equal groups; take 2 or 4"):
            step_of(ShardingPlan(RowWise("hbm"), replicas=Replicas(3))).traffic.flows  # noqa: B018

    def test_copies_are_never_synchronous_and_lack_the_updates_since_the_last_averaging(self) -> None:
        """Weights are averaged, not gradients: one averaging per step is not the synchronous step either."""
        found = {
            replicas: (step.consistency, step.staleness_steps)
            for replicas in (Replicas(1, 4), Replicas(2, 1), Replicas(2, 4))
            for step in [step_of(ShardingPlan(RowWise("hbm"), replicas=replicas))]
        }
        assert list(found.values()) == [("synchronous", 0), ("stale", 0), ("stale", 3)]


def test_stages_that_move_rows_are_of_the_kind_of_the_tier_that_most_bytes_come_from() -> None:
    def kind(plan: Kind | ShardingPlan) -> str:
        return step_of(plan).lookup_kind

    def mixed(items: Kind, rest: Kind) -> ShardingPlan:
        return ShardingPlan(rest, (Rule(("items",), items),))

    servers, host, device = RowWise(Remote(2)), RowWise("dram"), RowWise("hbm")
    assert [kind(plan) for plan in (host, device, DataParallel())] == ["lookup"] * 3
    assert kind(servers) == kind(RowWise(HbmCache(0.1, below=Remote(2)))) == "parameter_server"
    size = {
        name: np.mean(step_of(device, (t,)).traffic.bytes_owned) for name, t in (("u", USERS), ("i", ITEMS))
    }
    assert (kind(mixed(servers, host)) == "parameter_server") == (size["i"] > size["u"])
    assert (kind(mixed(host, servers)) == "parameter_server") == (size["u"] > size["i"])
    assert kind(mixed(servers, device)) == kind(mixed(device, servers)) == "parameter_server"


class TestPairs:
    """Traffic between pairs of ranks, from vectors."""

    @pytest.mark.parametrize("adjacent", [False, True])
    def test_rows_and_columns_of_the_matrix_are_the_vectors(self, adjacent: bool) -> None:
        plan = ShardingPlan(TableWise("hbm"), replicas=Replicas(2, adjacent=adjacent))
        pairs = PairTraffic.of(step_of(plan).traffic)
        matrix = pairs.between(1)
        assert matrix.sum(axis=1) == pytest.approx(pairs.sent)
        assert matrix.sum(axis=0) == pytest.approx(pairs.received)
        other = 1 if adjacent else RANKS // 2  # a rank of the other group
        assert matrix[0, other] == 0

    def test_hosts_are_blocks_of_the_matrix_of_ranks(self) -> None:
        pairs = PairTraffic.of(step_of(TableWise("hbm")).traffic)
        blocks = pairs.between(1).reshape(4, 2, 4, 2).sum(axis=(1, 3))
        assert pairs.between(PER_HOST) == pytest.approx(blocks)

    def test_no_matrix_of_thousands_of_ranks_is_made(self) -> None:
        workload = Workload(Mlp(96, (64, 1)), (USERS,), BATCH)
        pairs = PairTraffic.of(TrainStep(workload, RowWise("hbm"), 1536, per_host=8).traffic)
        assert pairs.between(8).shape == (192, 192)
        with pytest.raises(InputError, match="1,536 x 1,536"):
            pairs.between(1)


REFUSED = {
    "unknown tier": (lambda: RowWise("dran"), 'unknown value "dran".*"dram"'),
    "unknown owners": (lambda: RowWise("hbm", "draw"), 'unknown value "draw".*"drawn"'),
    "columns": (lambda: step_of(ColumnWise("hbm", shards=65)).traffic.flows, "64 columns.*65 parts"),
    "rank": (lambda: step_of(TableWise("hbm", rank=8)).traffic.flows, "cannot live on rank 8.*0 to 7"),
    "shares": (lambda: step_of(RowWise("hbm", shares=(1, 2, 3))).traffic.flows, "3 shares.*8 ranks"),
    "no share": (lambda: step_of(RowWise("hbm", shares=(0.0,))).traffic.flows, "not all zero"),
    "parts": (lambda: Placed("hbm", parts=(Part(0, 0.5),)), "not 0.5 of it"),
    "rules": (
        lambda: step_of(ShardingPlan(RowWise(), (Rule(("itens",), DataParallel()),))).traffic,
        'no table is called "itens".*"items"',
    ),
    "copies": (lambda: DataParallel("dram"), "live in hbm"),
    "served copies": (
        lambda: step_of(ShardingPlan(RowWise(Remote(2)), replicas=Replicas(2))).traffic,
        "parameter servers hold one copy",
    ),
    "cache of a cache": (lambda: HbmCache(0.1, below=HbmCache(0.1)), "slower memory"),
    "no replica": (lambda: Replicas(0), "at least 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_plans_are_refused_in_one_line(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(InputError, match=message) as refusal:
        make()
    assert "\n" not in str(refusal.value)
