"""`recscale import`: TorchRec's plans and key logs, in our words; and what `keys` says of a log."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.cli.running import run
from simulator.scenario import load
from simulator.scenario.shipped_files import shipped_folder

QUICKSTART = str(shipped_folder() / "quickstart.yaml")
LOG = str(shipped_folder() / "data" / "open_bandit_bts_women.csv.gz")
SHARD_OF_B = {"shard_offsets": [0, 0], "shard_sizes": [60, 64], "placement": "rank:3/cuda:3"}
PLAN = {
    "plan": {
        "sparse.bags": {
            "a": {
                "sharding_type": "table_wise",
                "compute_kernel": "fused_uvm_caching",
                "ranks": [1],
                "shards": [{"shard_offsets": [0, 0], "shard_sizes": [100, 64], "placement": "rank:1/cuda:1"}],
            },
            "b": {
                "sharding_type": "row_wise",
                "compute_kernel": "fused",
                "ranks": [3, 0],
                "shards": [
                    SHARD_OF_B,
                    {"shard_offsets": [60, 0], "shard_sizes": [40, 64], "placement": "rank:0/cuda:0"},
                ],
            },
            "c": {"sharding_type": "data_parallel", "compute_kernel": "dense", "ranks": [0, 1, 2, 3]},
        }
    }
}

Command = Callable[..., Any]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in 80 columns; return exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "80")

    def command(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        return (code, *capsys.readouterr())

    return command


def written(folder: Path, plan: dict[str, Any] | None = None) -> str:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan or PLAN), encoding="utf-8")
    return str(path)


def test_a_plan_is_told_with_kinds_ranks_and_what_is_unusual(told: Command, tmp_path: Path) -> None:
    code, out, err = told("import", "torchrec", written(tmp_path))
    assert code == 0 and err == ""
    assert max(map(len, out.splitlines()[1:])) <= 80  # the first line is as long as the file's name
    text = " ".join(out.split())
    for words in (
        "3 tables on 4 ranks",
        "module sparse.bags",
        "b row_wise fused 0,3 2 100 64",
        "c data_parallel dense 0-3 0 - -",
        "1 table_wise; 1 row_wise; 1 data_parallel",
        "! row-wise, but not one block on every rank in order: b",
        "does not say how many rows are cached",
    ):
        assert words in text


def test_json_holds_every_shard(told: Command, tmp_path: Path) -> None:
    data = json.loads(told("import", "torchrec", written(tmp_path), "--format", "json")[1])
    assert data["ranks"] == 4 and [table["table"] for table in data["tables"]] == ["a", "b", "c"]
    first = data["tables"][1]["shards"][0]
    assert (first["rows"], first["rank"]) == ({"start": 0, "size": 60}, 3)
    assert len(data["unusual"]) == 2
    header, *records = told("import", "torchrec", written(tmp_path), "--format", "csv")[1].splitlines()
    assert header == "module,table,sharding,kernel,rows,columns,shard_count,ranks"
    assert records[1] == "sparse.bags,b,row_wise,fused,100,64,2,3; 0"


def test_what_is_missing_from_a_plan_is_named(told: Command, tmp_path: Path) -> None:
    table = {"sharding_type": "row_wise", "compute_kernel": "new", "ranks": [0, 2]}
    shards = [SHARD_OF_B, {**SHARD_OF_B, "shard_offsets": [80, 0]}]
    plan = {"plan": {"m": {"b": {**table, "shards": shards}}}}
    unusual = json.loads(told("import", "torchrec", written(tmp_path, plan), "--format", "json")[1])[
        "unusual"
    ]
    text = "\n".join(unusual)
    assert 'the shards of "b" hold 0.8571 of its values' in text
    assert '"b" has shards on ranks that its list of ranks lacks' in text
    assert 'the unknown compute kernel "new"' in text
    assert "ranks without any table: 1" in text


def test_a_plan_is_written_as_json_and_as_a_sharding_part(told: Command, tmp_path: Path) -> None:
    file = written(tmp_path)
    shown = json.loads(told("import", "torchrec", file, "--format", "json")[1])
    assert told("import", "torchrec", file, "--out", str(tmp_path / "told.json"))[0] == 0
    assert json.loads((tmp_path / "told.json").read_text(encoding="utf-8")) == shown
    assert told("import", "torchrec", file, "--out", str(tmp_path / "part.yaml"))[0] == 0
    part = (tmp_path / "part.yaml").read_text(encoding="utf-8")
    tables = "[{name: a, rows: 100, dimension: 64}, {name: b, rows: 100, dimension: 64}"
    tables += ", {name: c, rows: 9, dimension: 64}]"
    settings = [f"workload.tables={tables}", "workload.model.embedding_features=3", f"sharding={part}"]
    step = load(QUICKSTART, settings).step
    places = [(shard.piece.table.name, shard.first, shard.piece.rows) for shard in step.placed.shards]
    assert sorted(places) == [("a", 1, 1.0), ("b", 0, 0.4), ("b", 3, 0.6)]
    assert [table.name for table in step.placed.replicated] == ["c"]
    nouns = {shard.piece.table.name: shard.piece.kind.home.noun for shard in step.placed.shards}
    assert nouns["b"] == "device memory" and "0.2 of the rows cached" in nouns["a"]


def test_what_shard_exports_comes_back_as_the_same_part(told: Command, tmp_path: Path) -> None:
    out, plan = tmp_path / "out.yaml", tmp_path / "plan.txt"
    words = ["--out", str(out), "--export-torchrec", str(plan), "--format", "csv"]
    assert told("shard", QUICKSTART, *words)[0] == 0
    assert told("import", "torchrec", str(plan), "--out", str(tmp_path / "back.yaml"))[0] == 0
    back = (tmp_path / "back.yaml").read_text(encoding="utf-8")
    steps = [load(QUICKSTART, [f"sharding={text}"]).step for text in (out.read_text(encoding="utf-8"), back)]
    first, second = (
        sorted((one.piece.table.name, one.first, one.piece.rows) for one in step.placed.shards)
        for step in steps
    )
    assert first == second


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["torchrec", "missing.json"], "missing.json: cannot be read"),
        (["torchrec", QUICKSTART], "no TorchRec sharding plan"),
        (
            ["torchrec", "missing.json", "--out", "plan.xml"],
            'written to .json or .yaml, "plan.xml" is neither',
        ),
        (["keys", "missing.csv"], "missing.csv: there is no such file"),
        (["keys", LOG, "--user", "a"], "needs both --user and --item"),
        (["torch"], "no such command 'torch'"),
    ],
)
def test_wrong_imports_are_answered_in_one_line(told: Command, words: list[str], says: str) -> None:
    code, out, err = told("import", *words)
    assert (code, out, err.count("\n")) == (2, "", 1) and says in err


def test_an_imported_log_is_what_keys_says_as_json(told: Command, tmp_path: Path) -> None:
    words = [LOG, "--batch", "64", "--columns", "item_id", "--caches", "2000"]
    shown = told("keys", *words, "--format", "json")[1]
    assert told("import", "keys", *words)[1] == shown
    code, out, err = told("import", "keys", *words, "--out", str(tmp_path / "keys.json"))
    assert (code, out) == (0, "") and "wrote" in err
    assert (tmp_path / "keys.json").read_text(encoding="utf-8") == shown


def test_keys_tells_drift_reuse_fits_and_misses_in_80_columns(told: Command) -> None:
    words = ["keys", LOG, "--batch", "64", "--columns", "item_id,position", "--caches", "5000"]
    code, out, _ = told(*words)
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    for heading in ("once", "drift", "range", "Zipf-Mandelbrot exponent", "LRU misses", "best"):
        assert heading in out
    data = json.loads(told(*words, "--format", "json")[1])
    curves = data["curves"]["item_id"]
    assert curves["coverage"][-1] == [1.0, 1.0] and sum(
        row["share_of_keys"] for row in curves["reuse"]
    ) == pytest.approx(1.0)
    items = [row for row in data["caches"] if row["table"] == "item_id"]
    assert items[0]["lookups_replayed"] == 5000
    for row in items:
        assert row["belady_misses"] <= min(row["lru_misses"], row["lfu_misses"])


def test_keys_reads_a_log_without_a_header(told: Command, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("1,7\n2,7\n" * 8, encoding="utf-8")
    words = ["keys", str(log), "--batch", "4", "--no-header", "--format", "json"]
    first, second = json.loads(told(*words)[1])["tables"]
    assert (first["table"], first["samples"], first["distinct_keys"]) == ("column_1", 16, 2)
    assert second["distinct_keys"] == 1


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_keys_draws_the_same_picture_twice(told: Command, tmp_path: Path, suffix: str) -> None:
    words = ["keys", LOG, "--batch", "64", "--format", "csv", "--plot"]
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in paths:
        code, _, err = told(*words, str(path))
        assert code == 0 and err == f"recscale: drew {path}\n"
    first, second = (path.read_bytes() for path in paths)
    assert first == second and len(first) > 10_000


def test_a_picture_of_another_kind_is_refused_before_the_log_is_read(told: Command) -> None:
    code, out, err = told("keys", "missing.csv", "--plot", "keys.pdf")
    assert (code, out) == (2, "") and '.png or .svg, "keys.pdf" does not' in err
