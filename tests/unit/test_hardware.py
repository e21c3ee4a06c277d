"""Accelerators, hosts, fabrics and clusters as value objects."""

import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import networkx as nx
import pytest

from simulator.errors import InputError
from simulator.hardware import Accelerator, Cluster, Fabric, Host, Link, Machine, Nic, Torus, TwoLevel

CHIP = Accelerator(
    name="chip",
    kind="npu",
    peak_flops={"bf16": 3e14, "fp32": 1e14},
    hbm_bytes=64e9,
    hbm_bandwidth=1.6e12,
    cache_bytes=1e8,
    launch_time=5e-6,
    matrix_efficiency=0.7,
    memory_efficiency=0.6,
    gather_efficiency=0.5,
    host_link_bandwidth=30e9,
    price_usd_per_hour=2.0,
    power_watts=400.0,
)
HOST = Host("host", cores=192, dram_bytes=1.6e12, dram_bandwidth=8e11, dram_efficiency=0.5, power_watts=800.0)
MESH = TwoLevel(196e9, 25e9)


def cluster(fabric: Fabric = MESH, per_host: int = 8, hosts: int = 16) -> Cluster:
    """A cluster of 128 unless told otherwise."""
    return Cluster(CHIP, HOST, fabric, per_host, hosts)


def grid(torus: Torus) -> Any:
    """The same torus as a networkx graph."""
    rings: Any = [torus.wrap and length > 2 for length in torus.dims]
    return nx.grid_graph(dim=list(torus.dims), periodic=rings)


# accelerators, hosts, NICs, links


def test_the_peak_of_a_known_precision_is_returned() -> None:
    assert CHIP.peak("bf16") == 3e14


def test_an_unknown_precision_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(InputError, match=r'chip has no peak rate for precision "fp8" \(known: bf16, fp32\)'):
        CHIP.peak("fp8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "npuu"}, "did you mean"),
        ({"peak_flops": {}}, "at least one peak rate"),
        ({"peak_flops": {"bf16": 0.0}}, "bf16 must be above zero"),
        ({"hbm_bytes": 0.0}, "hbm_bytes must be above zero"),
        ({"hbm_bandwidth": float("nan")}, "hbm_bandwidth must be above zero"),
        ({"host_link_bandwidth": float("inf")}, "host_link_bandwidth must be above zero"),
        ({"launch_time": -1e-6}, "launch_time must not be below zero"),
        ({"sparse_cores": -1}, "sparse_cores must not be below zero"),
        ({"matrix_efficiency": 1.01}, "matrix_efficiency must lie above 0 and at most 1"),
        ({"memory_efficiency": 0.0}, "memory_efficiency must lie above 0"),
        ({"gather_efficiency": -0.5}, "gather_efficiency must lie above 0"),
        ({"vector_flops": 0.0}, "vector_flops must be above zero"),
        ({"price_usd_per_hour": -1.0}, "price_usd_per_hour must be above zero"),
        ({"power_watts": 0.0}, "power_watts must be above zero"),
    ],
)
def test_an_impossible_accelerator_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(CHIP, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cores": 0}, "cores must be a whole number"),
        ({"cores": 1.5}, "cores must be a whole number"),
        ({"cores": True}, "cores must be a whole number"),
        ({"dram_bytes": -1.0}, "dram_bytes must be above zero"),
        ({"dram_efficiency": 2.0}, "dram_efficiency must lie"),
        ({"power_watts": -5.0}, "power_watts must be above zero"),
    ],
)
def test_an_impossible_host_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(HOST, **change)


def test_a_network_card_without_bandwidth_is_refused() -> None:
    with pytest.raises(InputError, match="bandwidth must be above zero"):
        Nic("dead", 0.0)


def test_a_link_reaches_its_bandwidth_times_its_efficiency() -> None:
    assert Link(100e9, latency=1e-6, efficiency=0.8).rate == pytest.approx(80e9)


# the two-level fabric


def test_the_fast_domain_is_the_host_unless_said_otherwise() -> None:
    assert MESH.domain_size(8) == 8
    assert replace(MESH, domain=72).domain_size(4) == 72


def test_each_level_has_its_own_bandwidth_latency_and_efficiency() -> None:
    fabric = TwoLevel(200e9, 25e9, 1e-6, 2e-6, within_efficiency=0.5, between_efficiency=0.8)
    assert fabric.fast == Link(200e9, 1e-6, 0.5)
    assert fabric.slow(1024) == Link(25e9, 2e-6, 0.8)


def test_the_slow_level_halves_at_the_decay_count_and_keeps_its_nominal_rate() -> None:
    fabric = replace(MESH, decay_workers=1024.0, between_efficiency=0.8)
    assert fabric.slow(1024).rate == pytest.approx(25e9 * 0.8 / 2)
    assert fabric.slow(3072).rate == pytest.approx(25e9 * 0.8 / 4)
    assert fabric.slow(1024).bandwidth == 25e9


def test_a_two_level_bisection_crosses_the_slow_level_only_beyond_one_domain() -> None:
    fabric = replace(MESH, domain=72)
    assert fabric.bisection_bandwidth(72, 4) == pytest.approx(36 * 196e9)
    assert fabric.bisection_bandwidth(144, 4) == pytest.approx(72 * 25e9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"within": 0.0}, "within must be above zero"),
        ({"between": -1.0}, "between must be above zero"),
        ({"within_latency": -1.0}, "within_latency must not be below zero"),
        ({"between_latency": float("nan")}, "between_latency must not be below zero"),
        ({"domain": 0}, "domain must be a whole number"),
        ({"within_efficiency": 0.0}, "within_efficiency must lie"),
        ({"between_efficiency": 1.1}, "between_efficiency must lie"),
        ({"decay_workers": 0.0}, "decay_workers must be above zero"),
    ],
)
def test_an_impossible_two_level_fabric_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(MESH, **change)


# the torus

SHAPES = [(1,), (2,), (5,), (8,), (4, 4), (3, 2), (5, 1), (2, 2, 2), (4, 4, 8), (3, 4, 5)]
TORUSES = [Torus(dims, 45e9, 1e-6, wrap) for dims, wrap in product(SHAPES, (True, False))]


@pytest.mark.parametrize("torus", TORUSES, ids=str)
def test_torus_injection_is_the_average_number_of_links_of_a_chip(torus: Torus) -> None:
    degrees = [degree for _, degree in grid(torus).degree()]
    assert torus.injection_bandwidth() == pytest.approx(45e9 * sum(degrees) / torus.size)


@pytest.mark.parametrize("torus", TORUSES, ids=str)
def test_torus_hops_are_the_average_shortest_path(torus: Torus) -> None:
    lengths = [steps for _, row in nx.all_pairs_shortest_path_length(grid(torus)) for steps in row.values()]
    assert torus.average_hops() == pytest.approx(sum(lengths) / torus.size**2)


@pytest.mark.parametrize("torus", [torus for torus in TORUSES if torus.size > 1], ids=str)
def test_torus_bisection_is_the_narrowest_straight_cut(torus: Torus) -> None:
    graph, cuts = grid(torus), []
    reverse = tuple(reversed(torus.dims))  # networkx names nodes with the last axis first
    for axis, length in enumerate(reverse):
        half = {node for node in graph if (node[axis] if isinstance(node, tuple) else node) < length // 2}
        cuts += [len(list(nx.edge_boundary(graph, half)))] if half else []
    assert torus.bisection_bandwidth() == pytest.approx(45e9 * min(cuts))


def test_a_single_chip_has_no_bisection() -> None:
    assert Torus((1, 1), 45e9).bisection_bandwidth() == 0


def test_efficiency_scales_every_rate_of_a_torus() -> None:
    full, part = Torus((4, 4), 45e9), Torus((4, 4), 45e9, efficiency=0.5)
    assert part.injection_bandwidth() == pytest.approx(full.injection_bandwidth() / 2)
    assert part.bisection_bandwidth() == pytest.approx(full.bisection_bandwidth() / 2)


def test_a_torus_is_one_fast_domain() -> None:
    assert Torus((4, 4, 8), 45e9).domain_size(4) == 128


@pytest.mark.parametrize(
    ("ranks", "dims"),
    [(64, (4, 4, 4)), (128, (4, 4, 8)), (96, (4, 4, 6)), (7, (1, 1, 7)), (4096, (16, 16, 16))],
)
def test_a_resized_torus_is_as_near_to_a_cube_as_the_count_allows(ranks: int, dims: tuple[int, ...]) -> None:
    assert Torus((2, 2, 2), 45e9).resized(ranks).dims == dims


def test_a_torus_of_the_right_size_keeps_its_shape() -> None:
    assert Torus((2, 32), 45e9).resized(64).dims == (2, 32)


@pytest.mark.parametrize(
    ("dims", "link", "message"),
    [
        ((), 45e9, "1 to 3 axes"),
        ((2, 2, 2, 2), 45e9, "1 to 3 axes"),
        ((4, 0), 45e9, r"dims\[1\] must be a whole number"),
        ((4, 4), 0.0, "link_bandwidth must be above zero"),
    ],
)
def test_an_impossible_torus_is_refused(dims: tuple[int, ...], link: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Torus(dims, link)


# clusters and machines


def test_a_cluster_shares_its_hosts_evenly_among_the_ranks() -> None:
    whole = cluster()
    assert whole.ranks == 128
    assert whole.cores_per_rank == 24
    assert whole.dram_bytes_per_rank == pytest.approx(2e11)
    assert whole.dram_bandwidth_per_rank == pytest.approx(1e11)


def test_the_power_of_a_cluster_counts_accelerators_and_hosts() -> None:
    assert cluster().power_watts == pytest.approx(128 * 400 + 16 * 800)


def test_an_unknown_power_leaves_the_power_of_the_cluster_unknown() -> None:
    assert Cluster(CHIP, replace(HOST, power_watts=None), MESH, 8, 1).power_watts is None
    assert Cluster(replace(CHIP, power_watts=None), HOST, MESH, 8, 1).power_watts is None


def test_the_price_of_a_cluster_adds_hosts_only_where_they_have_a_price() -> None:
    assert cluster().price_usd_per_hour == pytest.approx(256)
    priced = Cluster(CHIP, replace(HOST, price_usd_per_hour=3.0), MESH, 8, 16)
    assert priced.price_usd_per_hour == pytest.approx(256 + 48)
    assert Cluster(replace(CHIP, price_usd_per_hour=None), HOST, MESH, 8, 16).price_usd_per_hour is None


def test_more_workers_mean_more_hosts_of_the_same_size() -> None:
    assert cluster().with_workers(1536) == cluster(hosts=192)


@pytest.mark.parametrize(
    ("workers", "advice"), [(100, "take 96 or 104"), (5, "take 8"), (0, "take 8"), (-8, "take 8")]
)
def test_workers_that_do_not_fill_whole_hosts_are_refused_with_advice(workers: int, advice: str) -> None:
    with pytest.raises(InputError, match=rf"{workers} workers do not fill hosts of 8: {advice}"):
        cluster().with_workers(workers)


def test_with_workers_reshapes_a_torus() -> None:
    pod = cluster(Torus((4, 4, 8), 45e9), per_host=4, hosts=32)
    assert pod.with_workers(64).fabric == Torus((4, 4, 4), 45e9)


def test_a_torus_of_another_size_than_the_cluster_is_refused() -> None:
    with pytest.raises(InputError, match="a 4x4x4 torus has 64 accelerators, the cluster has 128"):
        cluster(Torus((4, 4, 4), 45e9))


def test_a_fast_domain_that_splits_a_host_unevenly_is_refused() -> None:
    with pytest.raises(InputError, match="a fast domain of 72 accelerators does not fit hosts of 5"):
        cluster(replace(MESH, domain=72), per_host=5)


def test_a_fast_domain_may_be_part_of_a_host() -> None:
    assert cluster(replace(MESH, domain=4)).ranks == 128


@pytest.mark.parametrize(("per_host", "hosts"), [(0, 16), (8, -1)])
def test_a_cluster_without_hosts_or_accelerators_is_refused(per_host: int, hosts: int) -> None:
    with pytest.raises(InputError, match="must be a whole number from 1"):
        cluster(per_host=per_host, hosts=hosts)


def test_a_machine_makes_clusters_and_fits_the_torus_to_them() -> None:
    server = Machine("server", CHIP, HOST, Torus((16, 16, 16), 45e9), 4)
    assert server.cluster(16).fabric == Torus((4, 4, 4), 45e9)
    assert server.cluster(16).ranks == 64


def test_hardware_is_hashable_and_survives_pickling() -> None:
    whole = cluster()
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert len({whole, cluster()}) == 1
