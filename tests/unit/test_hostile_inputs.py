"""Files and words that are not meant well: each is answered in one line, and nothing else is harmed."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path
from stat import S_ISFIFO
from typing import Any

import pytest

from analysis.cli import running
from analysis.cli.output import console, plain
from analysis.cli.running import run
from simulator.calibration.collective_tables import read_tables
from simulator.costs.fitted_rates import bytes_rate
from simulator.errors import InputError, Where, regular_file
from simulator.hardware.graphs.custom import from_file
from simulator.results.export import replacing, write_json
from simulator.scenario.shipped_files import shipped_folder
from simulator.sharding.placement import Chips, optimized
from simulator.sharding.placement.shard import Demand, Span, piece
from simulator.sharding.placement.solver import Item, Limits, solve
from simulator.sharding.placement.torchrec import parsed, read_torchrec_plan
from simulator.workload.keys import LogOptions, SequenceColumns, summarize

QUICKSTART = str(shipped_folder() / "quickstart.yaml")
LOG = str(shipped_folder() / "data" / "open_bandit_bts_women.csv.gz")
SHARD = {"shard_offsets": [0, 0], "shard_sizes": [100, 64], "placement": "rank:1/cuda:1"}


def pipe(folder: Path, name: str = "pipe") -> Path:
    os.mkfifo(folder / name)
    return folder / name


def table(**changed: Any) -> dict[str, Any]:
    return {"sharding_type": "table_wise", "ranks": [1], "shards": [SHARD], **changed}


def plan(name: str = "a", **changed: Any) -> str:
    return json.dumps({"plan": {"bags": {name: table(**changed)}}})


def shard(**changed: Any) -> list[dict[str, Any]]:
    return [{**SHARD, **changed}]


def parquet(folder: Path, **columns: Any) -> Path:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), folder / "log.parquet")
    return folder / "log.parquet"


def command(*words: str, redirected: str = "") -> subprocess.CompletedProcess[str]:
    script = f'exec "$0" -c "from analysis.cli.running import main; main()" "$@" {redirected}'
    return subprocess.run(
        ["sh", "-c", script, sys.executable, *words], capture_output=True, text=True, timeout=60
    )


def test_a_pipe_as_output_is_written_into_and_stays_a_pipe(tmp_path: Path) -> None:
    target, got = pipe(tmp_path), []
    reader = threading.Thread(target=lambda: got.append(target.read_bytes()))
    reader.start()
    write_json(target, {"a": 1})
    reader.join(10)
    assert json.loads(got[0]) == {"a": 1}
    assert S_ISFIFO(target.stat().st_mode) and os.listdir(tmp_path) == ["pipe"]


def test_a_link_as_output_keeps_pointing_where_it_did(tmp_path: Path) -> None:
    (tmp_path / "real.json").touch()
    (tmp_path / "link.json").symlink_to("real.json")
    write_json(tmp_path / "link.json", 1)
    assert (tmp_path / "link.json").is_symlink() and (tmp_path / "real.json").read_text() == "1\n"


@pytest.mark.parametrize("name", ["", ".", "..", "/"])
def test_a_directory_as_output_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is a directory; the name of a file is needed"):
        write_json(Path(name), 1)


def test_a_full_disk_names_the_file_that_was_asked_for_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught, replacing(tmp_path / "out.json") as unfinished:
        unfinished.touch()
        raise OSError(ENOSPC, "No space left on device", str(unfinished))
    assert (caught.value.errno, caught.value.filename) == (ENOSPC, str(tmp_path / "out.json"))
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_written_is_named_as_the_user_named_it(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    with pytest.raises(InputError, match=r"/out\.json: no$"), replacing(target) as unfinished:
        raise InputError("no", Where(str(unfinished)))


def test_a_pipe_is_no_regular_file_and_a_link_to_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    assert regular_file(tmp_path / "link") == tmp_path / "link"
    with pytest.raises(InputError, match="pipe: is not a regular file"):
        regular_file(pipe(tmp_path))


@pytest.mark.parametrize(
    "read",
    [read_torchrec_plan, from_file, lambda path: summarize(path, 1), lambda path: read_tables(path.parent)],
)
def test_no_reader_waits_for_a_pipe(tmp_path: Path, read: Any) -> None:
    with pytest.raises(InputError, match="is not a regular file"):
        read(pipe(tmp_path, "tables.csv"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 100_000, "nested too deeply"),
        (plan(ranks="RANK").replace('"RANK"', f"[{'9' * 5000}]"), "too many digits"),
        (plan(ranks=[float("inf")]), "a whole number from 0 to"),
        (plan(ranks=[2**40]), "a whole number from 0 to 1048575"),
        (plan(ranks=[True]), "a whole number"),
        (plan(shards=shard(shard_sizes=[0, 64])), "a whole number from 1 to"),
        (plan(shards=shard(shard_sizes=[2**53, 64])), "a whole number from 0 to 9007199254740991"),
        (
            plan(shards=shard(shard_sizes=[1.5, 64])),
            "a whole number from 0 to 9007199254740991 is needed, not 1.5",
        ),
        (plan(shards=shard(shard_offsets=[-1, 0])), "a whole number from 0"),
        (plan(shards=shard(placement=f"rank:{'9' * 5000}/cuda:0")), "a whole number"),
        (plan(name="\ud800"), "holds half a character"),
        (plan(rnaks=[1]), r'unknown key "rnaks" \(did you mean "ranks"\?\)'),
        (plan(shards=5), "no shard as TorchRec writes it"),
    ],
)
def test_a_hostile_torchrec_plan_is_refused_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        parsed(text)
    assert str(caught.value).isprintable()


def test_what_else_torchrec_keeps_of_a_table_is_passed_over() -> None:
    assert parsed(plan(sharding_spec=None, output_dtype="fp16")).tables[0].ranks == (1,)


def test_a_planners_log_with_endless_ranks_is_refused() -> None:
    header = "FQN  Sharding  Compute Kernel  Emb Dim (CW Dim)  Hash Size  Ranks"
    with pytest.raises(InputError, match="a whole number from 0 to 1048575"):
        parsed(f"{header}\nbags.a  TW  fused  64  100  0-99999999999\n")


def test_a_plan_beyond_64_mb_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "plan.json").open("wb") as file:
        file.truncate(64_000_001)
    with pytest.raises(InputError, match="is larger than 64 MB"):
        read_torchrec_plan(tmp_path / "plan.json")


def test_an_absurd_batch_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.csv").write_text("a\n1\n")
    assert run(["keys", str(tmp_path / "log.csv"), "--batch", str(10**30)]) == 2
    assert "a batch holds at most 2147483647 samples" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["list<list>", "map", "struct", "list<struct>"])
def test_columns_that_hold_no_keys_are_refused_with_the_file(tmp_path: Path, kind: str) -> None:
    import pyarrow

    values = {
        "list<list>": pyarrow.array([[[1]], [[2]]]),
        "map": pyarrow.array([[("k", 1)]] * 2, pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        "struct": pyarrow.array([{"x": 1}] * 2),
        "list<struct>": pyarrow.array([[{"x": 1}]] * 2),
    }[kind]
    with pytest.raises(InputError, match=r"log\.parquet: a column of .* holds no keys") as caught:
        summarize(parquet(tmp_path, a=values), 1)
    with pytest.raises(InputError, match=r"log\.parquet: a column of .* holds no keys"):
        summarize(parquet(tmp_path, u=[1, 2], a=values), 1, LogOptions(sequence=SequenceColumns("u", "a")))
    assert str(caught.value).isprintable()


def test_ten_thousand_columns_are_read_when_they_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(",".join(f"c{n}" for n in range(10_001)) + "\n" + ",".join(["1"] * 10_001) + "\n")
    with pytest.raises(InputError, match="has 10001 columns, more than 10000: name those that hold keys"):
        summarize(path, 1)
    assert summarize(path, 1, LogOptions(("c7",))).samples == 1


def test_what_is_no_number_in_parquet_is_missing(tmp_path: Path) -> None:
    path = parquet(tmp_path, a=[1.0, float("nan"), None, 1.0])
    assert summarize(path, 1).tables[0].missing == 2


def test_joined_gzip_files_are_read_whole_and_a_repeated_header_is_no_sample(tmp_path: Path) -> None:
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"a,b\n3,4\n5,6\n"))
    log = summarize(tmp_path / "log.csv.gz", 1)
    assert (log.samples, log.tables[0].frequencies.distinct, log.broken.count) == (3, 3, 0)


def test_a_header_in_another_code_page_is_told_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"caf\xe9\n1\n")
    with pytest.raises(InputError, match=r"log\.csv: cannot be read as a key log: it is not text in UTF-8$"):
        summarize(tmp_path / "log.csv", 1)


def test_tables_in_another_code_page_are_told_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "tables.csv").write_bytes(b"table_id,group,collective,accel,n_ranks,n_nodes\ncaf\xe9\n")
    with pytest.raises(InputError, match=r"tables\.csv: is not a text file in UTF-8$"):
        read_tables(tmp_path)


@pytest.mark.parametrize("parameters", [None, [1], {"a": None}, {"a": {"value": [1]}}, "text"])
def test_a_fitted_primitive_in_another_form_is_refused_by_its_name(parameters: Any) -> None:
    entry = {"form": "affine", "amounts": ["bytes"], "parameters": parameters}
    with pytest.raises(InputError, match=r"entries\.copy: is not a measured primitive as fits are written"):
        bytes_rate({"entries": {"copy": entry}}, "copy", "fits.yaml")


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 0.0, -1.0, 3601.0])
def test_a_search_takes_a_sensible_time(seconds: float) -> None:
    with pytest.raises(InputError, match="a search takes more than 0 s and at most 3600 s"):
        optimized([], Chips(2), seconds=seconds)


@pytest.mark.slow
def test_an_interrupt_ends_the_exact_search_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ortools.sat.python.cp_model")
    draw, base = random.Random(1), piece(Demand("t", 9, 9, 1.0, 1.0), "table", Span(0, 9), Span(0, 9))
    pieces = [replace(base, table=str(n), load=draw.random()) for n in range(120)]
    items = [Item(((one,),), 0, (n % 16,)) for n, one in enumerate(pieces)]
    limits = Limits(16, 1e9, 0.0, seconds=60.0, effort=1e6)
    monkeypatch.setattr(running, "_invoke", lambda words: solve(items, limits) is None)
    started = time.monotonic()
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert run([]) == 130
    assert 0.9 < time.monotonic() - started < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["schema"],
        ["catalog", "show", "a100_80"],
        ["run", QUICKSTART, "--workers", "8"],
        ["keys", LOG],
    ],
)
def test_a_closed_output_is_a_pipe_that_nobody_reads(words: list[str]) -> None:
    done = command(*words, redirected=">&-")
    assert (done.returncode, done.stdout) == (141, ""), done.stderr


def test_names_that_turn_the_line_around_are_shown_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    assert str(InputError("no \u202ename\x1b[2J")) == "no \\u202ename\\x1b[2J"
    console().print(plain("a\u202e\x1b[2Jb"))
    assert capsys.readouterr().out == "a\\u202e\\x1b[2Jb\n"
