"""Key logs: reading them, counting them, and answering from them."""

import csv
import gzip
import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from simulator.errors import InputError
from simulator.workload.keys import (
    BoundedZipf,
    Feature,
    Frequencies,
    LogOptions,
    LogStatistics,
    Recorded,
    SequenceColumns,
    TableStatistics,
    fit_zipf,
    read_key_log,
    summarize,
)

ROOT = Path(__file__).parents[2]
OTTO = ROOT / "tests/data/keys/otto_sessions_sample.csv"
BANDIT = ROOT / "scenarios/data/open_bandit_bts_women.csv.gz"
SESSIONS = LogOptions(sequence=SequenceColumns("session", "item_id", "ts_ms"))


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def keys_of(path: Path, options: LogOptions | None = None) -> dict[str, list[tuple[int, int]]]:
    """Return (sample, code) of each lookup, per table."""
    found: dict[str, list[tuple[int, int]]] = {}
    for chunk in read_key_log(path, options).chunks():
        for name, table in chunk.tables.items():
            pairs = zip(table.samples.tolist(), table.codes.tolist(), strict=True)
            found.setdefault(name, []).extend(pairs)
    return found


def table_of(path: Path, batch: int, column: str, options: LogOptions | None = None) -> TableStatistics:
    statistics = summarize(path, batch, options or LogOptions(columns=(column,)))
    return next(table for table in statistics if table.name == column)


# --- reading ---


def test_a_csv_is_read_column_by_column(tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv", "user,item\na,7\nb,7\na,9\n")
    assert keys_of(log) == {"user": [(0, 0), (1, 1), (2, 0)], "item": [(0, 0), (1, 0), (2, 1)]}


def test_a_log_gives_the_same_keys_each_time_it_is_read() -> None:
    log = read_key_log(BANDIT, LogOptions(columns=("item_id",)))
    first, second = ([c.tables["item_id"].codes for c in log.chunks()] for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_tab_separated_file_without_header_gets_numbered_columns(tmp_path: Path) -> None:
    log = written(tmp_path / "log.tsv", "a\t7\nb\t7\n")
    options = LogOptions(header=False)
    assert read_key_log(log, options).tables == ("column_1", "column_2")
    assert keys_of(log, options)["column_2"] == [(0, 0), (1, 0)]


def test_gzip_is_recognised_by_content_and_not_by_name(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(gzip.compress(b"item\n1\n2\n1\n"))
    assert keys_of(log) == {"item": [(0, 0), (1, 1), (2, 0)]}


def test_multi_hot_cells_are_split_and_empty_values_are_no_lookups(tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv", "tags,x\na|b|a,1\n,1\nc||b,1\n")
    options = LogOptions(columns=("tags",), separator="|")
    assert keys_of(log, options) == {"tags": [(0, 0), (0, 1), (0, 0), (2, 2), (2, 1)]}
    table = table_of(log, 1, "tags", options)
    assert (table.frequencies.lookups, table.missing) == (5, 1)
    assert table.feature() == Feature("tags", 5 / 3)


def test_parquet_gives_the_keys_of_the_same_csv(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    parquet.write_table(arrow_csv.read_csv(BANDIT), tmp_path / "log.bin")
    options = LogOptions(columns=("item_id", "user_feature_2"))
    assert keys_of(tmp_path / "log.bin", options) == keys_of(BANDIT, options)
    lists = pyarrow.table({"tags": [["a", "b"], [], None, ["b", None]]})
    parquet.write_table(lists, tmp_path / "lists.parquet")
    assert keys_of(tmp_path / "lists.parquet") == {"tags": [(0, 0), (0, 1), (3, 1)]}


def test_a_column_of_structs_is_refused(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": [{"x": 1}]}), tmp_path / "log.parquet")
    with pytest.raises(InputError, match="holds no keys"):
        summarize(tmp_path / "log.parquet", 1)


def test_an_event_log_becomes_one_history_per_user_in_time_order(tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv", "u,i,t\nann,x,30\nbob,y,20\nann,z,10\nbob,y,40\n")
    options = LogOptions(sequence=SequenceColumns("u", "i", "t"))
    # ann's last event (30) comes before bob's (40); x is key 0, y 1, z 2
    assert keys_of(log, options) == {"i": [(0, 2), (0, 0), (1, 1), (1, 1)]}
    latest = LogOptions(sequence=SequenceColumns("u", "i", "t", longest=1))
    assert keys_of(log, latest) == {"i": [(0, 0), (1, 1)]}


def test_event_times_may_be_iso_dates(tmp_path: Path) -> None:
    text = "u,i,t\na,x,2024-01-02T00:00:00Z\na,y,2024-01-01T23:59:59Z\na,z,soon\n"
    log = read_key_log(
        written(tmp_path / "log.csv", text), LogOptions(sequence=SequenceColumns("u", "i", "t"))
    )
    codes = [chunk.tables["i"].codes.tolist() for chunk in log.chunks()]
    assert codes == [[1, 0]]
    assert log.broken.count == 1


def test_sessions_of_a_real_log_are_counted() -> None:
    table = table_of(OTTO, 5, "item_id", SESSIONS)
    assert (table.samples, table.frequencies.lookups, table.frequencies.distinct) == (20, 862, 510)
    assert table.pooling_mean == pytest.approx(43.1)


def test_broken_lines_are_counted_and_the_first_is_reported(tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv", "a,b\n1,2\n1,2,3\n4\n5,6\n")
    statistics = summarize(log, 1)
    assert statistics.samples == 2
    assert statistics.broken.count == 2
    assert statistics.broken.first == "line 3: expected 2 fields, found 3"


def test_lines_swallowed_by_an_open_quote_are_counted(tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv", 'a,b\n1,2\n\n1,"2\n3,4\n5,6\n')
    broken = summarize(log, 1, LogOptions(columns=("a",))).broken
    assert broken.count == 2
    assert broken.first is not None and "quote" in broken.first
    quoted = written(tmp_path / "fine.csv", 'a,b\n1,"2,3"\n\n4,5\n')
    assert summarize(quoted, 1).broken.count == 0
    assert keys_of(quoted, LogOptions(columns=("b",), separator=","))["b"] == [(0, 0), (0, 1), (1, 2)]


# --- mistakes ---


def test_files_that_cannot_be_logs_are_refused_in_one_line(tmp_path: Path) -> None:
    packed = gzip.compress(b"item\n" + b"".join(b"%d\n" % (i * 7919) for i in range(40_000)))
    contents = {
        "empty.csv": (b"", "is empty"),
        "blank.csv": (b"\n \n", "is empty"),
        "header.csv": (b"a,b\n", "holds no samples"),
        "junk.csv": (bytes(range(256)) * 20, "binary"),
        "cut.csv.gz": (packed[: len(packed) // 2], "cut off"),
        "cut.parquet": (b"PAR1" + b"x" * 100, "cannot be read"),
        "twice.csv": (b"a,a\n1,2\n", "twice"),
        "short.csv": (b"a,b\n1,2\n", "less than one batch of 3"),
        "broken.csv": (b"a,b\n1\n2\n", "2 broken lines"),
        "keyless.csv": (b"a,b\n1,\n2,\n3,\n", 'column "b" holds no keys'),
    }
    for name, (content, problem) in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=problem) as caught:
            summarize(tmp_path / name, 3)
        assert str(caught.value).startswith(str(tmp_path / name))
        assert "\n" not in str(caught.value)


def test_a_line_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulator.workload.keys.text.BLOCK_BYTES", 1000)
    monkeypatch.setattr("simulator.workload.keys.text.LONGEST_LINE", 1000)
    log = written(tmp_path / "log.csv", "a,b\n" + "x" * 5000 + ",1\n2,3\n")
    with pytest.raises(InputError, match="a line is longer than"):
        summarize(log, 1)


def test_missing_files_and_directories_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_key_log(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="is a directory"):
        read_key_log(tmp_path)


def test_an_unknown_column_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r'no column "itemid".*did you mean "item_id"'):
        read_key_log(BANDIT, LogOptions(columns=("itemid",)))
    with pytest.raises(InputError, match='no column "user"'):
        read_key_log(OTTO, LogOptions(sequence=SequenceColumns("user", "item_id")))


def test_impossible_options_are_refused() -> None:
    for options in ({"delimiter": ";;"}, {"separator": ""}, {"separator": "|", "delimiter": "|"}):
        with pytest.raises(InputError):
            LogOptions(**options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 1"):
        SequenceColumns("u", "i", longest=0)
    with pytest.raises(InputError, match="at least 1"):
        summarize(BANDIT, 0)
    with pytest.raises(InputError, match="pooling"):
        Feature("items", 0.0)


# --- counting ---


@pytest.fixture(scope="module")
def drifting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a multi-hot log whose popular keys drift: neighbours share more than chance would have."""
    random = np.random.default_rng(11)
    path = tmp_path_factory.mktemp("keys") / "drift.csv"
    with path.open("w") as file:
        file.write("keys\n")
        for sample in range(6400):
            ranks = (random.pareto(1.0, random.integers(1, 5)) * 3).astype(int) + sample // 40
            file.write("|".join(map(str, ranks % 5000)) + "\n")
    return path


MULTI = LogOptions(separator="|")


def batches_of(path: Path, size: int) -> list[list[str]]:
    samples = [line.split("|") for line in path.read_text().split()[1:]]
    whole = len(samples) // size * size
    return [[k for s in samples[at : at + size] for k in s] for at in range(0, whole, size)]


@pytest.mark.parametrize("batch", [48, 100, 128, 6400])
def test_every_window_is_counted_as_by_hand(drifting: Path, batch: int) -> None:
    table = table_of(drifting, batch, "keys", MULTI)
    assert table.batch in [window.samples for window in table.windows]
    for window in table.windows:
        sets = [set(keys) for keys in batches_of(drifting, window.samples)]
        sizes = [len(keys) for keys in sets]
        assert window.windows == len(sets)
        assert window.distinct == pytest.approx(np.mean(sizes))
        if len(sets) > 1:
            common = [len(a & b) for a, b in pairwise(sets)]
            assert window.overlap == pytest.approx(np.mean(common))
            assert window.distinct_sd == pytest.approx(np.std(sizes, ddof=1))


def test_counting_does_not_depend_on_how_the_file_is_cut(
    drifting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = summarize(drifting, 96, MULTI)
    monkeypatch.setattr("simulator.workload.keys.text.BLOCK_BYTES", 700)
    assert sum(1 for _ in read_key_log(drifting, MULTI).chunks()) > 50
    pieces = summarize(drifting, 96, MULTI)
    assert pieces.tables[0].frequencies == whole.tables[0].frequencies
    assert pieces.tables[0].windows == whole.tables[0].windows
    assert pieces.tables[0].lag_overlaps == whole.tables[0].lag_overlaps
    assert pieces.tables[0].pooling_sd == pytest.approx(whole.tables[0].pooling_sd)


def test_overlap_is_counted_at_every_lag(drifting: Path) -> None:
    sets = [set(keys) for keys in batches_of(drifting, 128)]
    overlaps = table_of(drifting, 128, "keys", MULTI).lag_overlaps
    assert len(overlaps) == 8
    for lag, overlap in enumerate(overlaps, start=1):
        pairs = zip(sets, sets[lag:], strict=False)
        assert overlap == pytest.approx(np.mean([len(a & b) for a, b in pairs]))


def test_pooling_and_frequencies_are_counted_as_by_hand(drifting: Path) -> None:
    table = table_of(drifting, 128, "keys", MULTI)
    lengths = [len(keys) for keys in batches_of(drifting, 1)]
    counts = Counter(key for keys in batches_of(drifting, 1) for key in keys)
    assert table.pooling_mean == pytest.approx(np.mean(lengths))
    assert table.pooling_sd == pytest.approx(np.std(lengths))
    assert table.frequencies == Frequencies.of(np.array(list(counts.values())))


def test_owners_share_the_keys_of_a_batch(drifting: Path) -> None:
    table = summarize(drifting, 128, MULTI, owners=4).tables[0]
    assert table.owners.mean * 4 == pytest.approx(table.at_batch.distinct)
    assert table.owners.mean < table.owners.busiest < table.at_batch.distinct
    poisson = np.sqrt(table.owners.mean * 3 / 4)
    assert table.owners.sd == pytest.approx(poisson, rel=0.3)
    assert table.owners.raw_busiest_over_mean > 1


def test_the_summary_is_json_with_one_row_per_table() -> None:
    statistics = summarize(BANDIT, 512, LogOptions(columns=("item_id", "user_feature_0")))
    record = json.loads(json.dumps(statistics.to_dict()))
    assert [row["table"] for row in record["tables"]] == ["item_id", "user_feature_0"]
    assert record["tables"] == statistics.rows()
    assert record["tables"][0]["distinct_keys"] == 46
    assert record["tables"][0]["lookups_per_batch"] == 512
    assert record["samples"] == 10_000 and record["broken_lines"] == 0


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 1.3])
def test_a_zipf_fit_finds_the_exponent_of_exact_frequencies(exponent: float) -> None:
    rows = 20_000
    weights = np.arange(1, rows + 1) ** -exponent
    fit = fit_zipf(Frequencies.of(np.rint(1e8 * weights / weights.sum()).astype(np.int64)))
    assert fit.exponent == pytest.approx(exponent, abs=0.005)
    assert fit.ks_distance < 0.002
    assert fit.rows == rows


def test_a_zipf_fit_says_when_it_does_not_fit() -> None:
    two_levels = np.concatenate([np.full(100, 1000), np.full(10_000, 1)])
    assert fit_zipf(Frequencies.of(two_levels)).ks_distance > 0.1


# --- answering ---


@pytest.fixture(scope="module")
def recorded(drifting: Path) -> Recorded:
    return Recorded(table_of(drifting, 128, "keys", MULTI))


def test_recorded_keys_answer_with_the_measurement_at_every_measured_window(recorded: Recorded) -> None:
    for window in recorded.statistics.windows:
        assert recorded.distinct(window.lookups) == pytest.approx(window.distinct)
        if window.overlap is not None:
            assert recorded.overlap(window.lookups) == pytest.approx(window.overlap)
        if window.windows >= 8:
            assert recorded.distinct_sd(window.lookups) == pytest.approx(window.distinct_sd)


def test_recorded_keys_between_windows_stay_near_what_is_counted_there(
    recorded: Recorded, drifting: Path
) -> None:
    for size in (12, 90, 180, 700):
        counted = np.mean([len(set(keys)) for keys in batches_of(drifting, size)])
        assert recorded.distinct(size * recorded.statistics.pooling_mean) == pytest.approx(counted, rel=0.02)


def test_recorded_keys_keep_the_locality_that_independent_draws_lose(recorded: Recorded) -> None:
    batch = recorded.statistics.at_batch
    independent = recorded.classes.total(recorded.classes.present(batch.lookups))
    assert recorded.distinct(batch.lookups) < 0.8 * independent
    assert recorded.overlap(batch.lookups, lag=8) < recorded.overlap(batch.lookups, lag=1)
    assert recorded.overlap(batch.lookups, lag=3) == pytest.approx(recorded.statistics.lag_overlaps[2])
    assert recorded.overlap(batch.lookups, lag=99) == recorded.overlap(batch.lookups, lag=8)


def test_recorded_keys_never_invent_a_key_and_flag_what_goes_beyond_the_log(recorded: Recorded) -> None:
    observed = recorded.statistics.frequencies
    answers = [recorded.distinct(m) for m in np.geomspace(0.5, 1e7, 80)]
    assert answers == sorted(answers)
    assert recorded.distinct(observed.lookups) == pytest.approx(observed.distinct)
    assert recorded.union(observed.lookups, 100) == observed.distinct
    assert recorded.distinct(0) == 0 and recorded.distinct(1) == pytest.approx(1)
    assert not recorded.extrapolates(observed.lookups)
    assert recorded.extrapolates(observed.lookups + 1)
    assert not BoundedZipf(10, 1.0).extrapolates(1e12)


def test_recorded_owner_loads_follow_the_measured_distinct_keys(recorded: Recorded) -> None:
    batch = recorded.statistics.at_batch
    load = recorded.owner_load(batch.lookups, 8)
    assert load.mean == pytest.approx(batch.distinct)
    assert 0 < load.sd < recorded.raw_owner_load(batch.lookups, 8).sd


# --- measured logs ---

TRACES = {
    "open_bandit_men": "cc_by/open_bandit_bts_men.csv.gz",
    "open_bandit_women": "cc_by/open_bandit_bts_women.csv.gz",
    "otto_sample": "cc_by/otto_sessions_sample.csv",
    "deepctr_criteo_sample": "apache2/deepctr_criteo_sample.csv",
    "deepctr_avazu_sample": "apache2/deepctr_avazu_sample.csv",
    "paddlerec_criteo_80": "apache2/paddlerec_criteo_80rows.csv",
}


@pytest.mark.skipif("RECSCALE_DATA" not in os.environ, reason="needs the measured data")
@pytest.mark.parametrize("trace", TRACES)
def test_the_shares_of_hot_keys_equal_those_computed_elsewhere(trace: str) -> None:
    folder = Path(os.environ["RECSCALE_DATA"]) / "access_traces"
    with (folder / "skew_stats.csv").open() as file:
        expected = {row["table"]: row for row in csv.DictReader(file) if row["trace"] == trace}
    present = read_key_log(folder / TRACES[trace]).tables
    tables = tuple(name for name in expected if name in present)
    statistics: LogStatistics = summarize(folder / TRACES[trace], 16, LogOptions(columns=tables))
    assert tables
    for row in statistics.rows():
        known = expected[str(row["table"])]
        assert row["lookups"] == int(known["lookups"])
        assert row["distinct_keys"] == int(known["unique"])
        assert row["top_1_percent_share"] == pytest.approx(float(known["top1pct_share"]), abs=0.001)
        assert row["top_10_percent_share"] == pytest.approx(float(known["top10pct_share"]), abs=0.001)
