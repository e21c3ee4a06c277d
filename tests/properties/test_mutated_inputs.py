"""Broken inputs of every kind but scenarios: each is answered or refused, quickly and within bounds.

The mutations are seeded, so that a failure comes back: its name is the number of the input, and
`Mutants(folder).words(number)` makes it anew.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from judging import LONGEST_S, MOST_BYTES, judged
from mutants import Mutants
from seeds import PLACE, WORD
from tiers import TIER
from warm import warm_commands

GROUPS = 20
INPUTS = {"quick": 200, "gate": 1000, "nightly": 5000}[TIER]
PROCESSES = 60


@pytest.fixture(scope="module")
def mutants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mutants]:
    folder, before = tmp_path_factory.mktemp("mutants"), Path.cwd()
    os.chdir(folder)
    try:
        yield Mutants(folder)
    finally:
        os.chdir(before)


def test_every_seed_is_sound_before_it_is_broken(mutants: Mutants) -> None:
    for seed in mutants.seeds:
        for command in seed.commands:
            answer = judged([word.replace(PLACE, seed.file) for word in command])
            assert (answer.code, answer.faults()) == (0, []), (seed.name, answer.err)


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_broken_input_is_answered_or_refused_within_bounds(mutants: Mutants, group: int) -> None:
    codes = []
    for number in range(group, INPUTS, GROUPS):
        answer = judged(mutants.words(number))
        assert answer.faults() == [], (number, mutants.seeds[number % len(mutants.seeds)].name, answer)
        mutants.restore(number)
        codes.append(answer.code)
    assert 0 in codes and 2 in codes


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with warm_commands(tmp_path_factory.mktemp("warm")) as folder:
        yield folder / "recscale"


@pytest.mark.parametrize("number", range(PROCESSES))
def test_a_process_answers_a_broken_input_as_well(mutants: Mutants, warm: Path, number: int) -> None:
    """As people run it: what Python itself prints, and limits of the system. Those of the gate start warm."""
    broken = 97 * number
    cold = TIER == "nightly" or number % 10 == 0
    words = [*([sys.executable, "-m", "simulator"] if cold else [str(warm)]), *mutants.words(broken)]
    most = 4 * MOST_BYTES  # address space, of which libraries reserve far more than they use
    done = subprocess.run(
        words,
        cwd=mutants.folder,
        capture_output=True,
        text=True,
        timeout=12 * LONGEST_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )
    mutants.restore(broken)
    assert done.returncode in (0, 1, 2), (broken, done)
    assert all(line.startswith("recscale: ") for line in done.stderr.splitlines()), (broken, done.stderr)
    assert "Traceback" not in done.stdout


def test_all_kinds_of_input_are_broken_and_every_word_reaches_a_command(mutants: Mutants) -> None:
    kinds = {seed.kind for seed in mutants.seeds}
    assert len(kinds) >= 16 and 5 * len(mutants.seeds) <= INPUTS
    for number, seed in enumerate(mutants.seeds):
        words, again = mutants.words(number), mutants.words(number)
        assert words == again and (seed.form == WORD or not any(PLACE in word for word in words))
        mutants.restore(number)
