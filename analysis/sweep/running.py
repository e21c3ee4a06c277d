"""Running a sweep: what is missing is sent out in small tasks, what comes back is kept at once."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass
from pathlib import Path

from analysis.sweep.dataset import Dataset
from analysis.sweep.executors import Workers
from analysis.sweep.grid import Grid, Point
from analysis.sweep.holding import held
from analysis.sweep.points import FAILED, Record, Task, failure, run_task
from simulator.errors import InputError, Where

MOST_PER_TASK = 16
WAITING_PER_WORKER = 2  # tasks sent out ahead, so that no worker waits for us
LOST = "the process that ran it was killed or ran out of memory, twice"


@dataclass(frozen=True)
class SweepRequest:
    """Where results go and who computes them.

    `found` is called once with the number of points that are kept already, `finished` with the number of
    each few that were computed and kept.
    """

    folder: Path
    workers: Workers
    resume: bool = False
    finished: Callable[[int], None] = lambda points: None
    found: Callable[[int], None] = lambda points: None


def sweep(grid: Grid, request: SweepRequest) -> list[Record]:
    """Run the points of `grid` that the folder does not hold yet; return the records of all its points.

    What is finished is on disk before the next task is sent, so that nothing finished is lost or done
    twice whoever is killed. Raises InputError when the folder holds results and `resume` is not set, and when
    another sweep is at work there; OSError when results cannot be written (those written before stay).
    """
    dataset = Dataset(request.folder)
    with held(request.folder):
        return _swept(grid, request, dataset)


def _swept(grid: Grid, request: SweepRequest, dataset: Dataset) -> list[Record]:
    kept = dataset.keys()
    if kept and not request.resume:
        raise InputError("holds results already; --resume continues them", Where(str(request.folder)))
    missing = [point for point in grid.points if point.key not in kept]
    request.found(len(grid.points) - len(missing))
    for records in _results(grid, missing, request.workers):
        dataset.add(records)
        request.finished(len(records))
    return dataset.records(point.key for point in grid.points)


def _results(grid: Grid, missing: Sequence[Point], workers: Workers) -> Iterator[list[Record]]:
    """Yield records task by task; points whose worker died are tried again, each alone."""
    suspects: list[Point] = []
    tasks = list(_tasks(grid, missing, workers.count))
    while tasks:
        outcome = _Round(workers, tasks, WAITING_PER_WORKER * workers.count)
        yield from outcome.records()
        suspects += [point for task in outcome.lost for point in task.points]
        tasks = outcome.unsent
    for point in suspects:
        alone = _Round(workers, [Task(grid.base, grid.spec.engine, (point,))], 1)
        yield from alone.records()
        if alone.lost:
            yield [failure(point, FAILED, LOST)]


def _tasks(grid: Grid, points: Sequence[Point], workers: int) -> Iterator[Task]:
    """Yield tasks small enough that all workers end at about the same time."""
    size = max(1, min(MOST_PER_TASK, len(points) // (8 * workers)))
    for start in range(0, len(points), size):
        yield Task(grid.base, grid.spec.engine, tuple(points[start : start + size]))


class _Round:
    """One executor and the tasks it got through; `lost` were with a worker that died, `unsent` were not."""

    def __init__(self, workers: Workers, tasks: Sequence[Task], most_out: int) -> None:
        self.workers, self.most_out = workers, most_out
        self.unsent = list(tasks)
        self.lost: list[Task] = []
        self.out: dict[Future[list[Record]], Task] = {}

    def records(self) -> Iterator[list[Record]]:
        """Yield the records of each task that ends well; after a loss, of those already sent."""
        executor, came = self.workers.start(), 0
        try:
            while self._send(executor) or self.out:
                done, _ = wait(self.out, return_when=FIRST_COMPLETED)
                for future in done:
                    for records in self._came_back(future):
                        came += 1
                        yield records
        finally:
            for future in self.out:
                future.cancel()
            executor.shutdown(wait=False)
        if not came and not self.lost and self.unsent:  # broken before anything was sent: blame the first
            self.lost.append(self.unsent.pop(0))

    def _send(self, executor: Executor) -> bool:
        """Keep the workers busy; return whether anything is under way."""
        try:
            while self.unsent and not self.lost and len(self.out) < self.most_out:
                self.out[executor.submit(run_task, self.unsent[0])] = self.unsent[0]
                del self.unsent[0]
        except BrokenExecutor:
            pass  # what is under way ends with the same error, and is told apart there
        return bool(self.out)

    def _came_back(self, future: Future[list[Record]]) -> Iterator[list[Record]]:
        task = self.out.pop(future)
        try:
            yield future.result()
        except Exception as error:
            if not _is_loss(error):
                raise
            self.lost.append(task)


def _is_loss(error: Exception) -> bool:
    """Whether a worker died, rather than that the task has a defect (`run_task` raises nothing)."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ in ("KilledWorker", "CancelledError")
