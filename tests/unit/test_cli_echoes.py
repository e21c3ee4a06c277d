"""What people typed or named comes back in one short line that no terminal obeys."""

import io
from pathlib import Path

import pytest

from analysis.cli.output import plain, tell
from analysis.cli.running import run
from simulator.errors import InputError
from simulator.results.csv_writing import write_csv
from simulator.scenario.shipped_files import shipped_folder

QUICKSTART = shipped_folder() / "quickstart.yaml"
FORGED = "x\nrecscale: all is well\x1b[2J"


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(words) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told.removeprefix("recscale: ").rstrip("\n")


def test_a_name_with_a_line_feed_begins_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    tell(f"wrote {FORGED}")
    told = capsys.readouterr().err
    assert told == "recscale: wrote x\\nrecscale: all is well\\x1b[2J\n"
    assert plain(FORGED).plain == "x\\nrecscale: all is well\\x1b[2J"


def test_a_scenario_cannot_forge_a_line_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = 'name: "x\\nrecscale: all is well"'
    text = QUICKSTART.read_text(encoding="utf-8").replace("name: quickstart", forged)
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    assert run(["compare", str(tmp_path / "s.yaml"), "--policies", "nestpipe"]) == 0
    told = capsys.readouterr()
    assert not any(line.startswith("recscale: all") for line in (told.out + told.err).splitlines())
    assert "all is well" in told.out


def test_a_csv_holds_no_character_that_a_terminal_obeys() -> None:
    stream = io.StringIO()
    write_csv(["a\x1b"], [{"a\x1b": "red \x1b[31m, bell \x07, two\nlines, caf\u00e9"}], stream)
    assert stream.getvalue() == 'a\\x1b\n"red \\x1b[31m, bell \\x07, two\nlines, caf\u00e9"\n'


def test_endless_words_are_cut_in_messages_and_paths_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert str(InputError(f'no policy is called "{"x" * 500}" (allowed: a)')) == (
        f'no policy is called "{"x" * 76}..." (allowed: a)'
    )
    path = "/a" * 200
    assert path in str(InputError(f"{path}: there is no such file"))
    for words in (["y" * 500], ["run", str(QUICKSTART), "--" + "y" * 500]):
        assert len(said(words, capsys)) < 200


def test_a_missing_file_is_not_likened_to_itself_nor_to_what_shares_its_suffix_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dangling.yaml").symlink_to("nowhere")
    (tmp_path / "oct.yaml").touch()
    dangling = said(["check", str(tmp_path / "dangling.yaml")], capsys)
    assert dangling == f"{tmp_path / 'dangling.yaml'}: is a link to a file that is not there"
    assert said(["check", str(tmp_path / "nope.yaml")], capsys).endswith("nope.yaml: there is no such file")
    assert 'did you mean "oct.yaml"' in said(["check", str(tmp_path / "octt.yaml")], capsys)


def test_a_file_where_a_folder_is_needed_and_a_number_that_is_none_are_said_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    told = said(["run", str(QUICKSTART), "--out", str(tmp_path / "file")], capsys)
    assert told == f"{tmp_path / 'file'}: is a file; a folder is needed"
    told = said(["keys", "x", "--batch", "1e30"], capsys)
    assert told.startswith("invalid value for '--batch': a whole number is needed, in digits")


def test_a_measurement_that_is_not_there_is_missed_before_what_is_not_named_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = said(["check", str(QUICKSTART), "--set", "cluster.measured={file: nope.json}"], capsys)
    assert told.endswith("nope.json: there is no such file")
