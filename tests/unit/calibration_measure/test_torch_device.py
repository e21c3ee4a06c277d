"""Device timing through torch: by events, under names that say what was measured.

There is no accelerator where these tests run: what needs one is a fake clock of events here, or gloo on CPUs.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from simulator.calibration.measure.device_clock import EventTimer, HostTimer, timer_of
from simulator.calibration.measure.grids import QUICK, Grid

SMALL = replace(
    QUICK,
    copies=(256,),
    rows=(16,),
    tables=(100,),
    samples=(2,),
    values=(64,),
    networks=((8, 4, 1),),
    matrices=((8, 4, 2),),
    bytes_=(1024, 4096),
)


@dataclass
class FakeDevice:
    """A device whose queue takes the time that was put into it, with what torch.cuda has."""

    now_ms: float = 0.0
    synchronized: bool = False
    recorded: list[float] = field(default_factory=list)

    def Event(self, enable_timing: bool) -> "FakeEvent":  # noqa: N802 - the name that torch gives it
        assert enable_timing
        return FakeEvent(self)

    def synchronize(self) -> None:
        self.synchronized = True

    def work(self, milliseconds: float) -> Callable[[], None]:
        """Return an operation that keeps the device busy."""

        def queued() -> None:
            self.now_ms += milliseconds

        return queued


@dataclass
class FakeEvent:
    device: FakeDevice
    at_ms: float = float("nan")

    def record(self) -> None:
        self.at_ms = self.device.now_ms
        self.device.recorded.append(self.at_ms)

    def elapsed_time(self, later: "FakeEvent") -> float:
        assert self.device.synchronized, "events are read only when the device is done"
        return later.at_ms - self.at_ms


def test_events_count_what_lies_between_them_in_milliseconds() -> None:
    device = FakeDevice()
    taken = EventTimer(device).timed(device.work(2.5), 4)
    assert taken.seconds.tolist() == pytest.approx([2.5e-3] * 4)
    assert len(device.recorded) == 8


def test_what_is_queued_before_an_operation_is_not_counted() -> None:
    device = FakeDevice()
    timer = EventTimer(device, device.work(1000.0))
    taken = timer.timed(device.work(0.25), 3, device.work(7.0))
    assert taken.seconds.tolist() == pytest.approx([0.25e-3] * 3)
    assert device.recorded[0] == 1007.0  # a head start for the host, then the meeting of ranks


def test_a_device_that_took_no_time_gives_no_zero() -> None:
    device = FakeDevice()
    assert EventTimer(device).timed(device.work(0.0), 2).seconds.min() > 0


def test_the_clock_of_a_host_counts_calls_and_not_what_goes_before() -> None:
    ticks = iter(range(100))
    calls: list[str] = []
    taken = HostTimer(lambda: float(next(ticks))).timed(
        lambda: calls.append("timed"), 2, lambda: calls.append("before")
    )
    assert taken.seconds.tolist() == [1.0, 1.0]
    assert calls == ["before", "timed", "before", "timed"]


def curves(device: Any, timer: Any = None) -> dict[str, Any]:
    from simulator.calibration.measure.torch_device import DeviceBench

    return {curve.operation: curve for curve in DeviceBench(device, SMALL, timer).curves()}


def test_on_a_processor_no_curve_is_called_one_of_a_device() -> None:
    torch = pytest.importorskip("torch")
    found = curves(torch.device("cpu"))
    names = {
        "torch_gemm",
        "torch_mlp_forward",
        "torch_mlp_both",
        "torch_sgd",
        "torch_gather",
        "torch_index_add",
    }
    assert names <= set(found)
    assert not [name for name in found if "device" in name]
    assert all(point.seconds > 0 for curve in found.values() for point in curve.points)
    assert isinstance(timer_of(torch.device("cpu")), HostTimer)


def test_curves_of_a_device_are_timed_by_its_events() -> None:
    torch = pytest.importorskip("torch")
    device = FakeDevice()
    busy = EventTimer(device)
    ticking = replace_timer(busy, device)
    found = curves(torch.device("cpu"), ticking)
    times = {point.seconds for curve in found.values() for point in curve.points}
    assert times == {3e-3}  # what the fake device says, whatever the processor took


def replace_timer(timer: EventTimer, device: FakeDevice) -> Any:
    """Return a timer for which each operation keeps the fake device busy for 3 ms."""

    class Ticking:
        def timed(self, operation: Callable[[], object], repeats: int, before: Any = None) -> Any:
            def ticked() -> None:
                operation()
                device.now_ms += 3.0

            return timer.timed(ticked, repeats)

    return Ticking()


def test_fbgemm_has_a_curve_of_its_own_beside_that_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    library = torch.library.Library("fbgemm", "FRAGMENT")
    library.define("index_select_dim0(Tensor table, Tensor places) -> Tensor")
    asked: list[int] = []

    def select(table: Any, places: Any) -> Any:
        asked.append(len(places))
        return table[places]

    library.impl("index_select_dim0", select, "CPU")
    assert "torch_gather_fbgemm" not in curves(torch.device("cpu"))
    monkeypatch.setitem(sys.modules, "fbgemm_gpu", ModuleType("fbgemm_gpu"))
    found = curves(torch.device("cpu"))
    assert {"torch_gather", "torch_gather_fbgemm"} <= set(found)
    assert set(asked) == {16}


def test_a_broken_fbgemm_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from simulator.calibration.measure.torch_device import readers

    monkeypatch.setitem(sys.modules, "fbgemm_gpu", None)  # importing it raises ImportError
    assert list(readers()) == ["gather"]


def test_copies_say_whether_the_memory_of_the_host_was_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from simulator.calibration.measure import torch_device

    for pinned, names in (
        (True, {"host_to_device", "device_to_host"}),
        (False, {"host_to_device_pageable", "device_to_host_pageable"}),
    ):
        monkeypatch.setattr(torch_device, "_pinned", lambda host, pinned=pinned: (host, pinned))
        bench = torch_device.DeviceBench(torch.device("cpu"), SMALL)
        assert {curve.operation for curve in bench._copies()} == names


def test_grids_of_devices_are_those_of_the_command() -> None:
    assert set(Grid().collectives) == {
        "all_to_all",
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "broadcast",
    }
    assert np.all(np.diff(SMALL.bytes_) > 0)
