"""Results of a sweep on disk: Parquet files that appear whole, one row per point, found by key."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.sweep.points import Record
from simulator.errors import InputError, Where
from simulator.results.export import replacing
from simulator.results.report import BUSY, EXPOSED_KINDS, RAW_KINDS

if TYPE_CHECKING:
    import pandas
    import pyarrow

TEXTS = (
    *("key", "status", "error", "scenario_hash", "scenario", "policy", "consistency", "bottleneck"),
    *("engine", "fidelity", "job"),
)
LONG_TEXTS = ("notes", "settings")
NUMBERS = (
    "workers",
    *(f"step_{name}_ms" for name in ("mean", "p50", "p95", "p99")),
    *("interval_low_ms", "interval_high_ms", "latency_ms", "lower_bound_ms"),
    *("throughput_samples_per_s", "compute_ms"),
    *(f"exposed_{kind}_ms" for kind in EXPOSED_KINDS),
    *(f"raw_{kind}_ms" for kind in RAW_KINDS),
    "interference_ms",
    *(f"busy_{what}_share" for what in BUSY),
    *(f"staleness_{what}_steps" for what in ("declared", "observed_max", "observed_mean")),
    *("updates_lost_share", "updates_duplicated_share"),
    *(f"peak_memory_{place}_bytes" for place in ("hbm", "host")),
    *("usd_per_million_samples", "joules_per_sample"),
)
COLUMNS = frozenset((*TEXTS, *NUMBERS, *LONG_TEXTS))
PARTS = "points"


@cache
def schema() -> "pyarrow.Schema":
    """Return the columns of every file: text, then numbers, then what was set as JSON."""
    import pyarrow

    texts = [(name, pyarrow.string()) for name in TEXTS]
    numbers = [(name, pyarrow.float64()) for name in NUMBERS]
    return pyarrow.schema(texts + numbers + [(name, pyarrow.string()) for name in LONG_TEXTS])


class Dataset:
    """The folder of one or more sweeps. Files are only ever added; a half-written one has no name yet."""

    def __init__(self, folder: Path) -> None:
        """Take `folder`, which need not exist yet. Raises InputError when it is a file."""
        if folder.exists() and not folder.is_dir():
            raise InputError("is not a folder", Where(str(folder)))
        self.folder = folder

    @property
    def parts(self) -> list[Path]:
        """The files that are there, by name; what was being written when a sweep was killed is none."""
        return sorted((self.folder / PARTS).glob("[!.]*.parquet"))

    def add(self, records: Sequence[Record]) -> None:
        """Keep finished records: all of them, or none. Raises OSError when they cannot be written."""
        import pyarrow
        from pyarrow import parquet

        name = hashlib.blake2b(
            json.dumps([one["key"] for one in records]).encode(), digest_size=8
        ).hexdigest()
        table = pyarrow.Table.from_pylist(list(records), schema=schema())
        with replacing(self.folder / PARTS / f"{name}.parquet") as unfinished:
            parquet.write_table(table, unfinished, compression="zstd", version="2.6")

    def keys(self) -> set[str]:
        """Return the keys of all points that are kept. Raises InputError naming a file that is damaged."""
        return {key for part in self.parts for key in self._read(part, ["key"]).column("key").to_pylist()}

    def records(self, wanted: Iterable[str]) -> list[Record]:
        """Return the records of the keys in `wanted` that are kept, in that order."""
        found: dict[str, Record] = {}
        for part in self.parts:
            found.update((record["key"], record) for record in self._read(part).to_pylist())
        return [found[key] for key in dict.fromkeys(wanted) if key in found]

    def frame(self, wanted: Iterable[str] | None = None) -> "pandas.DataFrame":
        """Return the records as a table, with one column per path that was set.

        Columns of settings are numbers where all values are, and text otherwise; see `with_settings`.
        """
        import pandas

        keys = sorted(self.keys()) if wanted is None else wanted
        records = [with_settings(record) for record in self.records(keys)]
        return pandas.DataFrame(records)

    def _read(self, part: Path, columns: list[str] | None = None) -> Any:
        import pyarrow
        from pyarrow import parquet

        try:
            found = parquet.read_table(part, columns=columns, partitioning=None)
        except (pyarrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"is damaged ({reason}); remove it and resume", Where(str(part))) from None
        if columns is None and not found.schema.equals(schema()):
            raise InputError("was written by another version; use another folder", Where(str(part)))
        return found


def with_settings(record: Record) -> Record:
    """Return a record with what it set under the paths that set it, first; parts of a scenario as JSON.

    A path that is also the name of a column stands as `settings.PATH`: `policy` holds the kind that ran,
    `settings.policy` the policy as it was set.
    """
    settings = json.loads(record["settings"])
    made = {f"settings.{path}" if path in COLUMNS else path: _plain(it) for path, it in settings.items()}
    return {**made, **{name: value for name, value in record.items() if name != "settings"}}


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
