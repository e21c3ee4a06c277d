"""What every command says about every shipped input, kept, and held against what it says later.

    python tests/kit/recorder.py record DIR        takes some minutes; DIR/records.json
    python tests/kit/recorder.py compare OLD NEW   lists every difference; exit code 1 if there is one

A rebuilding that should change nothing is recorded before and after. JSON is kept as values, and numbers
are the same only if every digit is; Parquet tables are kept as one digest per column; pages, pictures and
traces as a digest. Of broken inputs the exit code and the place in the message are kept.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from judging import Answer, answered, judged
from recorded_commands import Step, steps

RECORDS = "records.json"
SIGN_OF_LIFE = re.compile(r"recscale: .* after \d+ s")  # comes or not, as the machine is busy
PLACE = re.compile(r"recscale: (?P<place>(?:[^\s:]+:)?(?:\d+:)?(?: [\w.\[\]]+:)?)")
LONGEST_TEXT = 20_000  # longer ones are kept as a digest

Record = dict[str, Any]


def record(chosen: Iterable[Step]) -> dict[str, Record]:
    """Run the steps in an empty folder, in order, and return what each said and wrote."""
    found: dict[str, Record] = {}
    with working_folder() as folder:
        for step in chosen:
            name, words = step.name, step.prepare(folder)
            before = snapshot(folder)
            answer = judged(words) if step.broken else answered(words)
            assert name not in found, name
            found[name] = of_broken(answer) if step.broken else of_sound(answer)
            if not step.broken:
                found[name] |= {"words": words, "files": written(folder, before)}
            step.clean(folder)
    return found


@contextmanager
def working_folder() -> Iterator[Path]:
    """Give the commands an empty folder, a terminal of one width, and nothing of whoever runs this."""
    with tempfile.TemporaryDirectory() as name:
        folder, before = Path(name).resolve(), Path.cwd()
        kept = dict(os.environ)
        os.environ.update({"COLUMNS": "100", "MPLBACKEND": "Agg", "NO_COLOR": "1"})
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(kept)


def of_sound(answer: Answer) -> Record:
    """Return what a command said: JSON as values, tables as lines."""
    told = [line for line in answer.err.splitlines() if not SIGN_OF_LIFE.match(line)]
    return {"code": answer.code, "out": kept(answer.out), "err": told}


def of_broken(answer: Answer) -> Record:
    """Return the exit code, and the place that the last line names: file, line, path."""
    told = [line for line in answer.err.splitlines() if not SIGN_OF_LIFE.match(line)]
    place = PLACE.match(told[-1]) if told and answer.code else None
    return {"code": answer.code, "place": place["place"] if place else ""}


def kept(text: str) -> Any:
    """Return JSON as values, short texts as lines, and a digest of long ones."""
    try:
        return json.loads(text)
    except ValueError:
        return text.splitlines() if len(text) <= LONGEST_TEXT else digest(text.encode())


def digest(content: bytes) -> str:
    return f"sha256 {hashlib.sha256(content).hexdigest()}"


def snapshot(folder: Path) -> dict[Path, tuple[int, int]]:
    stats = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in stats.items()}


def written(folder: Path, before: Mapping[Path, tuple[int, int]]) -> dict[str, Any]:
    """Return what new or changed files hold, by name."""
    new = sorted(path for path, stat in snapshot(folder).items() if before.get(path) != stat)
    return {path.relative_to(folder).as_posix(): content_of(path) for path in new}


def content_of(path: Path) -> Any:
    if path.suffix == ".parquet":
        return columns_of(path)
    content = path.read_bytes()
    if path.suffix in (".json", ".yaml", ".csv") and len(content) <= LONGEST_TEXT:
        return kept(content.decode())
    return digest(content)


def columns_of(path: Path) -> dict[str, str]:
    """Return type and digest of each column: bytes of the file differ by versions of Arrow."""
    from pyarrow import parquet

    table = parquet.read_table(path)
    return {
        field.name: f"{field.type} {digest(repr(table.column(field.name).to_pylist()).encode())}"
        for field in table.schema
    }


def differences(was: Any, now: Any, path: str = "") -> list[str]:
    """Return a line for every place in which two records differ, whatever little by."""
    if isinstance(was, dict) and isinstance(now, dict):
        absent = "(absent)"
        keys = [*was, *(key for key in now if key not in was)]
        pairs = [(key, was.get(key, absent), now.get(key, absent)) for key in keys]
        return [line for key, *both in pairs for line in differences(*both, f"{path}.{key}" if path else key)]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = enumerate(zip(was, now, strict=True))
        return [line for at, pair in pairs for line in differences(*pair, f"{path}[{at}]")]
    same = type(was) is type(now) and repr(was) == repr(now)
    return [] if same else [f"{path}: {shortened(was)} became {shortened(now)}"]


def shortened(value: Any) -> str:
    text = repr(value)
    return (
        text if len(text) <= 160 else f"{text[:120]}... ({len(text)} letters, {digest(text.encode())[:16]})"
    )


def read(folder: Path) -> dict[str, Record]:
    found: dict[str, Record] = json.loads((folder / RECORDS).read_text(encoding="utf-8"))
    return found


def main(words: list[str]) -> int:
    """Record, or compare; return the exit code."""
    parser = argparse.ArgumentParser(prog="recorder", description=__doc__.splitlines()[0])
    doing = parser.add_subparsers(dest="doing", required=True)
    recording = doing.add_parser("record", help="run every command and keep what it says")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--only", default="", help="only steps whose name has this in it")
    comparing = doing.add_parser("compare", help="list every difference of two records")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    given = parser.parse_args(words)
    if given.doing == "compare":
        lines = differences(read(given.old), read(given.new))
        print("\n".join(lines) or "no difference")
        return 1 if lines else 0
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    found = record(step for step in steps() if step.needed or given.only in step.name)
    (folder / RECORDS).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{len(found)} records in {folder / RECORDS}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
