"""The fluid solver against a plain one: every flow on its own, in real time, without any shortcut.

The reference fills rates flow by flow on a table of who crosses what, and steps from event to event.
It shares no code with the product. Scenarios: all-to-all uniform and skewed, overlapping, beside a ring,
with start jitter; one or eight ranks per NIC; a flat fabric or a spine oversubscribed four to one.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from simulator.engine.fluid import (
    CompiledSolver,
    FlowClasses,
    Fluid,
    NumpySolver,
    Solver,
    finish_times,
    fold,
    numba_is_installed,
    solve_rates,
)

NIC = 25e9
INSIDE = 196e9
PODS = 4
SOLVERS = [
    pytest.param(NumpySolver(), id="numpy"),
    pytest.param(
        CompiledSolver(),
        id="numba",
        marks=pytest.mark.skipif(not numba_is_installed(), reason="the extra `fast` is not installed"),
    ),
]


def reference_rates(capacity: np.ndarray, crosses: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Raise one level for all until a link is full, hold the flows that cross it, and go on."""
    rate, free, left = np.zeros(len(weight)), np.ones(len(weight), dtype=bool), capacity.astype(float)
    while free.any():
        load, level = crosses @ (weight * free), np.full(len(capacity), np.inf)
        np.divide(left, load, out=level, where=load > 0)
        full = level <= level.min() * (1 + 1e-12)
        held = free & (crosses[full] > 0).any(axis=0)
        rate[held] = weight[held] * level.min()
        left = left - crosses @ (rate * held)
        free &= ~held
    return rate


def reference_ends(
    capacity: np.ndarray, crosses: np.ndarray, flows: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return when each flow ends (real ns): flows are (bytes, weight, start in ns)."""
    size, weight, start = flows
    left, end, now = size.astype(float), np.full(len(size), np.inf), 0.0
    while np.isinf(end).any():
        active = np.flatnonzero((start <= now) & np.isinf(end))
        rate = reference_rates(capacity, crosses[:, active], weight[active]) / 1e9
        due = now + left[active] / rate
        coming = start[start > now]
        until = min(due.min(initial=np.inf), coming.min(initial=np.inf))
        left[active] -= rate * (until - now)
        ended = active[left[active] <= 1e-12 * size[active]]
        end[ended], now = until, until
    return end


@dataclass(frozen=True)
class Network:
    """NICs in and out, shared by `per_nic` ranks each, links inside hosts, and spines of pods or none."""

    ranks: int
    per_nic: int
    spine: bool

    @property
    def nics(self) -> int:
        return self.ranks // self.per_nic

    @property
    def capacity(self) -> np.ndarray:
        pod = NIC * self.nics / PODS / 4
        spines = [pod] * (2 * PODS if self.spine else 0)
        return np.array([NIC] * (2 * self.nics) + [INSIDE] * (2 * self.ranks) + spines)

    def path(self, source: int, target: int) -> list[int]:
        """Return the links from rank to rank, padded with -1 to four."""
        here, there = source // self.per_nic, target // self.per_nic
        inside = 2 * self.nics
        if here == there:
            return [inside + source, inside + self.ranks + target, -1, -1]
        links, top = [here, self.nics + there], inside + 2 * self.ranks
        pods = [nic * PODS // self.nics for nic in (here, there)]
        across = self.spine and pods[0] != pods[1]
        return links + ([top + pods[0], top + PODS + pods[1]] if across else [-1, -1])

    def flows(self, matrix: np.ndarray) -> FlowClasses:
        """Return one flow for each pair of ranks with bytes to send, by source and then target."""
        pairs = [(s, t) for s in range(self.ranks) for t in range(self.ranks) if s != t and matrix[s, t]]
        paths = [self.path(*pair) for pair in pairs]
        return FlowClasses.over(paths, [matrix[pair] for pair in pairs])


def uniform(ranks: int, size: float = 1e7) -> np.ndarray:
    return np.full((ranks, ranks), size / ranks)


def hot_columns(ranks: int, seed: int = 1) -> np.ndarray:
    return uniform(ranks) * np.exp(0.3 * np.random.default_rng(seed).standard_normal(ranks))[None, :]


def hot_shards(ranks: int) -> np.ndarray:
    matrix = uniform(ranks)
    matrix[:, 3] *= 2.5
    matrix[:, ranks // 2] *= 1.5
    return matrix


def all_random(ranks: int, seed: int = 2) -> np.ndarray:
    return uniform(ranks) * np.exp(0.3 * np.random.default_rng(seed).standard_normal((ranks, ranks)))


def ring(ranks: int, size: float = 2e6) -> np.ndarray:
    return np.roll(np.eye(ranks), 1, axis=1) * (2 * (ranks - 1) / ranks * size)


def crossing_table(flows: FlowClasses, links: int) -> np.ndarray:
    table = np.zeros((links, len(flows)))
    np.add.at(table, (flows.link, flows.owner()), flows.coefficient)
    return table


def expected_ns(network: Network, collectives: list[tuple[int, FlowClasses]]) -> list[np.ndarray]:
    """Return the reference's real end times of each collective, (start, flows)."""
    sizes = np.concatenate([flows.bytes for _, flows in collectives])
    starts = np.concatenate([np.full(len(flows), float(start)) for start, flows in collectives])
    crosses = np.hstack([crossing_table(flows, len(network.capacity)) for _, flows in collectives])
    ends = reference_ends(network.capacity, crosses, (sizes, np.ones_like(sizes), starts))
    return np.split(ends, np.cumsum([len(flows) for _, flows in collectives])[:-1])


def simulated_ns(fluid: Fluid, collectives: list[tuple[int, FlowClasses]]) -> list[np.ndarray]:
    """Drive the state machine as an event engine does; return the end times on the clock."""
    ends = [np.zeros(len(flows), dtype=np.int64) for _, flows in collectives]
    coming = sorted((start, tag) for tag, (start, _) in enumerate(collectives))
    while coming or fluid.next_finish() is not None:
        wake = fluid.next_finish()
        if coming and (wake is None or coming[0][0] <= wake):
            start, tag = coming.pop(0)
            fluid.start(start, collectives[tag][1], tag)
        else:
            assert wake is not None
            for finished in fluid.advance(wake):
                assert (finished.times_ns >= wake).all()
                ends[finished.tag][finished.classes] = finished.times_ns
    return ends


NETWORKS = [Network(16, 1, False), Network(16, 1, True), Network(32, 8, False), Network(32, 8, True)]
MATRICES = {"uniform": uniform, "hot columns": hot_columns, "all random": all_random}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_rates_of_one_all_to_all_are_those_of_the_reference(
    network: Network, matrix: object, solver: Solver
) -> None:
    flows = network.flows(matrix(network.ranks))
    expected = reference_rates(
        network.capacity, crossing_table(flows, len(network.capacity)), np.ones(len(flows))
    )
    np.testing.assert_allclose(solve_rates(network.capacity, flows, solver), expected, rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_rates_with_unequal_weights_are_those_of_the_reference(solver: Solver) -> None:
    network = Network(32, 8, True)
    flows, rng = network.flows(uniform(32)), np.random.default_rng(5)
    weight = rng.lognormal(0.0, 1.0, len(flows))
    weighted = FlowClasses(flows.starts, flows.link, flows.coefficient, flows.bytes, weight, flows.cap)
    expected = reference_rates(network.capacity, crossing_table(flows, len(network.capacity)), weight)
    np.testing.assert_allclose(solve_rates(network.capacity, weighted, solver), expected, rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_one_all_to_all_ends_when_the_reference_says(
    network: Network, matrix: object, solver: Solver
) -> None:
    flows = network.flows(matrix(network.ranks))
    (expected,) = expected_ns(network, [(0, flows)])
    np.testing.assert_allclose(
        finish_times(network.capacity, flows, solver=solver) * 1e9, expected, rtol=1e-9
    )


@pytest.mark.parametrize("matrix", [uniform, hot_shards])
@pytest.mark.parametrize("network", [Network(64, 1, True), Network(64, 8, True)], ids=str)
def test_sixty_four_ranks_end_when_the_reference_says(network: Network, matrix: object) -> None:
    flows = network.flows(matrix(64))
    (expected,) = expected_ns(network, [(0, flows)])
    np.testing.assert_allclose(finish_times(network.capacity, flows) * 1e9, expected, rtol=1e-9)


OVERLAPS = {
    "two staggered all-to-alls": lambda n: [(0, uniform(n)), (100_000, hot_columns(n))],
    "three all-to-alls": lambda n: [(7, all_random(n)), (50_001, hot_columns(n)), (90_002, uniform(n))],
    "all-to-all and ring": lambda n: [(0, hot_columns(n)), (60_000, ring(n))],
    "ring, then all-to-all at once": lambda n: [(0, ring(n)), (0, uniform(n))],
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("overlap", OVERLAPS.values(), ids=OVERLAPS)
@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_overlapping_collectives_end_on_the_reference_s_nanosecond(
    network: Network, overlap: object, solver: Solver
) -> None:
    collectives = [(start, network.flows(matrix)) for start, matrix in overlap(network.ranks)]
    found = simulated_ns(Fluid(network.capacity, solver=solver), collectives)
    for on_clock, real in zip(found, expected_ns(network, collectives), strict=True):
        assert np.abs(on_clock - np.ceil(real - 1e-4)).max() <= 1
        assert np.mean(on_clock != np.ceil(real - 1e-4)) < 0.01


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_ranks_that_start_late_end_on_the_reference_s_nanosecond(network: Network) -> None:
    late = np.random.default_rng(3).integers(0, 80_000, network.ranks)
    matrix, collectives = hot_columns(network.ranks), []
    for rank, start in enumerate(late):
        own_row = np.zeros_like(matrix)
        own_row[rank] = matrix[rank]
        collectives.append((int(start), network.flows(own_row)))
    found = simulated_ns(Fluid(network.capacity), collectives)
    for on_clock, real in zip(found, expected_ns(network, collectives), strict=True):
        assert np.abs(on_clock - np.ceil(real - 1e-4)).max() <= 1


@pytest.mark.parametrize(
    "network", [Network(64, 8, True), Network(64, 1, True), Network(32, 8, False)], ids=str
)
def test_folding_a_symmetric_all_to_all_changes_no_end(network: Network) -> None:
    flows = network.flows(uniform(network.ranks))
    folded = fold(network.capacity, flows)
    assert len(folded.flows) <= 3
    one_by_one = finish_times(network.capacity, flows)
    in_classes = finish_times(folded.capacity, folded.flows)[folded.flow_class]
    np.testing.assert_allclose(in_classes, one_by_one, rtol=1e-12)


def test_folding_keeps_a_hot_shard_apart_and_changes_no_end() -> None:
    network = Network(64, 8, True)
    flows = network.flows(hot_shards(64))
    folded = fold(network.capacity, flows)
    assert len(folded.flows) < 40
    in_classes = finish_times(folded.capacity, folded.flows)[folded.flow_class]
    np.testing.assert_allclose(in_classes, finish_times(network.capacity, flows), rtol=1e-12)


def test_nothing_is_folded_where_nothing_is_alike() -> None:
    network = Network(16, 1, False)
    flows = network.flows(all_random(16))
    assert len(fold(network.capacity, flows).flows) == len(flows)


@pytest.mark.parametrize("overlap", OVERLAPS.values(), ids=OVERLAPS)
@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_ticks_of_one_per_cent_stay_near_the_exact_ends(network: Network, overlap: object) -> None:
    collectives = [(start, network.flows(matrix)) for start, matrix in overlap(network.ranks)]
    ticked = simulated_ns(Fluid(network.capacity, tick=0.01), collectives)
    exact = simulated_ns(Fluid(network.capacity), collectives)
    for found, right, (start, _) in zip(ticked, exact, collectives, strict=True):
        lasted = right.max() - start
        assert np.abs(found - right).max() <= 0.02 * lasted
        assert np.abs(found - right).mean() <= 0.005 * lasted
        assert abs(int((found - right).sum())) <= 0.005 * lasted * len(found)
