"""Commands that read or write files: init, run --out, trace, keys; and what may be looked up."""

import json
from pathlib import Path

import pytest

from analysis.cli.running import run
from simulator.results.export import replacing, write_json
from simulator.scenario import load, run_scenario
from simulator.scenario.shipped_files import scenarios_in, shipped_folder

QUICKSTART = str(shipped_folder() / "quickstart.yaml")
LOG = str(shipped_folder() / "data" / "open_bandit_bts_women.csv.gz")


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_init_copies_every_scenario_with_its_data_and_they_can_be_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", str(tmp_path / "study")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert files_below(tmp_path / "study") == files_below(shipped_folder())
    assert len(told) == len(files_below(shipped_folder())) and all(line.startswith("wrote ") for line in told)
    for path in scenarios_in(tmp_path / "study"):
        assert run(["check", str(path)]) == 0, path


def test_init_keeps_what_is_there_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "quickstart.yaml"
    mine.write_text("name: mine\n", encoding="utf-8")
    assert run(["init", str(tmp_path)]) == 0
    assert f"kept   {mine}  (differs from the shipped one; --force replaces it)" in capsys.readouterr().out
    assert mine.read_text(encoding="utf-8") == "name: mine\n"
    assert run(["init", str(tmp_path), "--force"]) == 0
    assert mine.read_bytes() == Path(QUICKSTART).read_bytes()


def test_init_into_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert run(["init", str(tmp_path / "file")]) == 2
    assert "is a file; a folder is needed" in capsys.readouterr().err


def test_a_run_folder_holds_what_is_needed_to_repeat_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyarrow import parquet

    assert (
        run(["run", QUICKSTART, "--seed", "5", "--format", "json", "--out", str(tmp_path / "new" / "out")])
        == 0
    )
    printed, folder = json.loads(capsys.readouterr().out), tmp_path / "new" / "out"
    assert files_below(folder) == {
        "run.json",
        "steps.parquet",
        "stages.parquet",
        "trace.json.gz",
        "gantt.png",
    }
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert record["report"] == printed and record["seed"] == 5
    assert record["versions"].keys() >= {"python", "recscale", "numpy", "simpy"}
    again = load(QUICKSTART, ["run.seed=5"])
    assert record["hash"] == again.hash and record["scenario"] == again.resolved()
    steps = parquet.read_table(folder / "steps.parquet").to_pydict()
    assert steps["batch"][0] == 20 and sum(steps["step_ms"]) / len(steps["step_ms"]) == pytest.approx(
        printed["step_ms"]["mean"]
    )
    stages = parquet.read_table(folder / "stages.parquet").to_pydict()
    by_kind = zip(stages["kind"], stages["duration_ms"], strict=True)
    assert sum(time for kind, time in by_kind if kind == "compute") == pytest.approx(
        printed["raw_ms"]["compute"]
    )


def test_the_resolved_scenario_of_a_run_folder_is_a_scenario_file(tmp_path: Path) -> None:
    assert run(["run", QUICKSTART, "--workers", "16", "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    (tmp_path / "again.yaml").write_text(json.dumps(record["scenario"]), encoding="utf-8")
    assert run_scenario(load(tmp_path / "again.yaml")).report.step_ms == record["report"]["step_ms"]


def test_a_file_is_complete_or_not_there(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file.json"
    write_json(target, {"a": 1})
    with pytest.raises(RuntimeError), replacing(target) as unfinished:
        unfinished.write_text("half", encoding="utf-8")
        raise RuntimeError("the disk is full")
    assert json.loads(target.read_text(encoding="utf-8")) == {"a": 1}
    assert files_below(tmp_path) == {"new/file.json"}


def test_a_folder_that_cannot_be_written_to_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", QUICKSTART, "--out", "/dev/null/out"]) == 2
    assert "/dev/null" in capsys.readouterr().err


def test_a_trace_is_chrome_json_with_one_track_per_stream(tmp_path: Path) -> None:
    target = tmp_path / "new" / "t.json"
    assert run(["trace", QUICKSTART, "-o", str(target)]) == 0
    events = json.loads(target.read_text(encoding="utf-8"))["traceEvents"]
    tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert tracks >= {"compute", "network", "loader"}
    assert {event["ph"] for event in events} >= {"M", "X"}


def test_keys_measures_a_log_and_shows_the_fit_beside_its_quality(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ["keys", LOG, "--batch", "64", "--columns", "item_id,timestamp"]
    assert run(words) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "exponent" in out and "KS" in out and "lookups/key" in out
    assert "fewer than 10 lookups per key in timestamp" in " ".join(out.split())
    assert run([*words, "--owners", "4", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    item = data["tables"][0]
    assert (data["samples"], item["table"], item["distinct_keys"], item["owners"]) == (
        10_000,
        "item_id",
        46,
        4,
    )
    assert item["lookups_per_key"] == pytest.approx(10_000 / 46)


def test_keys_names_columns_that_are_hardly_tables_and_tells_no_fit_that_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.csv"
    rows = [f"{1_000_000 + 7 * n},{n % 2},{n * n % 97},same,{n % 5}" for n in range(400)]
    log.write_text("\n".join(["when,flag,item,one,few", *rows]), encoding="utf-8")
    assert run(["keys", str(log), "--batch", "20"]) == 0
    out = capsys.readouterr().out
    fits = {line.split()[0]: line.split()[1:] for line in out.partition("\nfits")[2].splitlines() if line}
    told = " ".join(out.split()).partition("doubtful as tables: ")[2].partition(". --columns")[0]
    assert [part.split(" (")[0] for part in told.split("), ")] == ["when", "flag", "one"]
    assert fits["few"] == ["-"] * 5 and fits["item"][0] != "-"
    assert "! fits shown as -: fewer than 20 keys" in out


def test_keys_counts_broken_lines_and_says_what_was_wrong_with_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("item\n" + "1\n2\n" * 20 + "3,4\n" + "1\n" * 10, encoding="utf-8")
    assert run(["keys", str(log), "--batch", "10"]) == 0
    assert "1 broken lines left out; the first: " in capsys.readouterr().out


def test_keys_reads_events_as_histories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "events.csv"
    rows = [f"{user},{item},{user * 10 + item}" for user in range(20) for item in range(3)]
    log.write_text("\n".join(["who,what,when", *rows]), encoding="utf-8")
    words = ["keys", str(log), "--batch", "5", "--user", "who", "--item", "what", "--time", "when"]
    assert run([*words, "--format", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert (table["samples"], table["pooling_mean_keys_per_sample"]) == (20, 3.0)
    assert run(["keys", str(log), "--user", "who"]) == 2
    assert "needs both --user and --item" in capsys.readouterr().err


def test_the_catalog_lists_names_and_shows_each_number_with_its_source(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["catalog", "list", "--format", "json"]) == 0
    names = json.loads(capsys.readouterr().out)
    assert "h100" in names["accelerator"] and "dgx_a100" in names["machine"]
    assert run(["catalog", "show", "h100", "--format", "csv"]) == 0
    header, *records = capsys.readouterr().out.splitlines()
    assert header == "kind,name,field,value,confidence,source,note,range"
    assert any(record.startswith("accelerator,h100,hbm_bandwidth,") for record in records)
    assert run(["catalog", "show", "dgx_a100"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("dgx_a100 is the name of several kinds: host, fabric, machine\n")
    assert "dgx_a100 (host)" in out and "dgx_a100 (fabric)" in out and "[1]" in out


def test_the_catalog_alone_lists_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["catalog"]) == 0
    alone = capsys.readouterr().out
    assert run(["catalog", "list"]) == 0
    assert capsys.readouterr().out == alone and "tpu_v5p" in alone
    assert "catalog list collective)" in alone and len(alone.splitlines()) < 30
    assert run(["catalog", "list", "collective"]) == 0
    assert "all_reduce" in capsys.readouterr().out


def test_the_schema_describes_every_part_of_a_scenario_with_quantities_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["properties"].keys() == {
        "name",
        "cluster",
        "workload",
        "sharding",
        "policy",
        "software",
        "run",
    }
    between = schema["$defs"]["TwoLevelSpec"]["properties"]["between"]
    assert between["type"] == "string" and between["examples"] == ["25 GB/s"]
    references = [text for text in json.dumps(schema).split('"') if text.startswith("#/$defs/")]
    assert {reference.removeprefix("#/$defs/") for reference in references} <= schema["$defs"].keys()
