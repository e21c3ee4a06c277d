"""What a command reads is not written over; what cannot be meant is refused, not taken for "all"."""

import os
from pathlib import Path

import pytest

from analysis.cli.running import run
from simulator.scenario.shipped_files import shipped_folder

QUICKSTART = shipped_folder() / "quickstart.yaml"
FLAT = "cluster.fabric={kind: flat, start_up: 34 us, inside: {kind: full_mesh, bandwidth: 300 GB/s}}"


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(words) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("a,b\n" + "1,2\n3,4\n" * 512, encoding="utf-8")
    return path


@pytest.mark.parametrize("command", [["trace", "{}", "-o", "{out}"], ["shard", "{}", "--out", "{out}"]])
@pytest.mark.parametrize("way", ["itself", "symbolic", "hard"])
def test_a_scenario_is_not_written_over_by_what_is_made_of_it(
    command: list[str], way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "me.yaml"
    mine.write_bytes(QUICKSTART.read_bytes())
    out = mine if way == "itself" else tmp_path / "other.yaml"
    if way == "symbolic":
        out.symlink_to(mine)
    if way == "hard":
        os.link(mine, out)
    said = refused([word.format(mine, out=out) for word in command], capsys)
    assert said == f"recscale: {out}: is what this command reads; write to another file\n"
    assert mine.read_bytes() == QUICKSTART.read_bytes()


def test_a_key_log_is_not_written_over_by_its_statistics(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = log.read_bytes()
    assert "is what this command reads" in refused(["import", "keys", str(log), "--out", str(log)], capsys)
    assert log.read_bytes() == before


def test_a_pipe_that_nobody_reads_from_is_refused_at_once(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = refused(["import", "keys", str(log), "--out", str(tmp_path / "pipe")], capsys)
    assert said == f"recscale: {tmp_path / 'pipe'}: is a pipe that nobody reads from\n"


def test_a_pipe_with_a_reader_gets_the_whole_file(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe, plain = tmp_path / "pipe", tmp_path / "plain.json"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for out in (plain, pipe):  # small enough for the pipe to hold
        assert run(["import", "keys", str(log), "--out", str(out)]) == 0
    with os.fdopen(reading, "rb") as reader:
        assert reader.read() == plain.read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", str(QUICKSTART), "--policies", ""], "--policies: the value is empty"),
        (["compare", str(QUICKSTART), "--policies", " , "], "--policies: the list is empty"),
        (["compare", str(QUICKSTART), "--workers", ","], "--workers: the list is empty"),
        (["compare", str(QUICKSTART), "--plot="], "--plot: the value is empty"),
        (["run", str(QUICKSTART), "--out", ""], "--out: the value is empty"),
        (["check", ""], "an argument: the value is empty"),
        (["keys", "LOG", "--columns", ""], "--columns: the value is empty"),
        (["keys", "LOG", "--columns", ","], "--columns: the list is empty"),
        (["keys", "LOG", "--longest", "5"], "--longest shortens the histories of --user"),
    ],
)
def test_an_option_that_says_nothing_or_cannot_act_is_refused(
    words: list[str], said: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused([str(log) if word == "LOG" else word for word in words], capsys)


def test_a_column_named_twice_is_told_of_and_measured_once(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["keys", str(log), "--columns", "a,a", "--format", "csv"]) == 0
    said = capsys.readouterr()
    assert "--columns repeats a; shown once" in said.err
    assert len(said.out.splitlines()) == 2


@pytest.mark.parametrize("engine", ["events", "vector"])
@pytest.mark.parametrize("tier", ["hbm", "dram"])
def test_one_worker_on_a_fabric_without_nics_runs_and_exchanges_nothing(
    engine: str, tier: str, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = ["--set", "cluster.per_host=1", "--set", f"sharding.tier={tier}", "--workers", "1"]
    if tier == "hbm":
        alone += ["--set", "workload.tables=[{name: t, rows: 1000, dimension: 16}]"]
    assert run(["run", str(QUICKSTART), "--set", FLAT, *alone, "--engine", engine]) == 0
    assert "waits for all-to-all" not in capsys.readouterr().out


@pytest.mark.parametrize("switch", [True, False])
def test_one_worker_on_a_drawn_fabric_runs_with_or_without_links(switch: bool, tmp_path: Path) -> None:
    link = "{from: a, to: s, bandwidth: 50 GB/s, latency: 1 us}" if switch else ""
    nodes = "{name: a, kind: accelerator}" + (", {name: s, kind: switch}" if switch else "")
    (tmp_path / "graph.yaml").write_text(f"{{nodes: [{nodes}], links: [{link}]}}", encoding="utf-8")
    text = QUICKSTART.read_text(encoding="utf-8").replace("per_host: 8", "per_host: 1")
    (tmp_path / "one.yaml").write_text(text.replace("tier: hbm", "tier: dram"), encoding="utf-8")
    graph = "cluster.fabric={kind: custom, file: graph.yaml, start_up: 5 us}"
    for command in ("run", "explain"):
        assert run([command, str(tmp_path / "one.yaml"), "--set", graph]) == 0
