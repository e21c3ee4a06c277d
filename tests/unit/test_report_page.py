"""The report: one HTML file of what a folder holds, the same bytes each time, inert whatever names say."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import orjson
import pytest

from analysis.plan.answering import Answered
from analysis.plan.basis import Basis
from analysis.report import write_report
from analysis.report.found import find_results
from analysis.report.pictures import steps
from analysis.report.records import Row, families, parts, short
from analysis.report.relate import front, related
from analysis.saving import save_run
from analysis.sweep import Dataset, Grid, read_grid
from analysis.sweep.points import Task, run_task
from simulator.errors import InputError
from simulator.scenario import load, run_scenario

GRID = """
scenario: quickstart.yaml
vary:
  - path: policy
    values: [{kind: serialized}, {kind: dual_buffer}]
  - path: workers
    values: [8, 16, 12]
  - path: workload.batch
    values: [4096, 8192]
"""
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> $\\frac$ \u202e"
ANSWER: dict[str, Any] = {
    **{
        "name": "by-friday",
        "feasible": True,
        "chosen": 0,
        "tried": 12,
        "failed": 2,
        "undecided": 0,
        "refused": 3,
    },
    **{"wrong": 1, "defects": 0},
    "plans": [
        {
            **{"hardware": "a100", "workers": workers, "policy": {"kind": "nestpipe", "micro_batches": 4}},
            **{"hours": 400 / workers, "hours_interval": None, "usd": 100.0 + workers, "kwh": 2382.4},
            **{"step_ms": 5.4, "throughput_samples_per_s": 1e6 * workers, "bottleneck": "read"},
            **{"sharding": {"kind": "row_wise", "tier": "hbm"}, "peak_memory_hbm_bytes": 4.45e9},
        }
        for workers in (16, 8)
    ],
    "gains": [
        {
            "parameter": "cluster.host.cores",
            "value": "112",
            "factor": 1.1,
            "step_ms": 4.9,
            "saved_share": 0.09,
        }
    ],
    **{"changes": [], "reasons": ["2 x does not fit"], "notes": ["no interval"], "broken": {"USD": 3}},
    "basis": {
        **{"target": "1,000 samples, within 48 h", "limits": "synchronous training only"},
        "rates": [
            {
                "hardware": "a100",
                "usd_per_hour": {"amount": 2.5, "of": "a price list", "between": "2 USD/h to 4 USD/h"},
                "watts": {"amount": None, "of": "unknown", "between": ""},
            }
        ],
        "assumptions": ["no software is counted"],
    },
}


@pytest.fixture(scope="module")
def results(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, a sweep of which some points cannot run, and an answer."""
    folder = tmp_path_factory.mktemp("results")
    save_run(run_scenario(load(checkout / "scenarios/quickstart.yaml"), "vector"), folder / "run")
    grid = _grid(checkout, tmp_path_factory.mktemp("study"))
    Dataset(folder / "sweep").add(run_task(Task(grid.base, "vector", grid.points)))
    (folder / "answer.json").write_text(json.dumps(ANSWER))
    return folder


def _grid(checkout: Path, study: Path) -> Grid:
    shutil.copy(checkout / "scenarios/quickstart.yaml", study)
    (study / "sizes.grid.yaml").write_text(GRID)
    return read_grid(study / "sizes.grid.yaml")


@pytest.fixture
def folder(results: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(results, tmp_path / "results"))


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of the folder as it is."""
    target = tmp_path_factory.mktemp("page") / "report.html"
    write_report(results, target)
    return target.read_text(encoding="utf-8")


def page_of(folder: Path) -> str:
    target = folder / "report.html"
    write_report(folder, target)
    return target.read_text(encoding="utf-8")


class Tags(HTMLParser):
    """All tags of a page with their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def edit_run(folder: Path, **changes: Any) -> None:
    path = folder / "run" / "run.json"
    record = orjson.loads(path.read_bytes())
    for where, value in changes.items():
        *way, last = where.split("__")
        part = record
        for step in way:
            part = part[step]
        part[last] = value
    path.write_bytes(orjson.dumps(record))


def test_the_page_shows_all_that_the_folder_holds(page: str) -> None:
    text = Tags(page).text
    assert "runs: 1, points of sweeps: 12, answers to planning questions: 1" in text
    for title in ("Plans", "Summary", "Breakdown", "Scaling", "Steps", "Runs", "Assumptions"):
        assert title in text
    assert "by-friday" in text
    assert "4 of 12 points could not run" in text  # 12 workers are no whole hosts


def test_the_numbers_of_the_page_are_those_of_the_run(folder: Path) -> None:
    shutil.rmtree(folder / "sweep")
    report = orjson.loads((folder / "run/run.json").read_bytes())["report"]
    text = Tags(page_of(folder)).text
    assert f"{report['step_ms']['mean']:,.2f}" in text
    assert f"{report['throughput_samples_per_s']:,.0f}" in text


def test_the_same_results_give_the_same_bytes(page: str, results: Path, tmp_path: Path) -> None:
    write_report(results, tmp_path / "again.html", f"Training predictions: {results.name}")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_the_page_needs_no_other_file_and_no_network(page: str) -> None:
    tags = Tags(page).tags
    addresses = [
        value for _, attributes in tags for name, value in attributes.items() if name in ("src", "href")
    ]
    assert addresses
    assert all(address and address.startswith(("data:image/", "#")) for address in addresses)
    assert not {"script", "link", "iframe", "object", "form"} & {tag for tag, _ in tags}
    assert re.search(r"url\(|@import", page) is None


def test_every_picture_has_words_for_those_who_do_not_see_it(page: str) -> None:
    images = [attributes for tag, attributes in Tags(page).tags if tag == "img"]
    assert len(images) >= 4
    assert all(image["alt"] for image in images)


def test_markup_in_names_is_text_on_the_page(folder: Path) -> None:
    shutil.rmtree(folder / "sweep")
    edit_run(folder, report__scenario=HOSTILE, scenario__policy__kind=HOSTILE, report__notes=[HOSTILE])
    page = page_of(folder)
    parsed = Tags(page)
    assert "<script" not in page
    assert {"script", "img"} & {
        tag for tag, given in parsed.tags if "onerror" in given or tag == "script"
    } == set()
    assert "<script>alert(1)</script>" in parsed.text  # the parser gives back what a reader sees
    assert "\u202e" not in page


def test_a_name_with_dollar_signs_is_drawn_and_no_formula(checkout: Path, tmp_path: Path) -> None:
    named = load(checkout / "scenarios/quickstart.yaml", [r"name='$\frac$ of $x_'"])
    for workers in (8, 16):
        save_run(run_scenario(named.with_workers(workers), "vector"), tmp_path / f"on {workers}")
    text = Tags(page_of(tmp_path)).text
    assert r"$\frac$ of $x_: samples/s per worker" in text


def test_a_policy_in_the_head_forbids_scripts_and_loading(page: str) -> None:
    metas = [given for tag, given in Tags(page).tags if tag == "meta"]
    guard = next(str(given["content"]) for given in metas if "http-equiv" in given)
    assert guard.startswith("default-src 'none'")
    assert "script-src" not in guard


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (b"", "run.json: is not JSON"),
        (b'{"report": ', "run.json: is not JSON"),
        (b"\x00\xff" * 99, "run.json: is not JSON"),
        (b"[" * 99999, "run.json: is not JSON"),
        (b"[]", "run.json: is no record of a run"),
        (b"{}", "hash: is no record of a run of this version: field required"),
    ],
)
def test_a_damaged_run_is_named_in_one_line(folder: Path, damage: bytes, told: str) -> None:
    (folder / "run/run.json").write_bytes(damage)
    with pytest.raises(InputError) as caught:
        page_of(folder)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("report__step_ms__mean", "fast"),
        ("report__step_ms__mean", 0),
        ("report__ranks", -1),
        ("report__bottleneck", [["deep"]]),
        ("report__exposed_ms", {"input": None}),
        ("report__cost", 3),
        ("scenario__policy", "nestpipe"),
        ("scenario__cluster", []),
        ("versions", {"recscale": 1}),
    ],
)
def test_a_run_with_a_part_of_another_type_is_named_with_the_part(
    folder: Path, where: str, value: Any
) -> None:
    edit_run(folder, **{where: value})
    with pytest.raises(InputError, match=r"run\.json: .*is no record of a run of this version") as caught:
        page_of(folder)
    assert caught.value.where.path is not None
    assert caught.value.where.path.startswith(where.replace("__", "."))


def test_parts_that_do_not_add_up_to_the_step_are_refused(folder: Path) -> None:
    edit_run(folder, report__compute_ms=1e6)
    shutil.rmtree(folder / "sweep")
    with pytest.raises(InputError, match="add up to"):
        page_of(folder)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "other.json").write_text("{broken")
    with pytest.raises(InputError, match="holds no results"):
        write_report(tmp_path, tmp_path / "report.html")
    with pytest.raises(InputError, match="is not a folder"):
        write_report(tmp_path / "notes.txt", tmp_path / "report.html")


def test_an_answer_that_is_damaged_is_named(folder: Path) -> None:
    plans = [{**ANSWER["plans"][0], "hours": "soon"}]
    (folder / "answer.json").write_text(json.dumps({**ANSWER, "plans": plans}))
    with pytest.raises(InputError, match=r"answer\.json: plans\.0\.hours: is no answer"):
        page_of(folder)


def test_what_the_answer_to_a_question_holds_is_what_the_report_reads() -> None:
    basis = Basis("all", "none", (), ())
    answered = Answered("none", [], None, [], [], 3, 1, 2, ["why"], ["note"], {"USD": 2}, basis)
    assert answered.to_dict().keys() == ANSWER.keys()


def test_a_plan_stands_with_its_target_prices_policy_sharding_and_memory(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps(ANSWER))
    text = Tags(page_of(tmp_path)).text
    for words in (
        *("1,000 samples, within 48 h", "synchronous training only", "3 break a limit (USD: 3)"),
        *("nestpipe, micro_batches 4", "row_wise, tier hbm", "4.45 GB", "no software is counted"),
        *("a price list; 2 USD/h to 4 USD/h", "no interval"),
    ):
        assert words in text


def test_an_answer_of_before_without_its_basis_is_read(tmp_path: Path) -> None:
    old = {name: value for name, value in ANSWER.items() if name not in ("basis", "broken")}
    (tmp_path / "answer.json").write_text(json.dumps(old))
    assert "12 candidates were tried: 3 break a limit, 2 cannot run." in Tags(page_of(tmp_path)).text


def test_a_question_without_an_answer_says_what_would_help(tmp_path: Path) -> None:
    changes = [{"allow": "40 hours instead of 30", "plan": {}}]
    answer = {**ANSWER, "feasible": False, "plans": [], "chosen": None, "gains": [], "changes": changes}
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    text = Tags(page_of(tmp_path)).text
    assert "No plan meets the target." in text
    assert "allow 40 hours instead of 30" in text


def test_links_out_of_the_folder_are_not_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    shutil.copytree(folder / "run", secret)
    (folder / "linked").symlink_to(secret)
    (folder / "run/gantt.png").unlink()
    (folder / "run/gantt.png").symlink_to(secret / "gantt.png")
    found = find_results(folder)
    assert [run.folder for run in found.runs] == [folder / "run"]
    assert steps(found).body == ""


def test_a_pipe_among_the_points_is_refused_and_not_read(folder: Path, tmp_path: Path) -> None:
    import os

    os.mkfifo(folder / "sweep/points/pipe.parquet")
    with pytest.raises(InputError, match="is not a regular file"):
        find_results(folder)


def test_damaged_points_are_named(folder: Path) -> None:
    part = next((folder / "sweep/points").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:200])
    with pytest.raises(InputError, match=r"parquet: is damaged"):
        find_results(folder)


def test_a_folder_of_very_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.report.found.MOST_FILES", 3)
    for place in range(4):
        (tmp_path / f"{place}.txt").touch()
    with pytest.raises(InputError, match="more than 3 files"):
        find_results(tmp_path)


def test_what_lies_deeper_than_four_levels_is_not_looked_for(folder: Path, tmp_path: Path) -> None:
    deep = tmp_path / "a/b/c/d/e"
    shutil.copytree(folder / "run", deep)
    with pytest.raises(InputError, match="holds no results"):
        find_results(tmp_path / "a")


def row(policy: str, workers: int, throughput: float, usd: float | None = None, **more: Any) -> Row:
    step = 1e3 * workers / throughput
    return Row("s", policy, workers, step, throughput, {}, usd, 0.0, 1.0, ("read",), **more)


def test_speed_up_and_scaling_are_ratios_of_the_rows() -> None:
    rows = [row("dbp", 8, 100.0), row("dbp", 16, 150.0), row("serialized", 8, 50.0)]
    first, small, large = related(rows)
    assert (first.row.policy, first.speedup, first.efficiency) == ("serialized", 1.0, None)
    assert (small.speedup, small.efficiency) == (2.0, 1.0)
    assert (large.speedup, large.efficiency) == (None, 0.75)


def test_rows_of_other_jobs_and_other_engines_are_not_held_against_each_other() -> None:
    mine = row("dbp", 8, 100.0, engine="events", job="a")
    others = [
        row("serialized", 8, 50.0, engine="events", job="b"),
        row("serialized", 8, 50.0, engine="vector", job="a"),
        row("dbp", 4, 60.0, engine="events", job="b"),
    ]
    found = next(one for one in related([mine, *others]) if one.row == mine)
    assert (found.speedup, found.efficiency) == (None, None)
    slow, fast = row("serialized", 8, 50.0, job="a"), row("serialized", 8, 80.0, job="b")
    shown = related([row("dbp", 8, 100.0, job="a"), slow, fast])
    assert [one.row.throughput for one in shown] == [80.0, 100.0]
    assert shown[1].speedup == 2.0, "held against the serialized result of its own job"


def test_of_several_results_the_one_with_most_samples_per_second_stands() -> None:
    (kept,) = related([row("dbp", 8, 100.0, at="slow"), row("dbp", 8, 120.0, at="fast")])
    assert kept.row.at == "fast"


def test_the_front_leaves_out_what_costs_more_and_does_less() -> None:
    good, beaten, dear = row("a", 8, 100.0, 1.0), row("b", 8, 90.0, 1.5), row("c", 8, 200.0, 3.0)
    assert front([dear, beaten, good, row("d", 8, 500.0)]) == [good, dear]


def test_parameter_servers_count_as_other_waits() -> None:
    exposed = {"input": 1.0, "other": 2.0, "parameter_server": 3.0}
    assert parts(5.0, exposed)["exposed_other_ms"] == 5.0


def test_names_become_one_short_printable_line() -> None:
    assert short("a\n b\x1b[31m") == "a b\\x1b[31m"
    assert len(short("x" * 999)) == 60
    assert families(["exchange.0", "exchange.1", "read"]) == ("exchange", "read")


def test_a_name_of_any_length_is_cut_and_keeps_no_folder_from_being_shown(
    checkout: Path, tmp_path: Path
) -> None:
    named = load(checkout / "scenarios/quickstart.yaml", [f"name={'long ' * 1000}"])
    save_run(run_scenario(named, "vector"), tmp_path / "run")
    write_report(tmp_path, tmp_path / "page.html", "Long names")
    assert "long long" in (tmp_path / "page.html").read_text()
