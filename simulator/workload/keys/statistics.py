"""What a key log says about one table, and about the whole log."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from simulator.workload.keys.features import Feature
from simulator.workload.keys.frequencies import Frequencies, MandelbrotFit, ZipfFit

COVERAGE_FRACTIONS = (0.0001, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
Value = str | int | float | None


@dataclass(frozen=True)
class WindowStatistics:
    """Keys of consecutive windows of `samples` samples, means over the log's complete windows.

    `distinct` and `distinct_sd` are numbers of keys per window, `overlap` the keys common to
    neighbouring windows (None when there is one window only). `lookups` is the mean per window.
    """

    samples: int
    lookups: float
    windows: int
    distinct: float
    distinct_sd: float
    overlap: float | None


@dataclass(frozen=True)
class OwnerSpread:
    """What each of `owners` hash-sharded owners gets, measured at the log's batch boundaries.

    `mean`, `sd` (across owners) and `busiest` are distinct keys per batch of one rank.
    `raw_busiest_over_mean` compares lookups, duplicates included, over the whole log.
    """

    owners: int
    mean: float
    sd: float
    busiest: float
    raw_busiest_over_mean: float


@dataclass(frozen=True)
class RangeSpread:
    """What the busiest of `owners` owners of equal ranges of rows gets, over the mean.

    Ranges are of the keys' values where all are numbers in the file's own types, and else of the
    order of first appearance, in which vocabularies number them. `raw_busiest_over_mean` is counted
    over the whole log; `busiest_over_mean` compares distinct keys per batch, as expected from each
    key's share of the lookups.
    """

    owners: int
    raw_busiest_over_mean: float
    busiest_over_mean: float


@dataclass(frozen=True)
class TableStatistics:
    """Everything measured about the keys of one table.

    `windows` are sorted by size and contain the batch itself; `lag_overlaps[i]` is the number of
    keys common to two batches `i + 1` apart, for as many lags as the log has batches. `drift` is 0
    when the popularity of keys stays, 1 when it changes wholly between two stretches of the log.
    """

    name: str
    samples: int
    missing: int
    pooling_mean: float
    pooling_sd: float
    batch: int
    frequencies: Frequencies
    windows: tuple[WindowStatistics, ...]
    lag_overlaps: tuple[float, ...]
    owners: OwnerSpread
    fit: ZipfFit
    mandelbrot: MandelbrotFit
    ranges: RangeSpread
    drift: float | None

    @property
    def at_batch(self) -> WindowStatistics:
        """Return the statistics at the log's own batch boundaries."""
        return next(window for window in self.windows if window.samples == self.batch)

    def feature(self) -> Feature:
        """Return the feature that looks this table up: the log's mean keys per sample."""
        return Feature(self.name, self.pooling_mean)

    def to_dict(self) -> dict[str, Value]:
        """Return one flat record; names carry the unit, shares lie between 0 and 1."""
        return {**self._volume(), **self._per_batch(), **self._skew(), **self._owners(), **self._fits()}

    def curves(self) -> dict[str, object]:
        """Return what takes more than one number, JSON-ready, for plots.

        Coverage is the share of lookups on the hottest share of keys; reuse is by powers of two.
        """
        popularity = self.frequencies.classes()
        return {
            "coverage": [[f, popularity.top_share(f)] for f in COVERAGE_FRACTIONS],
            "reuse": self.frequencies.reuse().rows(),
            "windows": [asdict(window) for window in self.windows],
            "overlap_keys_by_lag": list(self.lag_overlaps),
        }

    def _volume(self) -> dict[str, Value]:
        return {
            "table": self.name,
            "samples": self.samples,
            "lookups": self.frequencies.lookups,
            "missing_cells": self.missing,
            "distinct_keys": self.frequencies.distinct,
            "pooling_mean_keys_per_sample": self.pooling_mean,
            "pooling_sd_keys_per_sample": self.pooling_sd,
        }

    def _per_batch(self) -> dict[str, Value]:
        batch = self.at_batch
        return {
            "batch_samples": batch.samples,
            "batches": batch.windows,
            "lookups_per_batch": batch.lookups,
            "distinct_keys_per_batch": batch.distinct,
            "distinct_keys_per_batch_sd": batch.distinct_sd,
            "overlap_keys_of_consecutive_batches": batch.overlap,
        }

    def _skew(self) -> dict[str, Value]:
        popularity, reuse = self.frequencies.classes(), self.frequencies.reuse()
        return {
            "top_1_percent_share": popularity.top_share(0.01),
            "top_10_percent_share": popularity.top_share(0.10),
            "lookups_per_key": reuse.mean,
            "single_use_keys_share": reuse.key_shares[0],
            "drift": self.drift,
        }

    def _fits(self) -> dict[str, Value]:
        return {
            "zipf_exponent": self.fit.exponent,
            "zipf_ks_distance": self.fit.ks_distance,
            "mandelbrot_exponent": self.mandelbrot.exponent,
            "mandelbrot_shift": self.mandelbrot.shift,
            "mandelbrot_ks_distance": self.mandelbrot.ks_distance,
        }

    def _owners(self) -> dict[str, Value]:
        return {
            "owners": self.owners.owners,
            "owner_keys_per_batch_mean": self.owners.mean,
            "owner_keys_per_batch_sd": self.owners.sd,
            "owner_keys_per_batch_busiest": self.owners.busiest,
            "owner_raw_lookups_busiest_over_mean": self.owners.raw_busiest_over_mean,
            "range_owner_keys_per_batch_busiest_over_mean": self.ranges.busiest_over_mean,
            "range_owner_raw_lookups_busiest_over_mean": self.ranges.raw_busiest_over_mean,
        }


@dataclass(frozen=True)
class BrokenLines:
    """Lines that were left out: how many, and what was wrong with the first of them."""

    count: int = 0
    first: str | None = None


@dataclass(frozen=True)
class LogStatistics:
    """The statistics of a whole key log: one entry per table, and what could not be read."""

    path: str
    samples: int
    batch: int
    broken: BrokenLines
    tables: tuple[TableStatistics, ...]

    def __iter__(self) -> Iterator[TableStatistics]:
        """Iterate over the tables in the order of the log's columns."""
        return iter(self.tables)

    def rows(self) -> list[dict[str, Value]]:
        """Return one flat record per table, ready for a table, CSV or JSON."""
        return [table.to_dict() for table in self.tables]

    def to_dict(self) -> dict[str, object]:
        """Return the whole summary as one JSON-ready object."""
        return {
            "file": self.path,
            "samples": self.samples,
            "batch_samples": self.batch,
            "broken_lines": self.broken.count,
            "first_broken_line": self.broken.first,
            "tables": self.rows(),
            "curves": {table.name: table.curves() for table in self.tables},
        }
