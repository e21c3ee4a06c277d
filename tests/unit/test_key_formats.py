"""Key logs in every format that is read: recognised by content, equal to the same keys as CSV."""

import gzip
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

from simulator.errors import InputError
from simulator.workload.caches import cache_curves
from simulator.workload.keys import KeyLog, LogOptions, SequenceColumns, read_key_log, summarize
from simulator.workload.keys.fingerprints import fingerprints
from simulator.workload.keys.vocabulary import Vocabulary

CRITEO_KEYS = tuple(f"C{place}" for place in range(1, 27))
Cells = dict[str, list[tuple[int, int]]]


def keys_of(log: KeyLog) -> Cells:
    """Return (sample, code) of each lookup, per table."""
    found: Cells = {table: [] for table in log.tables}
    for chunk in log.chunks():
        for name, table in chunk.tables.items():
            found[name] += zip(table.samples.tolist(), table.codes.tolist(), strict=True)
    return found


def criteo_line(sample: int, label: str = "1\t") -> str:
    numbers = "\t".join("" if place == 3 else str(sample * place) for place in range(13))
    keys = "\t".join("" if place == 20 else f"{(sample % 3) * 1000 + place:08x}" for place in range(26))
    return f"{label}{numbers}\t{keys}"


# --- click logs ---


@pytest.mark.parametrize("label", ["1\t", ""])
def test_criteo_logs_are_recognised_by_their_shape(tmp_path: Path, label: str) -> None:
    path = tmp_path / "train.txt"
    path.write_text("".join(criteo_line(sample, label) + "\n" for sample in range(9)))
    log = read_key_log(path)
    assert log.tables == CRITEO_KEYS
    keys = keys_of(log)
    assert [code for _, code in keys["C1"]] == [0, 1, 2] * 3
    assert keys["C21"] == []
    assert keys_of(read_key_log(path, LogOptions(columns=("I2",))))["I2"][4] == (4, 4)


def test_broken_criteo_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text("\n".join([criteo_line(0), criteo_line(1) + "\textra", criteo_line(2), "1\t2"]) + "\n")
    statistics = summarize(path, 1, LogOptions(columns=("C1", "C2")))
    assert statistics.samples == 2
    assert statistics.broken.count == 2
    assert statistics.broken.first == "line 2: expected 40 fields, found 41"


def test_a_tab_separated_table_that_is_not_criteos_keeps_its_header(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("a\tb\n1\t2\n1\t3\n")
    assert keys_of(read_key_log(path)) == {"a": [(0, 0), (1, 0)], "b": [(0, 0), (1, 1)]}


def test_the_key_columns_of_avazu_and_of_headed_criteo_logs_are_known(tmp_path: Path) -> None:
    avazu = tmp_path / "avazu.csv"
    avazu.write_text("id,click,hour,C1,site_id,app_id,device_id\n1,0,14102100,1005,x,y,z\n")
    assert read_key_log(avazu).tables == ("C1", "site_id", "app_id", "device_id")
    names = ["label", *(f"I{place}" for place in range(1, 14)), *CRITEO_KEYS]
    criteo = tmp_path / "criteo.csv"
    criteo.write_text(",".join(names) + "\n" + ",".join("7" for _ in names) + "\n")
    assert read_key_log(criteo).tables == CRITEO_KEYS
    assert read_key_log(criteo, LogOptions(columns=("I1",))).tables == ("I1",)


# --- events ---

EVENTS = {
    "movielens.csv": "userId,movieId,rating,timestamp\n1,7,5.0,20\n2,8,4.0,30\n1,9,3.0,10\n",
    "kuairand.csv": "user_id,video_id,date,time_ms,is_click\n1,7,1,20,0\n2,8,1,30,1\n1,9,1,10,0\n",
    "ratings.dat": "1::7::5::20\n2::8::4::30\n1::9::3::10\n",
    "headed.dat": "UserID::MovieID::Rating::Timestamp\n1::7::5::20\n2::8::4::30\n1::9::3::10",
}


@pytest.mark.parametrize("name", EVENTS)
def test_logs_of_user_item_and_time_become_histories(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(EVENTS[name])
    log = read_key_log(path)
    # user 1 saw 9 (key 2) and then 7 (key 0); user 2 saw 8 (key 1) last of all
    assert list(keys_of(log).values()) == [[(0, 2), (0, 0), (1, 1)]]
    assert log.broken.count == 0


def test_naming_columns_reads_events_as_plain_samples(tmp_path: Path) -> None:
    path = tmp_path / "ratings.dat"
    path.write_text(EVENTS["ratings.dat"])
    assert keys_of(read_key_log(path, LogOptions(columns=("item",))))["item"] == [(0, 0), (1, 1), (2, 2)]
    named = LogOptions(sequence=SequenceColumns("item", "user"))
    assert read_key_log(path, named).tables == ("user",)


def test_double_colons_survive_being_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ratings.dat"
    path.write_text("".join(f"{user}::{user * 7 % 50}::5::{user}\n" for user in range(1000)))
    whole = keys_of(read_key_log(path, LogOptions(columns=("item", "time"))))
    for block in (97, 100, 101, 103):
        monkeypatch.setattr("simulator.workload.keys.text.BLOCK_BYTES", block)
        log = read_key_log(path, LogOptions(columns=("item", "time")))
        assert keys_of(log) == whole
        assert log.broken.count == 0


# --- compression ---


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bz2", "lz4"])
def test_compressed_text_is_recognised_by_content(tmp_path: Path, codec: str) -> None:
    import pyarrow

    text = "".join(criteo_line(sample) + "\n" for sample in range(500))
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_text(text)
    with pyarrow.output_stream(str(packed), compression=codec) as file:
        file.write(text.encode())
    assert keys_of(read_key_log(packed)) == keys_of(read_key_log(plain))


def test_a_file_without_a_last_line_end_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"a,b\r\n1,2\r\n\r\n3,4")
    statistics = summarize(path, 1)
    assert (statistics.samples, statistics.broken.count) == (2, 0)


def test_lines_may_end_in_carriage_returns_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"a,b\r1,2\r3,4\r")
    assert keys_of(read_key_log(path)) == {"a": [(0, 0), (1, 1)], "b": [(0, 0), (1, 1)]}


def test_a_program_may_stop_reading_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("item\n" + "".join(f"{i}\n" for i in range(900_000)))
    program = f"from simulator.workload.keys import *; next(read_key_log({str(path)!r}).chunks())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_progress_goes_from_the_start_of_the_file_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"item\n" + b"".join(b"%d\n" % (i * 7919 % 1000) for i in range(90_000))))
    seen: list[tuple[int, int]] = []
    summarize(path, 64, progress=lambda done, total: seen.append((done, total)))
    assert {total for _, total in seen} == {path.stat().st_size}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == path.stat().st_size


# --- columnar files ---

TABLE = {
    "item": [5, 900, 5, -3, 900, 5],
    "word": ["b", "a", "", None, "a", "b"],
    "price": [1.5, 2, 1.5, 2, 2, 3],
}
CODES = {
    "item": [(0, 0), (1, 1), (2, 0), (3, 2), (4, 1), (5, 0)],
    "word": [(0, 0), (1, 1), (4, 1), (5, 0)],
    "price": [(0, 0), (1, 1), (2, 0), (3, 1), (4, 1), (5, 2)],
}


@pytest.mark.parametrize("kind", ["parquet", "feather", "file", "stream"])
def test_columnar_files_hold_the_same_keys(tmp_path: Path, kind: str) -> None:
    import pyarrow
    from pyarrow import feather, ipc, parquet

    table, path = pyarrow.table(TABLE), str(tmp_path / "log")
    if kind == "parquet":
        parquet.write_table(table, path)
    elif kind == "feather":
        feather.write_feather(table, path, compression="zstd")
    else:
        make = ipc.new_file if kind == "file" else ipc.new_stream
        with pyarrow.OSFile(path, "wb") as sink, make(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=4)
    seen: list[tuple[int, int]] = []
    log = read_key_log(path)
    assert keys_of(log) == CODES
    list(log.chunks(lambda done, total: seen.append((done, total))))
    assert seen[-1][0] == seen[-1][1]


def test_damaged_and_packed_columnar_files_are_refused(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import feather

    feather.write_feather(pyarrow.table(TABLE), str(tmp_path / "log"), compression="uncompressed")
    whole = (tmp_path / "log").read_bytes()
    cases = {
        "cut": (whole[: len(whole) // 2], "cannot be read"),
        "packed": (gzip.compress(whole), "inside gzip"),
        "old": (b"FEA1" + whole, "version 1"),
    }
    for name, (content, problem) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=problem) as caught:
            read_key_log(tmp_path / name)
        assert "\n" not in str(caught.value)


# --- bags of keys ---

BAGS = {"offsets": [0, 2, 2, 3, 6], "indices": [7, 7, 9, 4, 7, 9]}
BAG_CODES = [(0, 0), (0, 0), (2, 1), (3, 2), (3, 0), (3, 1)]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("closed", [True, False])
def test_bags_in_npz_files_are_samples(tmp_path: Path, save: object, closed: bool) -> None:
    arrays = {name: np.array(values) for name, values in BAGS.items()}
    arrays["offsets"] = arrays["offsets"] if closed else arrays["offsets"][:-1]
    save(tmp_path / "log.npz", **arrays)  # type: ignore[operator]
    log = read_key_log(tmp_path / "log.npz")
    assert keys_of(log) == {"keys": BAG_CODES}
    table = summarize(tmp_path / "log.npz", 2).tables[0]
    assert (table.samples, table.missing, table.pooling_mean) == (4, 1, 1.5)


def test_tables_lie_one_after_the_other_in_a_file_of_bags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    lengths = random.integers(0, 4, (3, 50))
    indices = random.integers(0, 30, lengths.sum())
    offsets = np.append(0, np.cumsum(lengths.ravel()))
    np.savez(tmp_path / "log.npz", indices=indices, offsets=offsets, lengths=lengths)
    log = read_key_log(tmp_path / "log.npz")
    assert log.tables == ("table_0", "table_1", "table_2")
    whole = keys_of(log)
    second = indices[lengths[0].sum() : lengths[:2].sum()]
    first_seen: dict[int, int] = {}
    by_hand = [first_seen.setdefault(int(key), len(first_seen)) for key in second]
    assert [code for _, code in whole["table_1"]] == by_hand
    assert [sample for sample, _ in whole["table_1"]] == np.repeat(np.arange(50), lengths[1]).tolist()
    monkeypatch.setattr("simulator.workload.keys.arrays.SAMPLES_PER_PART", 7)
    assert keys_of(read_key_log(tmp_path / "log.npz")) == whole
    only = read_key_log(tmp_path / "log.npz", LogOptions(columns=("table_2",)))
    assert keys_of(only) == {"table_2": whole["table_2"]}
    assert [row["samples"] for row in summarize(tmp_path / "log.npz", 10).rows()] == [50, 50, 50]


def test_unfit_arrays_are_refused_in_one_line(tmp_path: Path) -> None:
    whole = {name: np.array(values) for name, values in BAGS.items()}
    cases: dict[str, tuple[dict[str, object], str]] = {
        "nothing": ({"x": np.arange(3)}, "needs arrays"),
        "floats": ({**whole, "indices": np.arange(6) / 2}, "whole numbers"),
        "objects": ({**whole, "indices": np.array(["a", None], dtype=object)}, "whole numbers"),
        "falling": ({**whole, "offsets": np.array([0, 3, 2, 6])}, "fall"),
        "beyond": ({**whole, "offsets": np.array([0, 3, 60])}, "beyond the keys"),
    }
    for name, (arrays, problem) in cases.items():
        np.savez(tmp_path / f"{name}.npz", **arrays)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=problem) as caught:
            summarize(tmp_path / f"{name}.npz", 1)
        assert str(caught.value).startswith(str(tmp_path)) and "\n" not in str(caught.value)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "falling.npz").read_bytes()[:200])
    with pytest.raises(InputError, match="cut off or damaged"):
        read_key_log(tmp_path / "cut.npz")


@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("closed", [True, False])
def test_pytorch_files_in_the_layout_of_metas_datasets_are_read(
    tmp_path: Path, kind: str, closed: bool
) -> None:
    """They hold a tuple of indices, offsets and lengths, the latter of shape (tables, samples)."""
    torch = pytest.importorskip("torch")
    lengths = torch.tensor([[2, 0], [1, 3]])
    offsets = torch.tensor(BAGS["offsets"] if closed else BAGS["offsets"][:-1])
    tensors = tuple(one.to(getattr(torch, kind)) for one in (torch.tensor(BAGS["indices"]), offsets, lengths))
    for saved in (tensors, dict(zip(("indices", "offsets", "lengths"), tensors, strict=True))):
        torch.save(saved, tmp_path / "bags.pt")
        assert keys_of(read_key_log(tmp_path / "bags.pt")) == {
            "table_0": [(0, 0), (0, 0)],
            "table_1": [(0, 0), (1, 1), (1, 2), (1, 0)],
        }


def test_a_pytorch_file_says_the_same_of_its_tables_as_the_same_keys_in_parquet(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    samples, names = 600, ("table_0", "table_1")
    keys = np.random.default_rng(3).zipf(1.3, (2, samples)) % 5000
    lengths = torch.ones((2, samples), dtype=torch.int64)
    torch.save((torch.tensor(keys.ravel()), torch.arange(2 * samples + 1), lengths), tmp_path / "bags.pt")
    pandas.DataFrame(dict(zip(names, keys, strict=True))).to_parquet(tmp_path / "bags.parquet")
    tensor, column = (summarize(tmp_path / f"bags.{ending}", 100) for ending in ("pt", "parquet"))
    assert tensor.rows() == column.rows()


class _Runs:
    """A pickle that would touch a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.path}",)


def test_a_pytorch_file_that_would_run_code_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    good = torch.tensor(BAGS["indices"]), torch.tensor(BAGS["offsets"])
    for saved in ((*good, _Runs(tmp_path / "ran")), _Runs(tmp_path / "ran")):
        torch.save(saved, tmp_path / "bags.pt")
        with pytest.raises(InputError, match="other objects than plain tensors") as caught:
            read_key_log(tmp_path / "bags.pt")
        assert "\n" not in str(caught.value) and str(caught.value).startswith(str(tmp_path))
    assert not (tmp_path / "ran").exists()
    assert _refusal(["keys", str(tmp_path / "bags.pt")]) == 2


def _refusal(arguments: list[str]) -> int:
    """Return the exit code of a command that must answer with one line and no traceback."""
    done = subprocess.run([sys.executable, "-m", "simulator", *arguments], capture_output=True, text=True)
    assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) == 1
    return done.returncode


def test_tensors_that_hold_no_bags_of_keys_are_refused_in_one_line(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    offsets, indices, lengths = (torch.tensor(one) for one in (*BAGS.values(), [[2, 0], [1, 3]]))
    cases: dict[str, list[object]] = {
        "whole numbers": [
            (indices.float(), offsets, lengths),
            (indices > 3, offsets, lengths),
            (indices.bfloat16(), offsets, lengths),
            (torch.eye(3).to_sparse(), offsets, lengths),
            (torch.empty(6, dtype=torch.int64, device="meta"), offsets, lengths),
            (torch.tensor(3), offsets, lengths),
            ["a", "b", "c"],
        ],
        "one dimension": [
            (indices.reshape(2, 3), offsets, lengths),
            (indices, offsets.reshape(1, -1), lengths),
        ],
        "dimensions, not 3": [(indices, offsets, torch.ones(2, 2, 2, dtype=torch.int64))],
        "speaks of 6 bags": [(indices, offsets, torch.ones(2, 3, dtype=torch.int64))],
        "needs arrays": [indices, 3, None, "text", {"keys": indices}],
        "fall, or point beyond": [(indices, 3 * offsets, lengths), (indices, offsets.flip(0), lengths)],
    }
    for problem, contents in cases.items():
        for content in contents:
            torch.save(content, tmp_path / "bags.pt")
            with pytest.raises(InputError, match=problem) as caught:
                summarize(tmp_path / "bags.pt", 1)
            assert str(caught.value).startswith(str(tmp_path)) and "\n" not in str(caught.value)


def test_a_cut_off_pytorch_file_and_one_of_the_old_format_are_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    saved = torch.tensor(BAGS["indices"]), torch.tensor(BAGS["offsets"])
    torch.save(saved, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(InputError, match="PyTorch file from before"):
        read_key_log(tmp_path / "old.pt")
    torch.save(saved, tmp_path / "whole.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "whole.pt").read_bytes()[:400])
    with pytest.raises(InputError, match="cut off or damaged"):
        read_key_log(tmp_path / "cut.pt")


def test_a_pickle_is_refused_without_being_loaded(tmp_path: Path) -> None:
    (tmp_path / "keys.pt").write_bytes(pickle.dumps(_Runs(tmp_path / "ran")))
    with pytest.raises(InputError, match="is a pickle"):
        read_key_log(tmp_path / "keys.pt")
    assert not (tmp_path / "ran").exists()


def test_without_pytorch_its_files_are_refused_naming_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "bags.pt", "w") as archive:
        archive.writestr("bags/data.pkl", b"")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r'extra "torch".*recscale\[torch\]') as caught:
        read_key_log(tmp_path / "bags.pt")
    assert "\n" not in str(caught.value)


# --- vocabularies ---


def test_a_vocabulary_numbers_keys_in_order_of_first_appearance() -> None:
    import pyarrow

    random = np.random.default_rng(9)
    words, known = Vocabulary(), dict[str, int]()
    for _ in range(60):
        piece = [f"key {value}" for value in random.integers(0, 3000, 100)]
        by_hand = [known.setdefault(word, len(known)) for word in piece]
        assert words.encode(pyarrow.array(piece)).tolist() == by_hand
    assert words.size == len(known)
    assert words.places() is None


def test_whole_numbers_have_places_between_the_smallest_and_the_largest() -> None:
    import pyarrow

    words = Vocabulary()
    words.encode(pyarrow.array([30, -10, 10]))
    places = words.places()
    assert places is not None and places.tolist() == [1.0, 0.0, 0.5]


def test_fingerprints_tell_apart_what_differs_in_any_byte_or_in_length() -> None:
    import pyarrow

    words = ["", "a", "a\0", "b", "12345678", "123456789", "12345678\0", "x" * 40, "x" * 41, "x" * 39 + "y"]
    for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.binary()):
        prints = fingerprints(pyarrow.array(words, kind))
        assert len(np.unique(prints)) == len(words)
        assert np.array_equal(fingerprints(pyarrow.array(["-", *words], kind)[1:]), prints)
    assert fingerprints(pyarrow.array([3, -1])).view(np.int64).tolist() == [3, -1]


# --- what the summary adds ---


def test_range_owners_share_numbers_by_value_and_words_by_appearance(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    values = [0] * 60 + [1] * 30 + [98] * 9 + [99]
    parquet.write_table(pyarrow.table({"n": values, "w": [f"{v}" for v in values]}), tmp_path / "log.parquet")
    numbers, words = summarize(tmp_path / "log.parquet", 10, owners=2).tables
    assert numbers.ranges.raw_busiest_over_mean == pytest.approx(90 / 50)
    assert words.ranges.raw_busiest_over_mean == pytest.approx(90 / 50)
    three = summarize(tmp_path / "log.parquet", 10, owners=4).tables
    assert three[0].ranges.raw_busiest_over_mean == pytest.approx(90 / 25)
    assert three[1].ranges.raw_busiest_over_mean == pytest.approx(60 / 25)


@pytest.mark.parametrize(("drifting", "expected"), [(False, 0.0), (True, 1.0)])
def test_drift_is_none_by_chance_and_one_when_no_key_stays(
    tmp_path: Path, drifting: bool, expected: float
) -> None:
    random = np.random.default_rng(2)
    keys = random.geometric(0.02, 8000) + (np.arange(8000) >= 4000) * (10_000 if drifting else 0)
    path = tmp_path / "log.csv"
    path.write_text("item\n" + "\n".join(map(str, keys)) + "\n")
    drift = summarize(path, 1000).tables[0].drift
    assert drift == pytest.approx(expected, abs=0.03)


def test_curves_of_a_summary_are_complete(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("item\n" + "\n".join("aaaabbcd") + "\n")
    summary = summarize(path, 2).to_dict()
    curves = summary["curves"]["item"]  # type: ignore[index]
    assert curves["coverage"][-1] == [1.0, 1.0]
    assert curves["reuse"][:3] == [
        {"at_most": 1, "share_of_keys": 0.5, "share_of_lookups": 0.25},
        {"at_most": 2, "share_of_keys": 0.25, "share_of_lookups": 0.25},
        {"at_most": 4, "share_of_keys": 0.25, "share_of_lookups": 0.5},
    ]
    assert [window["samples"] for window in curves["windows"]] == [1, 2, 4, 8]
    assert summary["tables"][0]["single_use_keys_share"] == 0.5  # type: ignore[index]


def test_miss_curves_of_a_log_stop_at_the_limit_of_lookups(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("a,b\n" + "\n".join(f"{i % 5},{i % 3}" for i in range(100)) + "\n")
    first, second = cache_curves(path, lookups=30, slots=(1, 2, 5))
    assert (first.table, first.lookups, first.distinct) == ("a", 30, 5)
    assert first.lru == pytest.approx((1.0, 1.0, 5 / 30))  # a loop longer than the cache never hits LRU
    assert first.belady[1] < first.lru[1]
    assert second.lru[2] == pytest.approx(3 / 30)
