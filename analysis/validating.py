"""All measured cases of a folder and their predictions: training steps, collectives, matrix products, runs.

A folder has some of `PARTS`, each with the files and columns of its kind.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from analysis.bands import banded
from analysis.validated import Validated, Watch, unwatched, watched
from analysis.validating_collectives import collectives
from analysis.validating_products import products
from analysis.validating_recorded import local_runs
from analysis.validating_traces import profiled
from simulator.errors import InputError, Where

ALIKE = 0.8  # names so alike that one is the other misspelt (a ratio of difflib)
NO_ROWS = "holds no rows"


def training(folder: Path) -> list[Validated]:
    """Return the training steps."""
    from analysis.training.predictions import predict_folder

    return predict_folder(folder)


@dataclass(frozen=True)
class Part:
    """A part of a folder: what `predict`s it, the files (patterns) of which it must have one, the kind."""

    predict: Callable[[Path], list[Validated]]
    files: tuple[str, ...]
    kind: str

    def there(self, place: Path) -> list[Path]:
        """Return its files in the folder `place`; what is no regular file is told of by who reads it."""
        return sorted(path for pattern in self.files for path in place.glob(pattern) if not path.is_dir())

    def cases(self, folder: Path, name: str) -> list[Validated]:
        """Return the cases of the part `name` of `folder`; of files without a row, that they have none."""
        return self.predict(folder) or [self._empty(path, folder) for path in self.there(folder / name)]

    def _empty(self, path: Path, folder: Path) -> Validated:
        name = str(path.relative_to(folder))
        return Validated(name, self.kind, "files", name, float("nan")).not_predicted(NO_ROWS)


PARTS: Mapping[str, Part] = {
    "training": Part(training, ("mlperf_dlrm.csv", "other_benchmarks.csv"), "training"),
    "collectives": Part(collectives, ("tables.csv",), "collective"),
    "kernels": Part(products, ("gemm*.csv",), "gemm"),
    "traces": Part(profiled, ("**/*.json*",), "trace"),
    "local_runs": Part(local_runs, ("*.json",), "local"),
}


def validate_folder(folder: Path, watch: Watch = unwatched) -> list[Validated]:
    """Return every measured case in `folder` with its prediction; `watch(done, of)` hears of parts.

    Raises InputError when there is none, when a part has none of its files, for what cannot be read, and
    when no file has a row.
    """
    there = _parts(folder)
    parts = watched(list(PARTS.items()), watch)
    done = [part.cases(folder, name) if name in there else [] for name, part in parts]
    found = [case for cases in done for case in cases]
    if all(case.note.endswith(NO_ROWS) for case in found):
        raise InputError(NO_ROWS, Where(", ".join(str(folder / case.case_id) for case in found)))
    return [banded(case) for case in _told_apart(found)]


def _parts(folder: Path) -> set[str]:
    """Return the names of the parts of a folder. Raises InputError for none, and for an empty one."""
    if not folder.is_dir():
        problem = "is a file; a folder is needed" if folder.exists() else "there is no such folder"
        raise InputError(problem, Where(str(folder)))
    _check_names(folder)
    found = {name: part for name, part in PARTS.items() if (folder / name).is_dir()}
    if not found:
        raise InputError(f"the folder has none of {', '.join(PARTS)}", Where(str(folder)))
    for name, part in found.items():
        if not part.there(folder / name):
            raise InputError(f"holds none of {', '.join(part.files)}", Where(str(folder / name)))
    return set(found)


def _check_names(folder: Path) -> None:
    """Refuse a folder that bears nearly the name of a part that is not there."""
    missing = [name for name in PARTS if not (folder / name).is_dir()]
    for path in sorted(folder.iterdir()):
        near = get_close_matches(path.name.casefold(), missing, n=1, cutoff=ALIKE)
        if near:
            raise InputError(f'is no part of such a folder (did you mean "{near[0]}"?)', Where(str(path)))


def _told_apart(cases: Iterable[Validated]) -> Iterator[Validated]:
    """Yield the cases; those that share an id get a number behind it."""
    seen: Counter[str] = Counter()
    for case in cases:
        seen[case.case_id] += 1
        count = seen[case.case_id]
        yield case if count == 1 else replace(case, case_id=f"{case.case_id} ({count})")


def published(watch: Watch = unwatched) -> list[Validated]:
    """Return the published figures that the shipped scenarios reproduce and that are times in ms."""
    from analysis.validation import rows

    return [
        Validated(
            case_id=row["id"],
            kind="published",
            group=row["scenario"],
            configuration=row["id"],
            measured_ms=row["published"],
            role=row["role"],
            predicted_ms=row["predicted"],
            plain_sum_ms=row["plain_sum"],
            unlike=("more workers than the network was fitted on",) if row["extrapolated"] else (),
            source=row["source"],
            note=row["note"],
        )
        for row in rows(watch=watch)
        if row["role"] != "input" and row["error"] is not None and row["quantity"].endswith("_ms")
    ]
