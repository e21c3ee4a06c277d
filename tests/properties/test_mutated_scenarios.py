"""Thousands of broken scenario files: each is answered with an exit code and one line, never a traceback.

The mutations are seeded, so that a failure comes back: its name tells which file and which number.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
from judging import judged
from mutations import Rand, break_text, change_yaml
from tiers import TIER

from analysis.cli.running import run
from simulator.scenario.shipped_files import scenarios_in, shipped_folder

MUTANTS, GROUPS = {"quick": 200, "gate": 1000, "nightly": 5000}[TIER], 10
SMALL_RUN = "run: {batches: 14, warm_up: 6, seed: 7}"
COMMANDS = [
    *(["run", "--engine", "vector", "--format", "json"], ["run", "--engine", "events", "--format", "json"]),
    *(["run", "--engine", "vector", "--format", "json"], ["check"], ["check"]),
    *(["run", "--engine", "events", "--format", "json"], ["check"]),
    *(["run", "--engine", "vector", "--format", "json"], ["check"]),
    ["explain", "--format", "json"],  # runs a scenario for each of its parameters
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the shipped scenarios, so that mutants find the data files beside them."""
    copied = tmp_path_factory.mktemp("mutants") / "scenarios"
    shutil.copytree(shipped_folder(), copied)
    return copied


def with_small_run(text: str) -> str:
    """Shorten the run: what is tested is how files are read, not how long they run."""
    text = re.sub(r"lookahead: \d+", "lookahead: 4", text)  # it asks for a warm-up as deep
    return re.sub(r"^run:.*(\n[ ]+.*)*", SMALL_RUN, text, flags=re.MULTILINE)


def mutant(path: Path, number: int) -> str:
    """Break what the file says, or how it is written, or both."""
    rand = Rand(number)
    text = with_small_run(path.read_text(encoding="utf-8"))
    changes = rand.choice([1, 1, 1, 2, 4])
    if rand.random() < 0.4:
        text, changes = change_yaml(text, rand), rand.choice([0, 0, 0, 1])
    return break_text(text, rand, changes)


def test_the_shortened_scenarios_run_before_anything_is_broken(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in scenarios_in(folder):
        path.with_name("whole.yml").write_text(
            with_small_run(path.read_text(encoding="utf-8")), encoding="utf-8"
        )
        assert run(["run", str(path.with_name("whole.yml")), "--format", "json"]) == 0, path
        assert json.loads(capsys.readouterr().out)["batches"] == 14


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_mutated_scenario_is_run_or_refused_in_one_line(folder: Path, group: int) -> None:
    paths = scenarios_in(folder)
    codes = set()
    for number in range(group, MUTANTS, GROUPS):
        path = paths[number % len(paths)]
        target = path.with_name("mutant.yml")
        target.write_text(mutant(path, number), encoding="utf-8", errors="surrogatepass")
        codes.add(answer_of(target, COMMANDS[number // GROUPS % len(COMMANDS)]))
    assert 0 in codes and 2 in codes


def answer_of(path: Path, words: list[str]) -> int:
    """Run one command on one mutant within limits, check what it says, and return its exit code."""
    name = (words[0], path.read_bytes())
    answer = judged([words[0], str(path), *words[1:]])
    assert answer.faults() == [], (name, answer)
    if answer.code == 0:
        assert words[0] == "check" or json.loads(answer.out)["lower_bound_ms"] >= 0, name
    else:
        told = re.sub(r"recscale: [^\n]*% after \d+ s[^\n]*\n", "", answer.err)  # signs of life
        assert answer.out == "", name
        assert re.fullmatch(r"recscale: [^\n]+\n", told), (name, told)
    return answer.code
