"""Sweeps as people run them: kept as they finish, resumed after any death, the same everywhere."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path

import pytest

from analysis.sweep.dataset import Dataset
from analysis.sweep.executors import DaskCluster, LocalProcesses
from analysis.sweep.grid import Grid, read_grid
from analysis.sweep.points import Record, Task, run_task
from analysis.sweep.running import LOST, SweepRequest, sweep
from simulator.errors import InputError
from simulator.scenario.shipped_files import shipped_folder

pytestmark = pytest.mark.slow

GRID = """
scenario: base.yaml
vary:
  - {path: workload.batch, range: {from: 64, to: 4096, points: 12, scale: log, whole: true}}
  - {path: workers, values: [8, 16, 17]}
"""


class InOurProcess(Executor):
    """Runs tasks at once, here; `deaths` tasks break it first."""

    def __init__(self, deaths: int = 0) -> None:
        self.deaths = deaths

    count = 1

    def start(self) -> Executor:
        return self

    def submit(self, fn, task):  # type: ignore[no-untyped-def, override]
        from concurrent.futures.process import BrokenProcessPool

        future: Future[list[Record]] = Future()
        if self.deaths:
            self.deaths -= 1
            future.set_exception(BrokenProcessPool("killed"))
        else:
            future.set_result(fn(task))
        return future


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    base = (shipped_folder() / "quickstart.yaml").read_text(encoding="utf-8")
    (tmp_path / "base.yaml").write_text(base, encoding="utf-8")
    (tmp_path / "grid.yaml").write_text(GRID, encoding="utf-8")
    return read_grid(tmp_path / "grid.yaml")


def told(records: list[Record]) -> list[tuple[object, ...]]:
    return sorted((one["key"], one["status"], one["step_mean_ms"], one["error"] or "") for one in records)


@pytest.fixture
def wanted(grid: Grid, tmp_path: Path) -> list[tuple[object, ...]]:
    return told(sweep(grid, SweepRequest(tmp_path / "wanted", InOurProcess())))


def test_a_point_that_cannot_run_is_recorded_with_its_reason_and_stops_no_other(
    grid: Grid, tmp_path: Path
) -> None:
    records = sweep(grid, SweepRequest(tmp_path / "out", InOurProcess()))
    wrong = [one for one in records if one["status"] == "wrong"]
    assert len(records) == 36
    assert len(wrong) == 12
    assert all("17 workers" in str(one["error"]) and one["step_mean_ms"] is None for one in wrong)


def test_what_is_kept_is_not_run_again(
    grid: Grid, tmp_path: Path, wanted: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def counted(task: Task) -> list[Record]:
        ran.extend(point.key for point in task.points)
        return run_task(task)

    monkeypatch.setattr("analysis.sweep.running.run_task", counted)
    half = grid.points[:20]
    Dataset(tmp_path / "out").add(run_task(Task(grid.base, "vector", half)))
    with pytest.raises(InputError, match="--resume"):
        sweep(grid, SweepRequest(tmp_path / "out", InOurProcess()))
    records = sweep(grid, SweepRequest(tmp_path / "out", InOurProcess(), resume=True))
    assert sorted(ran) == sorted(point.key for point in grid.points[20:])
    assert told(records) == wanted


def test_points_of_a_worker_that_died_are_run_again_alone(
    grid: Grid, tmp_path: Path, wanted: list[tuple[object, ...]]
) -> None:
    records = sweep(grid, SweepRequest(tmp_path / "out", InOurProcess(deaths=3)))
    assert told(records) == wanted


def test_a_point_that_kills_its_worker_twice_is_recorded_as_failed(grid: Grid, tmp_path: Path) -> None:
    records = sweep(grid, SweepRequest(tmp_path / "out", InOurProcess(deaths=1000)))
    assert {(one["status"], one["error"]) for one in records} == {("failed", LOST)}
    assert len(records) == 36


def test_a_full_disk_ends_the_sweep_and_what_was_kept_stays(
    grid: Grid, tmp_path: Path, wanted: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet

    write, calls = parquet.write_table, iter(range(1000))

    def full(table: object, path: Path, **options: object) -> None:
        write(table, path, **options)
        if next(calls) >= 2:
            raise OSError(errno.ENOSPC, "no space left on device")

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write_table", full)
        with pytest.raises(OSError, match="space"):
            sweep(grid, SweepRequest(out, InOurProcess()))
    kept = Dataset(out).keys()
    assert 0 < len(kept) < 36
    assert not list(out.rglob("*unfinished*"))
    assert told(sweep(grid, SweepRequest(out, InOurProcess(), resume=True))) == wanted


def test_a_damaged_file_is_named(grid: Grid, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep(grid, SweepRequest(out, InOurProcess()))
    part = Dataset(out).parts[0]
    part.write_bytes(part.read_bytes()[:40])
    with pytest.raises(InputError, match=part.name):
        Dataset(out).keys()


def test_processes_of_this_machine_give_the_same_answers(
    grid: Grid, tmp_path: Path, wanted: list[tuple[object, ...]]
) -> None:
    assert told(sweep(grid, SweepRequest(tmp_path / "out", LocalProcesses(2)))) == wanted


def children(of: int) -> list[int]:
    """Return the processes that `of` started and that run points."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            command = (folder / "cmdline").read_bytes()
        except (OSError, IndexError, ValueError):
            continue
        if parent == of and b"spawn_main" in command:
            found.append(int(folder.name))
    return found


def started(folder: Path, *more: str) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "simulator", "sweep", "grid.yaml", "--out", "out", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return subprocess.Popen(
        [*words, *more], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def wait_for_points(folder: Path, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 120
    while not list((folder / "out" / "points").glob("*.parquet")) and time.monotonic() < until:
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.02)


def everything(folder: Path) -> list[Record]:
    """Return all rows of all files, so that a point that was done twice would stand there twice."""
    import pyarrow.dataset

    rows: list[Record] = pyarrow.dataset.dataset(folder / "points", format="parquet").to_table().to_pylist()
    return rows


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")


@needs_proc
def test_a_killed_sweep_resumes_with_nothing_lost(
    grid: Grid, tmp_path: Path, wanted: list[tuple[object, ...]]
) -> None:
    process = started(tmp_path)
    wait_for_points(tmp_path, process)
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = Dataset(tmp_path / "out").keys()
    assert kept
    assert not any(_alive(worker) for worker in workers), "a worker outlived the sweep"
    assert started(tmp_path, "--resume").wait(120) == 0
    assert told(everything(tmp_path / "out")) == wanted


def _alive(process: int) -> bool:
    until = time.monotonic() + 20
    while Path(f"/proc/{process}").exists() and time.monotonic() < until:
        if Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return False
        time.sleep(0.1)
    return Path(f"/proc/{process}").exists()


@needs_proc
@pytest.mark.nightly
def test_a_sweep_outlives_a_killed_worker(
    grid: Grid, tmp_path: Path, wanted: list[tuple[object, ...]]
) -> None:
    process = started(tmp_path)
    wait_for_points(tmp_path, process)
    for worker in children(process.pid)[:1]:
        os.kill(worker, signal.SIGKILL)
    assert process.wait(120) == 0, process.stderr and process.stderr.read()
    assert told(everything(tmp_path / "out")) == wanted


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """A real Dask scheduler and two worker processes on loopback; one worker is killed after a while."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield str(cluster.scheduler_address)


def test_a_dask_scheduler_that_loses_a_worker_gives_the_same_dataset(
    grid: Grid, tmp_path: Path, wanted: list[tuple[object, ...]], scheduler: str
) -> None:
    workers = DaskCluster(scheduler)
    pids = list(workers.client.run(os.getpid).values())
    kept: list[int] = []

    def finished(points: int) -> None:
        kept.append(points)
        if len(kept) == 3:
            os.kill(pids[0], signal.SIGKILL)

    records = sweep(grid, SweepRequest(tmp_path / "out", workers, finished=finished))
    assert told(records) == wanted
    workers.client.close()


def test_an_address_without_a_scheduler_is_refused() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="no scheduler answers"):
        DaskCluster("tcp://127.0.0.1:1")


def test_two_sweeps_into_one_folder_are_kept_apart_and_the_second_names_the_first(
    grid: Grid, tmp_path: Path
) -> None:
    ran: list[str] = []

    class Second(InOurProcess):
        def start(self) -> Executor:
            with pytest.raises(
                InputError, match=rf"out: another sweep is at work there: process {os.getpid()}"
            ):
                sweep(grid, SweepRequest(tmp_path / "out", InOurProcess(), resume=True))
            ran.append("once")
            return self

    sweep(grid, SweepRequest(tmp_path / "out", Second()))
    rows = everything(tmp_path / "out")
    assert ran and len(rows) == len({one["key"] for one in rows}) == 36
    assert sorted(os.listdir(tmp_path / "out")) == ["points"]


def test_the_lock_of_a_sweep_that_was_killed_is_taken_over(grid: Grid, tmp_path: Path) -> None:
    killed = "import os, sys, signal; from pathlib import Path; from analysis.sweep.holding import held\n"
    killed += "with held(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", killed, str(tmp_path / "out")], env=environment, check=False)
    assert os.listdir(tmp_path / "out") == [".in_use"]
    assert len(sweep(grid, SweepRequest(tmp_path / "out", InOurProcess()))) == 36
    assert os.listdir(tmp_path / "out") == ["points"]


def test_an_interrupted_sweep_lets_go_of_its_folder(grid: Grid, tmp_path: Path) -> None:
    def interrupted(points: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(grid, SweepRequest(tmp_path / "out", InOurProcess(), finished=interrupted))
    assert len(sweep(grid, SweepRequest(tmp_path / "out", InOurProcess(), resume=True))) == 36
