"""What a folder of results holds: runs, points of sweeps, answers; nothing outside of it is read."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from analysis.report.answers import Answer, is_answer
from analysis.report.points import Point, is_done
from analysis.report.records import Row, RunRecord, checked, short
from analysis.sweep.dataset import PARTS, Dataset
from analysis.sweep.points import Record
from simulator.errors import InputError, Where

MOST_FILES, MOST_RESULTS, DEEPEST = 10_000, 1_000, 4
MOST_BYTES, MOST_POINTS, MOST_UNPACKED = 50_000_000, 100_000, 1_000_000_000
NOTHING = "holds no results: no run.json (recscale run --out), no points (sweep --out), no answer (plan)"


@dataclass(frozen=True)
class Run:
    """A run that was kept: its `run.json`, and the folder it lies in."""

    folder: Path
    record: RunRecord

    @property
    def key(self) -> tuple[str, str, int, str]:
        """What a report knows a run by."""
        row = self.record.row
        return row.scenario, row.policy, row.workers, row.engine

    def placed(self, below: Path) -> Row:
        """Return its row under a name that says in which folder `below` it lies."""
        row = self.record.row
        return replace(row, scenario=f"{row.scenario} ({short(str(self.folder.relative_to(below)))})")


@dataclass(frozen=True)
class Found:
    """All results below a folder, in order of their paths."""

    folder: Path
    runs: tuple[Run, ...]
    points: tuple[Point, ...]
    failures: tuple[str, ...]
    answers: tuple[Answer, ...]

    @cached_property
    def rows(self) -> list[Row]:
        """Runs and the points that could run, one row each; runs of one name are told apart by folder."""
        names = Counter(run.key for run in {(run.key, run.record.hash): run for run in self.runs}.values())
        told = [run.placed(self.folder) if names[run.key] > 1 else run.record.row for run in self.runs]
        return told + [point.row for point in self.points]


def find_results(folder: Path) -> Found:
    """Read the results below `folder`, four levels deep; links are not followed.

    Raises InputError when it holds none, too much, or a file that is damaged.
    """
    if not folder.is_dir():
        raise InputError("is not a folder of results", Where(str(folder)))
    paths = list(islice(_files(folder), MOST_FILES + 1))
    if len(paths) > MOST_FILES:
        raise InputError(f"holds more than {MOST_FILES:,} files", Where(str(folder)))
    runs = tuple(_run(path) for path in paths if path.name == "run.json")
    sweeps = sorted({path.parents[1] for path in paths if _is_part(path)})
    records = [record for place in sweeps for record in read_points(place)]
    answers = tuple(_answers(paths))
    if not (runs or records or answers):
        raise InputError(NOTHING, Where(str(folder)))
    if len(runs) + len(answers) > MOST_RESULTS or len(records) > MOST_POINTS:
        most = f"{MOST_RESULTS:,} runs and answers or {MOST_POINTS:,} points"
        raise InputError(f"holds more than {most}", Where(str(folder)))
    points = tuple(point_of(record, folder) for record in records if is_done(record))
    failures = tuple(str(record["error"]) for record in records if not is_done(record))
    return Found(folder, runs, points, failures, answers)


def point_of(record: Record, place: Path) -> Point:
    """Return a record with numbers, checked. Raises InputError naming the place and the point."""
    what = f"point ({record['key']})"
    return checked(Point, Point.fields_of(record), Where(str(place / PARTS)), what)


def read_points(place: Path) -> list[Record]:
    """Return the records of the sweep kept in `place`. Raises InputError on files that are no sweep's."""
    dataset = Dataset(place)
    for part in dataset.parts:
        _check_part(part)
    return dataset.records(sorted(dataset.keys()))


def _check_part(part: Path) -> None:
    """Refuse what is no plain file, and what would unpack to more than fits into memory."""
    import pyarrow
    from pyarrow import parquet

    if part.is_symlink() or not part.is_file():
        raise InputError("is not a regular file", Where(str(part)))
    try:
        told = parquet.read_metadata(part)
        unpacked = sum(told.row_group(place).total_byte_size for place in range(told.num_row_groups))
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"is damaged ({reason}); remove it and resume", Where(str(part))) from None
    if told.num_rows > MOST_POINTS or unpacked > MOST_UNPACKED:
        raise InputError(f"holds more than {MOST_POINTS:,} points", Where(str(part)))


def _files(folder: Path) -> Iterator[Path]:
    """Yield regular files of a few levels in order of their names; links are left out."""
    for place, folders, names in os.walk(folder):
        deep = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(folders) if deep + 1 < DEEPEST else []
        for name in sorted(names):
            path = Path(place, name)
            if not path.is_symlink() and path.is_file():
                yield path


def _is_part(path: Path) -> bool:
    return path.parent.name == PARTS and path.suffix == ".parquet" and not path.name.startswith(".")


def _run(path: Path) -> Run:
    data = _json(path)
    return Run(path.parent, checked(RunRecord, data, Where(str(path)), "record of a run"))


def _answers(paths: list[Path]) -> Iterator[Answer]:
    """Yield the answers among JSON files; what is no JSON, or something else, is left alone."""
    for path in paths:
        if path.suffix == ".json" and path.name != "run.json" and path.stat().st_size <= MOST_BYTES:
            try:
                data = _json(path)
            except InputError:
                continue
            if is_answer(data):
                yield checked(Answer, data, Where(str(path)), "answer to a planning question")


def _json(path: Path) -> Any:
    import orjson

    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"is larger than {MOST_BYTES // 1_000_000} MB", Where(str(path)))
    try:
        return orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error}", Where(str(path))) from None
