"""Collectives of torch.distributed: right results, tensors that stay where they are, honest names.

gloo on CPUs stands in for NCCL and HCCL, which need devices; events of a device are faked.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.calibration.measure.device_clock import EventTimer, HostTimer
from simulator.calibration.measure.grids import Grid
from simulator.calibration.measure.torch_collectives import GroupBench
from simulator.calibration.measure.torch_group import Backend, TorchChannel
from simulator.errors import InputError

torch: Any = pytest.importorskip("torch")
RANKS = 3
SIZES = Grid(bytes_=(1200, 12000))
SHARED = """
import json, sys
import numpy as np
import torch, torch.distributed as dist
rank, ranks, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
cpu = torch.device("cpu")
"""
OVER = """
dist.barrier()
dist.destroy_process_group()
with open(f"{folder}/{rank}.json", "w") as file:
    json.dump(found, file)
"""
EXCHANGES = """
from simulator.calibration.measure.torch_group import TorchChannel
channel = TorchChannel(None, cpu)
vector = np.arange(7, dtype=np.float32) * (rank + 1)
parts = [np.full(other + rank, 10 * rank + other, dtype=np.int64) for other in range(ranks)]
found = {
    "all_to_all": [part.tolist() for part in channel.all_to_all(parts)],
    "all_gather": [part.tolist() for part in channel.all_gather(vector)],
    "all_reduce": channel.all_reduce(vector).tolist(),
    "reduce_scatter": channel.reduce_scatter(vector).tolist(),
    "broadcast": channel.broadcast(vector).tolist(),
    "untouched": vector.tolist(),
}
"""
# A device on which a rank's collectives take as many milliseconds as its number plus one.
TIMES = """
from simulator.calibration.measure.device_clock import EventTimer
from simulator.calibration.measure.grids import Grid
from simulator.calibration.measure.torch_collectives import GroupBench

class Device:
    now = 0.0
    class Event:
        def __init__(self, enable_timing): self.at = None
        def record(self): self.at = Device.now
        def elapsed_time(self, later): return later.at - self.at
    def synchronize(self): pass

class Slow(GroupBench):
    def operation(self, name, size):
        inner = super().operation(name, size)
        def busy():
            inner()
            Device.now += rank + 1.0
        return busy
    def _meeting(self):
        super()._meeting()
        Device.now += 500.0

bench = Slow("gloo", cpu, EventTimer(Device()), repeats=5)
found = [curve.to_dict() for curve in bench.curves(Grid(bytes_=(1200,)))]
"""


def together(program: str, folder: Path, checkout: Path) -> list[Any]:
    """Run `program` on all ranks; return what each of them found."""
    script = folder / "rank.py"
    script.write_text(SHARED + program + OVER)
    commands = [[sys.executable, str(script), str(rank), str(RANKS), str(folder)] for rank in range(RANKS)]
    started = [
        subprocess.Popen(one, env={"PYTHONPATH": str(checkout)}, stderr=subprocess.PIPE) for one in commands
    ]
    try:
        for process in started:
            _, said = process.communicate(timeout=300)
            assert process.returncode == 0, said.decode()[-2000:]
    finally:
        for process in started:
            process.kill()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    """A job of one rank in this very process."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_channel_exchanges_what_it_is_given(tmp_path: Path, checkout: Path) -> None:
    found = together(EXCHANGES, tmp_path, checkout)
    total = [6.0 * value for value in range(7)]
    for rank, one in enumerate(found):
        assert one["all_to_all"] == [[10 * other + rank] * (rank + other) for other in range(RANKS)]
        assert one["all_gather"] == [[(other + 1.0) * value for value in range(7)] for other in range(RANKS)]
        assert one["all_reduce"] == total
        assert one["broadcast"] == [float(value) for value in range(7)]
        assert one["untouched"] == [(rank + 1.0) * value for value in range(7)]
    assert [value for one in found for value in one["reduce_scatter"]] == total  # 2, 2 and 3 of 7 values


def test_a_collective_takes_as_long_as_on_the_slowest_rank_and_meetings_do_not_count(
    tmp_path: Path, checkout: Path
) -> None:
    for curves in together(TIMES, tmp_path, checkout):
        assert len(curves) == 5
        for curve in curves:
            (point,) = curve["points"]
            assert point["seconds"] == pytest.approx(RANKS * 1e-3)
            assert point["back_to_back"] == pytest.approx(RANKS * 1e-3)
            assert (point["repeats"], point["p90_over_p50"]) == (5, pytest.approx(1.0))


def test_a_curve_is_called_after_the_library_and_what_it_does() -> None:
    bench = GroupBench("nccl", torch.device("cpu"), HostTimer())
    assert bench.name_of("reduce_scatter") == "nccl_reduce_scatter"
    gloo = GroupBench("gloo", torch.device("cpu"), HostTimer())
    assert gloo.name_of("reduce_scatter") == "gloo_reduce_scatter_by_all_reduce"
    assert gloo.name_of("all_to_all") == "gloo_all_to_all"


@pytest.mark.usefixtures("alone")
def test_gloo_is_measured_on_processors_under_its_own_name() -> None:
    from simulator.calibration.measure.torch_device import DeviceBench

    grid = Grid(bytes_=(1024,), rows=(16,), tables=(50,), samples=(2,), values=(64,), matrices=((4, 4, 4),))
    found = {curve.operation: curve for curve in DeviceBench(torch.device("cpu"), grid).curves()}
    assert {"gloo_all_reduce", "gloo_all_to_all", "gloo_reduce_scatter_by_all_reduce"} <= set(found)
    assert not [name for name in found if name in Grid().collectives or "nccl" in name]
    assert found["gloo_all_gather"].unit == "bytes"


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("name", Grid().collectives)
def test_nothing_is_copied_or_made_while_a_collective_is_timed(name: str) -> None:
    from torch.overrides import TorchFunctionMode

    called: list[str] = []

    class Watching(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, what: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            called.append(getattr(what, "__name__", str(what)))
            return what(*args, **(kwargs or {}))

    operation = GroupBench("gloo", torch.device("cpu"), HostTimer()).operation(name, 4096)
    with Watching():
        operation()
    assert not {"cpu", "to", "copy_", "clone", "from_numpy", "zeros", "empty", "numpy"} & set(called)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("newer", "older"),
    [("all_gather_single", "all_gather_into_tensor"), ("reduce_scatter_single", "reduce_scatter_tensor")],
)
def test_collectives_into_one_tensor_go_by_the_name_that_torch_has(
    newer: str, older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch.distributed as dist

    from simulator.calibration.measure.torch_collectives import into_all, into_part

    asked: list[str] = []
    monkeypatch.setattr(dist, newer, None, raising=False)
    monkeypatch.setattr(dist, older, lambda *_, **__: asked.append(older))
    (into_all if "gather" in newer else into_part)(torch.zeros(4), torch.zeros(4))
    assert asked == [older]


class _Elsewhere(TorchChannel):
    """A channel whose tensors would lie on a GPU."""

    def __init__(self, kind: str) -> None:
        self.device = torch.device(kind)


def test_calls_with_copies_to_a_device_are_not_called_collectives_of_it() -> None:
    assert _Elsewhere("cuda").curve_name("all_to_all") == "staged_all_to_all"
    assert _Elsewhere("cuda").curve_name("reduce_scatter") == "staged_reduce_scatter"
    assert _Elsewhere("cpu").curve_name("all_to_all") == "all_to_all"
    assert _Elsewhere("cpu").curve_name("reduce_scatter") == "reduce_scatter_by_all_reduce"
    assert _Elsewhere("cuda").curve_name("gather") == "gather"


def test_each_rank_takes_a_device_of_its_own_and_makes_it_current(monkeypatch: pytest.MonkeyPatch) -> None:
    current: list[Any] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    assert Backend("nccl").claimed(1, 2) == torch.device("cuda", 1)
    assert current == [torch.device("cuda", 1)]
    with pytest.raises(InputError, match="4 ranks need as many cuda devices; torch sees 2"):
        Backend("nccl").device(0, 4)


def test_a_machine_without_devices_is_told_to_take_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(InputError, match="take the gloo backend"):
        Backend("nccl").device(0, 1)
    with pytest.raises(InputError, match="HCCL needs torch_npu"):
        Backend("hccl").device(0, 1)
    with pytest.raises(InputError, match='did you mean "nccl"'):
        Backend("ncl")
    assert isinstance(EventTimer(torch.cuda), EventTimer)
