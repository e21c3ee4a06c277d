"""Key statistics of real logs, and of published models of them, against what the formulas say."""

import csv
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiers import at_night

from simulator.workload.caches import lookahead_fetches, lru_hit_rate
from simulator.workload.keys import BoundedZipf, Frequencies, Independent, ReuseHistogram
from simulator.workload.keys.reuse import EDGES
from simulator.workload.traces import BatchSize, fit_population, fit_skew, sampled_shares

# --- Meta's dlrm_datasets: one batch of 856 (2021) and of 788 tables (2022); MIT licence ---

TABLES, SAMPLES = {"2021": 856, "2022": 788}, {"2021": 65_536, "2022": 131_072}


def published_histograms(folder: Path, year: str) -> dict[str, ReuseHistogram]:
    """Return the histogram of each file of a year: indices, distinct keys, and cumulative shares."""
    text = (folder / f"access_traces/meta_mit/dlrm_datasets_{year}_locality_stats.txt").read_text()
    return dict(published_histogram(part) for part in text.split("\n\n") if ".pt" in part)


def published_histogram(part: str) -> tuple[str, ReuseHistogram]:
    name = part.strip().splitlines()[0]
    indices, keys = (float(re.search(rf"{what}: (\d+)", part)[1]) for what in ("indices", "unique cols"))  # type: ignore[index]
    key_shares, lookup_shares = (
        tuple(float(number) for number in re.findall(r"'([\d.]+)'", line))[1:-1]
        for line in part.splitlines()
        if line.startswith("['")
    )
    assert len(key_shares) == len(lookup_shares) == len(EDGES)
    return name, ReuseHistogram(indices, keys, key_shares, lookup_shares)


@pytest.mark.parametrize(("fitted", "predicted"), [("2021", "2022"), at_night(("2022", "2021"))])
def test_four_numbers_fitted_to_one_year_of_metas_reuse_foretell_the_other(
    measured_data: Path, fitted: str, predicted: str
) -> None:
    # the sixteen numbered files of a year agree to three digits: the first stands for all
    known = published_histograms(measured_data, fitted)
    first = next(histogram for name, histogram in known.items() if name.endswith("_0.pt"))
    population = fit_population(first, TABLES[fitted], SAMPLES[fitted])
    print(f"fitted to {fitted}: {population}")
    for name, histogram in published_histograms(measured_data, predicted).items():
        foretold = population.reuse(BatchSize(TABLES[predicted], SAMPLES[predicted], histogram.lookups))
        keys, lookups = foretold.distance(histogram)
        print(
            f"{name}: shares of keys within {keys:.1%}, of lookups within {lookups:.1%}, "
            f"mean reuse {foretold.mean:.2f} foretold, {histogram.mean:.2f} published"
        )
        assert max(keys, lookups) <= 0.08
        # the first release of 2021 (no number in its name) has twice the lookups of the later sixteen files
        # in as many samples at a lower mean reuse, so other features with longer lists
        assert keys <= (0.05 if re.search(r"_\d+\.pt$", name) else 0.08)


# --- skew of small logs ---


@pytest.mark.nightly
def test_fitted_laws_show_the_skew_of_every_table_of_the_logs(measured_data: Path) -> None:
    with (measured_data / "access_traces/skew_stats.csv").open() as file:
        rows = list(csv.DictReader(file))
    gaps = np.array([skew_gaps(row) for row in rows])
    names = [f"{row['trace']} {row['table']}" for row in rows]
    for column, label in enumerate(("top 1 %", "top 10 %")):
        worst = int(gaps[:, column].argmax())
        print(f"{label}: mean {gaps[:, column].mean():.2%}, worst {gaps[worst, column]:.2%} ({names[worst]})")
    assert len(rows) == 124
    assert gaps.max() <= 0.03


def skew_gaps(row: dict[str, str]) -> tuple[float, float]:
    """Return how far traces drawn from the fitted law are from the top 1 % and top 10 % shares."""
    lookups, distinct = int(row["lookups"]), int(row["unique"])
    shares = {f: float(row[f"top{round(100 * f)}pct_share"]) for f in (0.01, 0.1, 0.5)}
    law = fit_skew(lookups, distinct, shares).law
    hot = [math.ceil(round(fraction * distinct, 9)) for fraction in (0.01, 0.1)]
    _, shown = sampled_shares(law, lookups, hot)
    return abs(shown[0] - shares[0.01]), abs(shown[1] - shares[0.1])


def test_independent_lookups_miss_the_sessions_of_a_shop(measured_data: Path) -> None:
    """The popularity of yoochoose's clicks explains a part of its LRU hits; the rest is locality."""
    folder = measured_data / "access_traces"
    with (folder / "yoochoose_rank_frequency_stats.csv").open() as file:
        known = np.array([(int(row["rank"]), int(row["count"])) for row in csv.DictReader(file)])
    with (folder / "lru_hit_rate_curves.csv").open() as file:
        measured = next(row for row in csv.DictReader(file) if row["trace"].startswith("yoochoose"))
    counts = np.rint(np.interp(np.arange(1, 2934), known[:, 0], known[:, 1])).astype(np.int64)
    assert counts.sum() == pytest.approx(70_278, rel=0.01)

    class Clicks(Independent):
        classes = Frequencies.of(counts).classes()  # type: ignore[assignment]

    for slots in (10, 30, 100, 300, 1000):
        predicted, seen = lru_hit_rate(Clicks(), slots), float(measured[f"cache_{slots}"])
        print(f"{slots} slots: {predicted:.3f} if lookups were independent, {seen:.3f} measured")
        assert 0.1 * seen < predicted < seen


# --- Criteo Kaggle under the assumptions of a published working-set model ---

# rows of the 26 tables as in the code of Bagpipe (arXiv 2202.12429); one lookup per table and sample,
# and the one exponent at which the hottest 1 % of all rows take the published 92 % of accesses
CRITEO_ROWS = (
    *(1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992),
    *(5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572),
)
CRITEO = tuple(BoundedZipf(rows, 0.984) for rows in CRITEO_ROWS)
BATCH = 16_384

WORKING_SETS = {1: 92_400, 20: 0.90e6, 100: 2.89e6, 200: 4.66e6, 300: 6.11e6}
FETCHES = {1: 64.8e3, 20: 33.2e3, 40: 27.3e3, 60: 24.1e3, 80: 21.9e3, 100: 20.3e3, 200: 15.7e3, 300: 13.4e3}
CONFIGURED_SLOTS = {200: 4_000_000, 300: 7_000_000}
COVERAGE = {0.0001: 0.690, 0.001: 0.835, 0.005: 0.901, 0.01: 0.920, 0.02: 0.937, 0.05: 0.957, 0.1: 0.969}


def over_tables(keys: Callable[[BoundedZipf], float]) -> float:
    return sum(keys(table) for table in CRITEO)


def test_the_rows_are_those_of_criteo_kaggle() -> None:
    assert (len(CRITEO_ROWS), sum(CRITEO_ROWS)) == (26, 33_762_577)


@pytest.mark.parametrize("batches", WORKING_SETS)
def test_the_working_set_of_criteo_is_as_published(batches: int) -> None:
    distinct = over_tables(lambda table: table.distinct(batches * BATCH))
    known = f"{WORKING_SETS[batches]:,.0f} in the model"
    slots = CONFIGURED_SLOTS.get(batches)
    bound = f"; the authors configured {slots:,} cache slots, an upper bound from practice" if slots else ""
    print(f"{batches} batches: {distinct:,.0f} distinct rows, {known}{bound}")
    assert distinct == pytest.approx(WORKING_SETS[batches], rel=0.05)


@pytest.mark.parametrize("lookahead", FETCHES)
def test_the_rows_fetched_with_lookahead_are_as_published(lookahead: int) -> None:
    fetched = over_tables(lambda table: lookahead_fetches(table, BATCH, lookahead))
    print(f"lookahead {lookahead}: {fetched:,.0f} rows per batch, {FETCHES[lookahead]:,.0f} in the model")
    assert fetched == pytest.approx(FETCHES[lookahead], rel=0.05)


def test_the_rows_synchronised_now_and_later_are_as_published() -> None:
    now = over_tables(lambda table: table.overlap(BATCH))
    never = over_tables(lambda table: lookahead_fetches(table, BATCH, 200))
    later = over_tables(lambda table: table.distinct(BATCH)) - now - never
    print(f"synchronised now {now:,.0f}, later {later:,.0f}, never {never:,.0f}")
    assert (now, later, never) == pytest.approx((27_500, 49_100, 15_700), rel=0.05)


def test_the_coverage_of_all_rows_together_is_as_published() -> None:
    chances = np.concatenate([table.classes.probability for table in CRITEO]) / len(CRITEO)
    keys = np.concatenate([table.classes.keys for table in CRITEO])
    order = np.argsort(-chances)
    rows, shares = np.cumsum(keys[order]), np.cumsum((chances * keys)[order])
    for fraction, share in COVERAGE.items():
        assert np.interp(fraction * rows[-1], rows, shares) == pytest.approx(share, abs=0.001)
