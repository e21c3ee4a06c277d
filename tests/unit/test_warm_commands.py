"""Commands forked off a warm process behave like those that are started."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from warm import warm_commands


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with warm_commands(tmp_path_factory.mktemp("warm")) as folder:
        yield folder


def both(commands: Path, folder: Path, text: str) -> list[tuple[int, str, str]]:
    """Run a shell script with warm and with cold commands; return code, output and errors of each."""
    answers = []
    for first in (commands, Path(sys.executable).parent):
        environ = {**os.environ, "PATH": f"{first}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}
        done = subprocess.run(
            ["bash", "-c", text], cwd=folder, env=environ, capture_output=True, text=True, timeout=60
        )
        answers.append((done.returncode, done.stdout, done.stderr))
    return answers


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "recscale --version",
        "recscale run nowhere.yaml; echo $?",
        "recscale catalog list 2>&1 | head -3",
        "echo 'print(6 * 7); raise SystemExit(3)' | python -",
        "python -c 'import sys; print(sys.argv, __name__)' a b",
        "echo 'x = 1' > given.py; echo 'import given; print(given.x)' > one.py; PYTHONPATH=. python one.py",
        'A=b python -c \'import os; print(os.environ["A"], os.getcwd() == os.environ["PWD"])\'',
        "python -c 'import os, signal; os.kill(os.getpid(), signal.SIGTERM)'; echo $?",
        "python -c 'raise SystemExit(\"no\")'",
    ],
)
def test_a_warm_command_answers_as_a_cold_one(commands: Path, tmp_path: Path, text: str) -> None:
    warm, cold = both(commands, tmp_path, text)
    assert warm == cold
