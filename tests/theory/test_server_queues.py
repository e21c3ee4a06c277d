"""Queues at servers against SimPy and queueing theory; costs of calls against measured ones."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.costs.queueing import departures, departures_of_cores
from simulator.costs.rpc import busy_seconds, client_seconds, rpc_seconds
from simulator.errors import InputError
from simulator.hardware import Cluster, Host, TwoLevel, catalog
from simulator.hardware.servers import Rpc, Servers
from simulator.quantities import RpcWork

MEASURED = Rpc(first=0.51e-3, in_turn=0.25e-3, pipelined=0.13e-3, per_byte=0.8e-9)


def served_by_simpy(arrivals: list[int], services: list[int], cores: int) -> list[float]:
    """When each customer leaves a first-come-first-served SimPy resource."""
    env, left = simpy.Environment(), [0.0] * len(arrivals)
    server = simpy.Resource(env, capacity=cores)

    def customer(number: int) -> Iterator[object]:
        yield env.timeout(arrivals[number])
        with server.request() as turn:
            yield turn
            yield env.timeout(services[number])
        left[number] = env.now

    for number in range(len(arrivals)):
        env.process(customer(number))  # type: ignore[arg-type]
    env.run()
    return left


WAITS = st.lists(st.integers(0, 9), min_size=1, max_size=20)


@settings(max_examples=examples(60), deadline=None)
@given(gaps=WAITS, data=st.data())
def test_lindleys_recursion_equals_a_simpy_queue(gaps: list[int], data: st.DataObject) -> None:
    arrivals = np.cumsum(gaps).tolist()
    services = data.draw(st.lists(st.integers(0, 9), min_size=len(gaps), max_size=len(gaps)))
    ours = departures(np.array(arrivals, dtype=float), np.array(services, dtype=float))
    assert ours.tolist() == served_by_simpy(arrivals, services, 1)


@settings(max_examples=examples(60), deadline=None)
@given(gaps=WAITS, service=st.integers(0, 9), cores=st.integers(1, 5))
def test_several_cores_equal_a_simpy_queue_with_as_many_places(
    gaps: list[int], service: int, cores: int
) -> None:
    arrivals = np.cumsum(gaps).tolist()
    ours = departures_of_cores(np.array(arrivals, dtype=float), float(service), cores)
    assert ours.tolist() == served_by_simpy(arrivals, [service] * len(arrivals), cores)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_the_mean_wait_of_random_arrivals_is_that_of_m_d_1(load: float) -> None:
    """Pollaczek and Khinchine: with a fixed service time, rho / (2 (1 - rho)) of it."""
    arrivals = np.cumsum(np.random.default_rng(5).exponential(1.0 / load, 400_000))
    waits = departures(arrivals, 1.0) - arrivals - 1.0
    assert waits.mean() == pytest.approx(load / (2 * (1 - load)), rel=0.04)


def test_arrivals_out_of_order_are_refused() -> None:
    with pytest.raises(InputError, match="order of their arrival"):
        departures(np.array([2.0, 1.0]), 1.0)


# ---------------------------------------------------------------- what calls cost


def cluster(rpc: Rpc, cores: int = 4) -> Cluster:
    machine = catalog.machine(catalog.names("machine")[0])
    server = Host("server", cores, 1e11, 1e11, 0.5)
    fabric = TwoLevel(1e11, 1e10, 1e-6, 1e-6)
    return Cluster(machine.accelerator, machine.host, fabric, 1, 8, servers=Servers(server, 1e10, rpc))


ROW_BYTES, SERVERS = 128.0, 2
MEASUREMENTS = {  # keys a table and server, tables: in turn, asynchronous, one call; ms
    (16, 20): (8.6, 5.7, 0.51),
    (16, 200): (104.6, 53.0, 1.31),
    (128, 20): (10.9, 13.7, 0.78),
    (128, 200): (110.3, 47.8, 12.7),
    (1024, 20): (15.1, 7.9, 5.8),
    (1024, 200): (134.0, 86.3, 90.6),
}


def predicted_ms(keys: int, tables: int) -> tuple[float, float, float]:
    size = keys * tables * SERVERS * ROW_BYTES
    works = (
        RpcWork(tables, size, SERVERS, in_turn=True),
        RpcWork(tables, size, SERVERS),
        RpcWork(1, size, SERVERS),
    )
    one, two, three = (1e3 * client_seconds(work, MEASURED) for work in works)
    return one, two, three


def test_measured_calls_in_turn_at_once_and_coalesced_are_met_within_the_error_of_their_fits() -> None:
    """One straight line per way of calling; 7, 13 and 23 % were the median errors of fits of their own."""
    errors = np.array(
        [
            [abs(ours / theirs - 1) for ours, theirs in zip(predicted_ms(*case), measured, strict=True)]
            for case, measured in MEASUREMENTS.items()
        ]
    )
    assert (np.median(errors, axis=0) < [0.10, 0.20, 0.30]).all()


def test_coalescing_beats_calls_in_turn_in_every_measurement_and_calls_at_once_in_most() -> None:
    for case, (in_turn, at_once, one) in MEASUREMENTS.items():
        ours = predicted_ms(*case)
        assert (ours[0] > ours[2]) == (in_turn > one)
        assert (ours[1] > ours[2]) or at_once / one < 1.05


def test_a_server_that_is_fast_enough_keeps_nobody_waiting() -> None:
    work = RpcWork(20, 1e6, 2, ranks=8)
    assert rpc_seconds(work, cluster(MEASURED)) == client_seconds(work, MEASURED)


@pytest.mark.parametrize("in_turn", [True, False])
def test_a_slow_server_sets_the_pace_of_all_clients(in_turn: bool) -> None:
    """Service of 1 ms on 4 cores: 8 ranks make 160 calls to each of 2 servers, 40 rounds of 4."""
    slow = Rpc(in_turn=1e-5, server_call=1e-3)
    work = RpcWork(20, 0.0, 2, ranks=8, in_turn=in_turn)
    assert rpc_seconds(work, cluster(slow)) == pytest.approx(160 * 1e-3 / 4)
    assert busy_seconds(work, cluster(slow).servers) == pytest.approx(160 * 1e-3 / 4)  # type: ignore[arg-type]


def test_twice_the_load_on_the_hottest_server_takes_its_bytes_twice_as_long() -> None:
    bytes_only = Rpc(server_per_byte=1e-9)
    even, hot = (
        rpc_seconds(RpcWork(1, 4e6, 2, ranks=8, hottest=load), cluster(bytes_only, cores=1))
        for load in (1.0, 2.0)
    )
    assert hot == pytest.approx(2 * even)


def test_calls_cost_nothing_where_no_servers_are_described() -> None:
    plain = replace(cluster(MEASURED), servers=None)
    assert rpc_seconds(RpcWork(20, 1e6, 2), plain) == 0.0
