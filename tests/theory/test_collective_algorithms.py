"""Algorithms of collectives against their closed forms; n ranks, S bytes, alpha s per message, B bytes/s."""

from math import ceil, log2

import numpy as np
import pytest

from simulator.costs import CostModel
from simulator.costs.algorithms import KNOWN, Choice, Overheads
from simulator.costs.curves import AlphaBeta, Curve, Measured, Scale
from simulator.costs.growth import law
from simulator.costs.occupancy import passing
from simulator.errors import InputError
from simulator.hardware import Cluster, Fabric, Slowdown, Torus, TwoLevel, catalog
from simulator.hardware.fabric import Link
from simulator.hardware.graphs import FatTree, Group, Nics, Switched, Tier, Wiring
from simulator.hardware.wired import Wired
from simulator.quantities import (
    AllGatherWork,
    AllReduceWork,
    AllToAllWork,
    BroadcastWork,
    PartsWork,
    PointToPointWork,
    ReduceScatterWork,
    Work,
)
from simulator.quantities import Group as Members

S, NEAR, FAR, ALPHA, PEER = 64e6, 200e9, 25e9, 5e-6, 3e-7
START, START_FAR = 1e-5, 2e-5


def cluster(fabric: Fabric, per_host: int, hosts: int, slow: tuple[Slowdown, ...] = ()) -> Cluster:
    machine = catalog.machine("dgx_a100")
    return Cluster(machine.accelerator, machine.host, fabric, per_host, hosts, slow)


def model(choice: Choice, ranks: int = 8, hosts: int = 1, **overheads: float) -> CostModel:
    """Return the costs of `hosts` domains of `ranks`; a message takes ALPHA, and the first two 2 ALPHA."""
    levels = TwoLevel(NEAR, FAR, 2 * ALPHA, 2 * ALPHA)
    messages = Overheads(per_message=ALPHA, per_message_within=ALPHA, **overheads)
    return CostModel(cluster(levels, ranks, hosts), algorithms=choice, overheads=messages)


def seconds(costs: CostModel, work: Work) -> float:
    return float(np.max(costs.seconds(work)))


@pytest.mark.parametrize("n", [2, 3, 8, 64])
class TestOneDomain:
    """n ranks on one level."""

    def test_a_ring_all_reduce(self, n: int) -> None:
        found = seconds(model(Choice(all_reduce="ring"), n), AllReduceWork(S))
        assert found == pytest.approx(2 * (n - 1) * ALPHA + 2 * (n - 1) / n * S / NEAR)

    def test_a_tree_all_reduce(self, n: int) -> None:
        found = seconds(model(Choice(all_reduce="tree"), n), AllReduceWork(S))
        assert found == pytest.approx(2 * ceil(log2(n)) * ALPHA + 2 * S / NEAR)

    @pytest.mark.parametrize("kind", [AllGatherWork, ReduceScatterWork])
    def test_a_ring_all_gather_and_a_reduce_scatter(self, kind: type[PartsWork], n: int) -> None:
        found = seconds(model(Choice(all_gather="ring", reduce_scatter="ring"), n), kind(S))
        assert found == pytest.approx(max(n - 1, 2) * ALPHA + (n - 1) / n * S / NEAR)

    def test_a_broadcast_around_a_ring_and_down_a_tree(self, n: int) -> None:
        ring = seconds(model(Choice(broadcast="ring"), n), BroadcastWork(S))
        tree = seconds(model(Choice(broadcast="tree"), n), BroadcastWork(S))
        assert ring == pytest.approx(max(n - 1, 2) * ALPHA + S / NEAR)
        assert tree == pytest.approx(max(ceil(log2(n)), 2) * ALPHA + S / NEAR)

    def test_a_direct_all_to_all_pays_for_each_peer(self, n: int) -> None:
        found = seconds(model(Choice(), n, per_peer=PEER), AllToAllWork(S))
        assert found == pytest.approx(2 * ALPHA + (n - 1) * PEER + (n - 1) / n * S / NEAR)

    def test_a_pairwise_all_to_all_waits_in_each_round(self, n: int) -> None:
        found = seconds(model(Choice(all_to_all="pairwise"), n, per_peer=PEER), AllToAllWork(S))
        assert found == pytest.approx((n - 1) * (2 * ALPHA + PEER + S / n / NEAR))

    def test_a_hierarchical_exchange_is_direct(self, n: int) -> None:
        both = [
            seconds(model(Choice(all_to_all=name), n), AllToAllWork(S)) for name in ("direct", "hierarchical")
        ]
        assert both[0] == both[1]

    def test_one_message_to_a_neighbour(self, n: int) -> None:
        assert seconds(model(Choice(), n), PointToPointWork(S)) == pytest.approx(2 * ALPHA + S / NEAR)


@pytest.mark.parametrize(("m", "d"), [(8, 2), (8, 64), (4, 6), (1, 16)])
class TestDomains:
    """d domains of m ranks."""

    def test_a_hierarchical_exchange_sends_what_leaves_a_domain_once(self, m: int, d: int) -> None:
        found = seconds(model(Choice(all_to_all="hierarchical"), m, d, per_peer=PEER), AllToAllWork(S))
        inner = 2 * ALPHA + (m - 1) * PEER + (m - 1) / m * S / NEAR if m > 1 else 0.0
        assert found == pytest.approx(inner + 2 * ALPHA + (d - 1) * PEER + (d - 1) / d * S / FAR)

    def test_a_pairwise_exchange_has_near_rounds_and_far_rounds(self, m: int, d: int) -> None:
        found = seconds(model(Choice(all_to_all="pairwise"), m, d), AllToAllWork(S))
        n = m * d
        expected = (m - 1) * (2 * ALPHA + S / n / NEAR) + (n - m) * (2 * ALPHA + S / n / FAR)
        assert found == pytest.approx(expected)

    def test_rings_use_links_inside_and_between_at_the_same_time(self, m: int, d: int) -> None:
        n = m * d
        found = seconds(model(Choice(all_reduce="ring"), m, d), AllReduceWork(S))
        each = 2 * (n - 1) / n * S / m
        assert found == pytest.approx(2 * (n - 1) * ALPHA + max(each * (m - 1) / NEAR, each / FAR))

    def test_the_depth_of_a_tree_is_that_of_both_levels(self, m: int, d: int) -> None:
        found = seconds(model(Choice(all_reduce="tree"), m, d), AllReduceWork(8.0))
        depth = ceil(log2(m)) + ceil(log2(d))
        assert found == pytest.approx(2 * depth * ALPHA, rel=1e-3)

    def test_the_levels_of_a_hierarchical_all_reduce_follow_each_other(self, m: int, d: int) -> None:
        levels = TwoLevel(NEAR, FAR, START, START_FAR)
        found = seconds(CostModel(cluster(levels, m, d)), AllReduceWork(S))
        near = START + 2 * (m - 1) / m * S / NEAR if m > 1 else 0.0
        assert found == pytest.approx(near + START_FAR * log2(d) + 2 * (d - 1) / d * S / m / FAR)

    def test_a_message_to_the_next_rank_crosses_borders_somewhere(self, m: int, d: int) -> None:
        assert seconds(model(Choice(), m, d), PointToPointWork(S)) == pytest.approx(2 * ALPHA + S / FAR)


class TestStartUp:
    """What small messages cost."""

    def times(self, operation: str, name: str, hosts: int) -> float:
        kinds = {"all_reduce": AllReduceWork, "all_to_all": AllToAllWork}
        return seconds(model(Choice(**{operation: name}), 1, hosts, per_peer=PEER), kinds[operation](1e-3))

    def test_that_of_a_tree_grows_with_the_logarithm_and_that_of_a_ring_with_the_ranks(self) -> None:
        trees, rings = (
            [self.times("all_reduce", name, n) for n in (16, 256, 1024)] for name in ("tree", "ring")
        )
        assert np.array(trees) / ALPHA == pytest.approx([8, 16, 20])
        assert np.array(rings) / ALPHA == pytest.approx([30, 510, 2046])

    def test_without_a_stated_message_each_doubling_of_the_domains_costs_one_latency(self) -> None:
        levels = TwoLevel(NEAR, FAR, START, START_FAR)
        tree = Choice(all_reduce="tree")
        for hosts in (2, 4, 256):
            costs = CostModel(cluster(levels, 1, hosts), algorithms=tree)
            assert seconds(costs, AllReduceWork(1e-3)) == pytest.approx(START_FAR * log2(hosts))

    def test_fewer_peers_are_why_small_exchanges_go_by_way_of_neighbours(self) -> None:
        chosen = [
            model(Choice(all_to_all="auto"), 8, 64, per_peer=PEER).plan(AllToAllWork(size)).algorithm
            for size in (1e3, 1e9)
        ]
        assert chosen == ["hierarchical", "direct"]

    def test_each_way_to_reduce_is_the_fastest_at_some_size(self) -> None:
        costs = model(Choice(all_reduce="auto"), 8, 64)
        chosen = [costs.plan(AllReduceWork(size)).algorithm for size in (1e3, 1e7, 1e12)]
        assert chosen == ["hierarchical ring", "double binary tree", "ring"]


class TestUneven:
    """All-to-all-v: ranks that send and receive unlike amounts."""

    SENT = np.random.default_rng(1).lognormal(0, 0.5, 16) * 1e6
    TAKEN = np.random.default_rng(2).lognormal(0, 0.5, 16)
    RECEIVED = TAKEN / TAKEN.sum() * SENT.sum()
    MATRIX = np.outer(SENT, RECEIVED) / SENT.sum()

    def work(self) -> AllToAllWork:
        return AllToAllWork(self.SENT, self.RECEIVED)

    def test_a_direct_exchange_ends_with_its_busiest_rank(self) -> None:
        others = self.MATRIX * (1 - np.eye(16))  # what a rank sends to itself crosses no link
        busiest = max(others.sum(axis=1).max(), others.sum(axis=0).max())
        found = seconds(model(Choice(), 16), self.work())
        assert found == pytest.approx(2 * ALPHA + busiest / NEAR)

    def test_each_round_of_a_pairwise_exchange_lasts_as_long_as_its_largest_message(self) -> None:
        ranks = np.arange(16)
        rounds = [self.MATRIX[ranks, (ranks + shift) % 16].max() / NEAR for shift in range(1, 16)]
        found = seconds(model(Choice(all_to_all="pairwise"), 16), self.work())
        assert found == pytest.approx(15 * 2 * ALPHA + sum(rounds))

    def test_what_a_busy_rank_sends_leaves_through_all_links_of_its_domain(self) -> None:
        passed = np.zeros((16, 16))  # what each rank holds for each other after the first phase
        for here in range(16):
            for there in range(16):
                passed[here // 4 * 4 + there % 4, there] += self.MATRIX[here, there]
        others = passed * (1 - np.eye(16))
        far = max(others.sum(axis=1).max(), others.sum(axis=0).max()) / FAR
        aside = np.zeros((16, 16))  # from each rank to the neighbour that passes it on
        for here in range(16):
            for there in range(16):
                aside[here, here // 4 * 4 + there % 4] += self.MATRIX[here, there] * (here % 4 != there % 4)
        near = max(aside.sum(axis=1).max(), aside.sum(axis=0).max()) / NEAR
        found = seconds(model(Choice(all_to_all="hierarchical"), 4, 4), self.work())
        assert found == pytest.approx(4 * ALPHA + near + far)

    def test_a_hot_sender_gains_from_going_by_way_of_its_neighbours(self) -> None:
        sent = np.ones(64) * 1e6
        sent[5] = 64e6
        work = AllToAllWork(sent, np.full(64, sent.mean()))
        direct, passed_on = (
            seconds(model(Choice(all_to_all=name), 8, 8), work) for name in ("direct", "hierarchical")
        )
        assert direct > 3 * passed_on

    def test_even_loads_written_out_rank_by_rank_cost_what_one_number_costs(self) -> None:
        for name in KNOWN["all_to_all"]:
            costs = model(Choice(all_to_all=name), 8, 8)
            alike = AllToAllWork(np.full(64, S), np.full(64, S))
            assert seconds(costs, alike) == pytest.approx(seconds(costs, AllToAllWork(S)))


class TestOtherFabrics:
    """Tori, wires, slow cards."""

    TREE = Wiring(
        (Group(8, 4, Switched(Link(NEAR, 1e-6)), Nics(Link(FAR, 2e-6), 4)),),
        FatTree(2, Tier(2, Link(FAR, 3e-6))),
    )

    def wired(self) -> CostModel:
        return CostModel(cluster(Wired(self.TREE, START), 4, 8), algorithms=Choice(all_reduce="tree"))

    def test_cables_of_the_longest_way_add_to_the_start_up_of_an_exchange(self) -> None:
        way = 2e-6 + 3e-6 + 3e-6 + 2e-6  # card, leaf, spine, leaf
        assert self.wired().phases(AllToAllWork(S))[0].seconds == pytest.approx(START + way)
        assert self.wired().phases(PointToPointWork(S))[0].seconds == pytest.approx(START + way)

    def test_cables_count_once_for_each_message_that_is_waited_for(self) -> None:
        near, far = 2e-6, 10e-6
        found = self.wired().phases(AllReduceWork(S))[0].seconds
        expected = START + (6 - 2) * START / 2 + 6 * far + 4 * near  # depth 3 outside, 2 inside, twice
        assert found == pytest.approx(expected)

    def test_a_group_inside_a_host_does_not_see_the_cables_outside(self) -> None:
        found = self.wired().phases(AllToAllWork(S, group=Members(4)))[0]
        assert found.seconds == pytest.approx(START + 2e-6)
        assert seconds(self.wired(), AllToAllWork(S, group=Members(4))) == pytest.approx(
            START + 2e-6 + S * 3 / 4 / NEAR
        )

    def test_a_group_of_one_rank_per_host_has_no_neighbour_inside(self) -> None:
        found = seconds(self.wired(), AllToAllWork(S, group=Members(8, 4)))
        up = 2 * 4 * 6 / 8 * S / (2 * FAR)  # two hosts of four below a leaf, six of eight peers beyond it
        assert found == pytest.approx(START + 1e-5 + up)

    def test_rings_of_a_torus_run_along_all_axes_at_once(self) -> None:
        torus = Torus((4, 4), 50e9, 1e-6)
        costs = CostModel(cluster(torus, 4, 4), algorithms=Choice(all_reduce="ring"))
        assert seconds(costs, AllReduceWork(S)) == pytest.approx(2 * 4 * 1e-6 + 2 * 15 / 16 * S / 200e9)
        default = CostModel(cluster(torus, 4, 4))
        assert seconds(costs, AllReduceWork(S)) == pytest.approx(seconds(default, AllReduceWork(S)))

    def test_a_tree_on_a_torus_is_refused_by_name_and_not_chosen(self) -> None:
        torus = cluster(Torus((4, 4), 50e9), 4, 4)
        with pytest.raises(InputError, match="tree is not known on a torus"):
            CostModel(torus, algorithms=Choice(all_reduce="tree")).seconds(AllReduceWork(S))
        plan = CostModel(torus, algorithms=Choice(all_reduce="auto")).plan(AllReduceWork(S))
        assert plan.algorithm == "ring"

    def test_everybody_waits_for_a_slow_card(self) -> None:
        levels = TwoLevel(NEAR, FAR)
        slow = (Slowdown((3,), network=0.5),)
        whole, halved = (CostModel(cluster(levels, 4, 4, one)) for one in ((), slow))
        for work in (AllReduceWork(S), BroadcastWork(S), PointToPointWork(S), AllGatherWork(S)):
            assert seconds(halved, work) == pytest.approx(2 * seconds(whole, work))

    def test_an_unknown_algorithm_is_refused_with_the_nearest_name(self) -> None:
        with pytest.raises(InputError, match=r'no algorithm is called "rings" \(did you mean "ring"'):
            Choice(all_reduce="rings")


def test_a_small_group_moves_all_of_its_bytes_through_the_host_link_however_fast_they_leave() -> None:
    """Where rates fall with scale, a group's links are faster than those of the whole job."""
    work, link = AllToAllWork(S, group=Members(16)), catalog.machine("dgx_a100").accelerator
    for decay in (None, 100.0):
        costs = CostModel(cluster(TwoLevel(NEAR, FAR, decay_workers=decay), 8, 16))
        found = passing(work, costs)["device_to_host"]
        assert found == pytest.approx(S * 8 / 16 / link.host_link_bandwidth)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [("all_to_all", AllToAllWork), ("all_reduce", AllReduceWork), ("all_gather", AllGatherWork)],
)
def test_everybody_waits_for_a_slow_card_of_a_measured_collective_too(
    operation: str, kind: type[AllReduceWork]
) -> None:
    line = Measured(Scale(32, 4), AlphaBeta(0.0, 1e9), 1.0, 1e12)
    curves = {operation: Curve(operation, (line,), law(operation))}
    slow = (Slowdown((3,), network=0.5),)
    whole, halved = (CostModel(cluster(TwoLevel(NEAR, FAR), 8, 4, one), curves=curves) for one in ((), slow))
    assert seconds(whole, kind(S)) == pytest.approx(S / 1e9)
    assert seconds(halved, kind(S)) == pytest.approx(2 * S / 1e9)


@pytest.mark.parametrize(
    ("operation", "kind"), [("all_gather", AllGatherWork), ("reduce_scatter", ReduceScatterWork)]
)
def test_a_measured_curve_times_all_ranks_and_no_group(operation: str, kind: type[PartsWork]) -> None:
    line = Measured(Scale(32, 4), AlphaBeta(1e-3, 1e9), 1.0, 1e12)
    curves = {operation: Curve(operation, (line,), law(operation))}
    levels = cluster(TwoLevel(NEAR, FAR), 8, 4)
    assert seconds(CostModel(levels, curves=curves), kind(S)) == pytest.approx(1e-3 + S / 1e9)
    grouped = [seconds(CostModel(levels, curves=one), kind(S, Members(8))) for one in (curves, {})]
    assert grouped[0] == grouped[1]
