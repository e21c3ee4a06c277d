"""How measurements are made: foreign load, pinning, the one clock, environment, links."""

import ctypes
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from simulator.calibration.measure import links, load, pinning
from simulator.calibration.measure.channel import Array, Channel
from simulator.calibration.measure.clock import Stopwatch
from simulator.calibration.measure.environment import environment, for_ranks
from simulator.calibration.measure.grids import QUICK, Grid
from simulator.calibration.measure.primitives import Bench, curves
from simulator.calibration.measure.sockets import SocketChannel
from simulator.errors import InfeasibleError, InputError

STAT = "cpu  100 10 50 800 40 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


def test_idle_time_and_waiting_for_disks_are_not_load() -> None:
    assert load.ticks(STAT) == load.Ticks(total=1000, busy=160)


def test_a_busy_machine_is_refused_with_exit_code_1_and_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "busy_share", lambda: 0.6)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with pytest.raises(InfeasibleError, match=r"60 % of this machine busy .*--allow-load") as error:
        load.require_quiet(allow=False)
    assert error.value.exit_code == 1


def test_load_that_passes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.9, 0.5, 0.01])
    monkeypatch.setattr(load, "busy_share", lambda: next(shares))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert load.require_quiet(allow=False) == load.Load(0.01, allowed=False)


def test_a_measurement_beside_load_that_was_allowed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "busy_share", lambda: 0.6)
    taken = load.require_quiet(allow=True)
    assert taken.allowed and not taken.quiet


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin processes")
def test_ranks_are_pinned_to_cores_in_turn() -> None:
    program = (
        "import os; from simulator.calibration.measure.pinning import pin;"
        "cores = sorted(os.sched_getaffinity(0)); got = pin(len(cores) + 1 if len(cores) > 1 else 5);"
        "assert os.sched_getaffinity(0) == {got} == {cores[1 % len(cores)]}"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=for_ranks())


def test_a_thread_that_got_short_turns_has_them_and_machines_without_them_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = pinning._Attributes()
    if pinning.short_turns():
        get = pinning.SCHED_SETATTR[platform.machine()] + 1  # the kernel's sched_getattr
        assert not ctypes.CDLL(None).syscall(get, 0, ctypes.byref(told), ctypes.sizeof(told), 0)
        assert told.runtime == pinning.SLICE_NS
    monkeypatch.setattr(platform, "machine", lambda: "abacus")
    assert not pinning.short_turns()


def test_the_environment_names_processor_blas_and_libraries() -> None:
    found = environment()
    assert found["cores"] >= 1 and found["blas"] and found["libraries"]["numpy"] == np.__version__
    assert for_ranks()["OPENBLAS_NUM_THREADS"] == "1"


class LateRank(Channel):
    """Two ranks, of which the other started `late` seconds after this one and ended with it."""

    rank, size, late = 0, 2, 0.004

    def all_gather(self, part: Array) -> list[Array]:
        times = part.copy()
        if len(part) > 1:
            times.reshape(3, -1)[0] += self.late
        return [part, times]

    def all_to_all(self, parts: object) -> list[Array]:
        raise AssertionError

    def all_reduce(self, vector: Array) -> Array:
        raise AssertionError

    reduce_scatter = broadcast = all_reduce


def test_a_collective_lasts_from_the_last_arrival_and_a_computation_as_long_as_its_own() -> None:
    watch = Stopwatch(LateRank(), budget=0.08)
    computed = watch.compute(1, lambda turn: time.sleep(0.01))
    met = watch.collective(1, lambda turn: time.sleep(0.01))
    assert computed.seconds - met.seconds == pytest.approx(LateRank.late, rel=0.3)


def test_where_ranks_share_a_core_a_computation_takes_its_processor_time_for_each_of_them() -> None:
    def busy(turn: int) -> None:
        end = time.thread_time() + 0.004
        while time.thread_time() < end:
            pass

    point = Stopwatch(LateRank(), budget=0.05, sharing=2.0).compute(1, busy)
    assert point.seconds == pytest.approx(0.008, rel=0.1)
    asleep = Stopwatch(LateRank(), budget=0.05, sharing=2.0).compute(1, lambda turn: time.sleep(0.01))
    assert asleep.seconds < 0.002


def test_a_short_computation_is_timed_once_each_time_after_the_cache_was_used_for_something_else() -> None:
    calls: list[int] = []
    watch = Stopwatch(SocketChannel(0, 1, {}), budget=0.01)
    point = watch.compute(3, calls.append)
    assert point.size == 3 and 0.0 < point.seconds < 1e-4
    assert len(calls) == point.repeats + 2  # two before, which nobody times
    assert watch.elsewhere.max() == point.repeats


def test_every_primitive_of_the_grid_gives_a_curve() -> None:
    grid = Grid(
        bytes_=(64, 4096), copies=(64, 4096), keys=(8, 64), rows=(8, 64), tables=(100,), samples=(2, 8),
        values=(8, 64), networks=((6, 4, 1),), dimension=4, matrices=((4, 4, 4),), budget=0.001,
    )  # fmt: skip
    channel = SocketChannel(0, 1, {})
    tasks, watch = list(Bench(channel, grid).tasks()), Stopwatch(channel, grid.budget)
    found = curves(tasks, [[task.timed(watch) for task in tasks] for _ in range(2)])
    names = {curve.operation for curve in found}
    assert names >= {"copy", "distinct", "shared", "gather", "scatter", "segment_sum", "sgd", "adagrad"}
    assert names >= {"mlp_forward", "mlp_backward", "gemm", *grid.collectives}
    assert all(point.seconds > 0 for curve in found for point in curve.points)


def test_a_grid_comes_back_from_plain_data() -> None:
    assert Grid.of(QUICK.to_dict()) == QUICK


@pytest.mark.parametrize("text", ["", "loopback:3", "shaped", "shaped:", "shaped:fast", "shaped:3 s", "x"])
def test_wrong_links_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as error:
        links.parse_links(text)
    assert "\n" not in str(error.value)


def test_the_rate_of_links_is_in_bits_or_bytes_as_written() -> None:
    assert links.parse_links("shaped:1Gbit/s").rate == 125e6
    assert links.parse_links("shaped:0.5 GB/s").rate == 500e6
    assert links.parse_links("loopback").rate is None


def test_shaped_links_need_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InfeasibleError, match="need root"), links.parse_links("shaped:1Gbit/s").up(2):
        pass


@pytest.fixture
def namespaces() -> Iterator[None]:
    """Skip where namespaces cannot be made."""
    try:
        with links.parse_links("shaped:1Gbit/s").up(1):
            pass
    except InfeasibleError as error:
        pytest.skip(str(error))
    yield


def _existing() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


def test_shaped_links_are_torn_down_whatever_happens(namespaces: None) -> None:
    own = f"recscale-{os.getpid()}-"
    with pytest.raises(ZeroDivisionError), links.parse_links("shaped:1Gbit/s").up(3) as placed:
        assert _existing().count(own) == 4
        assert len(set(placed.addresses)) == 3
        raise ZeroDivisionError
    assert own not in _existing()
