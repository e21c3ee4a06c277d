"""CPU seconds of the fluid solver, one process, best of three, after compilation. They are printed.

SimGrid's times are those of a C++ driver (SimGrid 3.32, CM02, -O2) on a machine of the same kind.
"""

from collections.abc import Callable
from time import process_time

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
PODS = 12
SIMGRID_256 = {"uniform": 9.7, "columns": 23.8}
needs_numba = pytest.mark.skipif(not numba_is_installed(), reason="the extra `fast` is not installed")


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def tell(words: str) -> None:
        with capsys.disabled():
            print(f"\n  {words}", end="")

    return tell


def cpu_seconds(act: Callable[[], object], times: int = 3) -> float:
    act()
    best = np.inf
    for _ in range(times):
        begin = process_time()
        act()
        best = min(best, process_time() - begin)
    return best


def exchange(ranks: int, skew: str) -> tuple[np.ndarray, FlowClasses]:
    """100 MB from each rank to all others, each with a NIC of its own."""
    sigma = 0.0 if skew == "uniform" else 0.3
    factor = np.random.default_rng(7).lognormal(0.0, sigma, ranks)
    source, target = np.nonzero(~np.eye(ranks, dtype=bool))
    paths = np.stack([source, ranks + target], axis=1)
    return np.full(2 * ranks, NIC), FlowClasses.over(paths, 1e8 / ranks * factor[target])


def hosts_in_pods(hosts: int, spread: float) -> tuple[np.ndarray, FlowClasses]:
    """Return an exchange between hosts of eight ranks, in pods behind a 4:1 spine; pairs differ in size."""
    source, target = np.nonzero(~np.eye(hosts, dtype=bool))
    pod = np.arange(hosts) * PODS // hosts
    across = pod[source] != pod[target]
    spine = [
        np.where(across, 2 * hosts + pod[source], -1),
        np.where(across, 2 * hosts + PODS + pod[target], -1),
    ]
    size = 8e8 / hosts * np.random.default_rng(7).lognormal(0.0, spread, len(source))
    capacity = np.array([8 * NIC] * (2 * hosts) + [8 * NIC * hosts / PODS / 4] * (2 * PODS))
    return capacity, FlowClasses.over(np.stack([source, hosts + target, *spine], axis=1), size)


def ranks_in_classes(ranks: int, kinds: int) -> tuple[np.ndarray, FlowClasses]:
    """Return an all-to-all of `ranks` in pods, `kinds` kinds of rank per pod, that differ in bytes."""
    groups, rows, size = kinds * PODS, [], []
    each = ranks // groups
    for source in range(groups):
        for target in range(groups):
            peers = each - (source == target)
            row = {source: float(peers), groups + target: float(peers)}
            if source // kinds != target // kinds:
                row |= {2 * groups + source // kinds: float(each**2)}
                row |= {2 * groups + PODS + target // kinds: float(each**2)}
            rows.append(row)
            size.append(1e8 / ranks * (1 + source % kinds) * (1 + 0.1 * (target % kinds)))
    capacity = np.array([NIC] * (2 * groups) + [NIC * ranks / PODS / 4] * (2 * PODS))
    return capacity, FlowClasses.of_rows(rows, size)


def drive(fluid: Fluid, flows: FlowClasses, starts: list[int]) -> int:
    """Run collectives that start at these moments; return the wake-ups that it took."""
    coming, wakes = [(at, tag) for tag, at in enumerate(starts)], 0
    while coming or fluid.next_finish() is not None:
        wake = fluid.next_finish()
        if coming and (wake is None or coming[0][0] <= wake):
            at, tag = coming.pop(0)
            fluid.start(at, flows, tag)
        else:
            fluid.advance(wake)
            wakes += 1
    return wakes


@pytest.mark.parametrize("skew", SIMGRID_256)
@pytest.mark.parametrize("solver", [NumpySolver(), pytest.param(CompiledSolver(), marks=needs_numba)])
def test_an_exact_exchange_of_256_ranks_is_far_quicker_than_in_simgrid(
    solver: Solver, skew: str, say: Callable[[str], None]
) -> None:
    capacity, flows = exchange(256, skew)
    taken = cpu_seconds(lambda: finish_times(capacity, flows, solver=solver))
    ratio = SIMGRID_256[skew] / taken
    say(f"256 ranks, {skew}, {type(solver).__name__}: {taken:.4f} s, {ratio:,.0f} times SimGrid's speed")
    assert ratio >= (100 if skew == "uniform" else 20)


@needs_numba
def test_all_pairs_of_1536_ranks_one_by_one_take_seconds(say: Callable[[str], None]) -> None:
    capacity, flows = exchange(1536, "uniform")
    taken = cpu_seconds(lambda: finish_times(capacity, flows), 1)
    say(f"1,536 ranks, {len(flows):,} flows, uniform: {taken:.3f} s")
    assert taken <= 3


@pytest.mark.parametrize("kinds", [1, 2, 8])
def test_rates_of_1536_folded_ranks(kinds: int, say: Callable[[str], None]) -> None:
    capacity, flows = ranks_in_classes(1536, kinds)
    taken = cpu_seconds(lambda: solve_rates(capacity, flows))
    whole = cpu_seconds(lambda: finish_times(capacity, flows))
    say(f"1,536 ranks, {len(flows):,} classes: {taken * 1e3:.2f} ms to solve, {whole * 1e3:.1f} to the end")
    assert taken <= 0.05


@pytest.mark.parametrize("kinds", [1, 2])
def test_four_overlapping_collectives_of_1536_folded_ranks(kinds: int, say: Callable[[str], None]) -> None:
    capacity, flows = ranks_in_classes(1536, kinds)
    fluid, begin, wakes = Fluid(capacity), 0, []

    def step() -> None:
        nonlocal begin
        wakes.append(drive(fluid, flows, [begin + 3_000_000 * k for k in range(4)]))
        begin += 10**9

    taken = cpu_seconds(step)
    say(f"four overlapping, {len(flows)} classes each: {taken * 1e3:.2f} ms, {wakes[-1]} wake-ups")
    assert taken <= 0.05


@needs_numba
def test_four_overlapping_exchanges_of_192_unlike_hosts_with_ticks(say: Callable[[str], None]) -> None:
    capacity, flows = hosts_in_pods(192, 0.3)
    wakes = []
    taken = cpu_seconds(
        lambda: wakes.append(drive(Fluid(capacity, tick=0.01), flows, [4_000_000 * k for k in range(4)])), 2
    )
    say(f"four overlapping, {len(flows):,} unlike flows each, 1 % ticks: {taken:.3f} s, {wakes[-1]} wake-ups")
    assert taken <= 2


def test_a_collective_of_one_class_costs_little(say: Callable[[str], None]) -> None:
    fluid, begin = Fluid(np.full(2, NIC)), 0
    flows = FlowClasses.of_rows([{0: 1535.0, 1: 1535.0}], 1e8 / 1536)

    def many() -> None:
        nonlocal begin
        for _ in range(1000):
            drive(fluid, flows, [begin])
            begin += 10**8

    taken = cpu_seconds(many) / 1000
    say(f"one uniform collective from start to end: {taken * 1e6:.0f} us")
    assert taken <= 500e-6


@needs_numba
def test_the_cost_of_a_skewed_exchange_grows_no_faster_than_its_flows_times_its_ends(
    say: Callable[[str], None],
) -> None:
    taken = {n: cpu_seconds(lambda n=n: finish_times(*exchange(n, "columns"))) for n in (64, 128, 256)}
    say("exact, skewed by receiver: " + ", ".join(f"{n} ranks {t:.4f} s" for n, t in taken.items()))
    assert taken[256] / taken[64] <= 2 * 4**3


def test_folded_cost_does_not_grow_with_the_ranks(say: Callable[[str], None]) -> None:
    sizes = (768, 1536, 6144, 24_576)
    taken = {n: cpu_seconds(lambda n=n: finish_times(*ranks_in_classes(n, 2)), 5) for n in sizes}
    say("folded: " + ", ".join(f"{n:,} ranks {t * 1e3:.2f} ms" for n, t in taken.items()))
    assert taken[24_576] <= 3 * taken[768]


def test_folding_finds_the_classes_of_a_dense_exchange(say: Callable[[str], None]) -> None:
    capacity, flows = hosts_in_pods(192, 0.0)
    taken = cpu_seconds(lambda: fold(capacity, flows))
    classes = len(fold(capacity, flows).flows)
    say(f"{len(flows):,} flows folded into {classes}: {taken * 1e3:.0f} ms")
    assert classes == 2
    assert taken <= 1
