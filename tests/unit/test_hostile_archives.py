"""Key logs and questions that are damaged or forged: one line, exit code 2, in bounded memory."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.cli.running import run
from simulator.errors import InputError
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder
from simulator.workload.keys import read_key_log, summarize

MAGIC = b"\x93NUMPY\x01\x00"
OFFSETS = np.arange(21, dtype=np.int64) * 3


def member(header: str, data: bytes = b"") -> bytes:
    text = header.ljust(118).encode()
    return MAGIC + len(text).to_bytes(2, "little") + text + data


def array(values: Any, shape: str | None = None) -> bytes:
    data = np.asarray(values, np.int64)
    shape = shape or f"({len(data)},)"
    return member(f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}", data.tobytes())


def bags(folder: Path, kind: int = zipfile.ZIP_STORED, **arrays: bytes) -> Path:
    with zipfile.ZipFile(folder / "log.npz", "w", kind) as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)
    return folder / "log.npz"


def changed(path: Path, old: bytes, new: bytes) -> Path:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))
    return path


def problem_of(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        summarize(path, 1)
    told = str(caught.value)
    assert told.startswith(f"{path}: ") and told.isprintable()
    return told


def test_an_archive_whose_contents_were_changed_is_told_as_damaged(tmp_path: Path) -> None:
    good = bags(tmp_path, indices=array(range(60)), offsets=array(OFFSETS))
    assert summarize(good, 1).samples == 20
    content = good.read_bytes()
    assert "damaged" in problem_of(changed(good, np.int64(37).tobytes(), np.int64(38).tobytes()))
    second = content.index(b"PK\x03\x04", 4)
    good.write_bytes(content[:second] + b"PK\x03\x09" + content[second + 4 :])
    assert "damaged" in problem_of(good)


@pytest.mark.parametrize(
    "shape",
    ["(-4,)", "(61,)", "(59,)", "(2**62,)", "(" * 100, "[" * 100, "'9'", "(9999999999999,)", "(True,)"],
)
def test_a_header_that_does_not_fit_its_array_is_refused(tmp_path: Path, shape: str) -> None:
    path = bags(tmp_path, indices=array(range(60), shape), offsets=array(OFFSETS))
    assert 'the header of "indices"' in problem_of(path)


def test_every_broken_byte_of_an_archive_is_told_with_the_file(tmp_path: Path) -> None:
    content = bags(tmp_path, indices=array(range(60)), offsets=array(OFFSETS)).read_bytes()
    broken = tmp_path / "broken.npz"
    for place in range(0, len(content), 7):
        for value in (0, 255):
            broken.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
            try:
                summarize(broken, 1)
            except InputError as error:
                assert str(error).startswith(f"{broken}: "), (place, value)


def test_an_encrypted_archive_and_an_unknown_compression_are_refused(tmp_path: Path) -> None:
    bags(tmp_path, indices=array(range(60)), offsets=array(OFFSETS))
    content = bytearray((tmp_path / "log.npz").read_bytes())
    entry = content.index(b"PK\x01\x02")
    for place, value in ((8, 1), (10, 77)):  # the flag of encryption, the method of compression
        forged = bytearray(content)
        forged[entry + place] = value
        (tmp_path / "log.npz").write_bytes(forged)
        assert "is compressed in a way that is not read, or encrypted" in problem_of(tmp_path / "log.npz")


def test_a_sample_of_absurdly_many_keys_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    count = 5_000_000
    path = bags(tmp_path, zipfile.ZIP_DEFLATED, indices=array(np.zeros(count)), offsets=array([0, count]))
    assert path.stat().st_size < 100_000
    assert 'a sample of "keys" has 5,000,000 keys, more than 4,194,304' in problem_of(path)


def test_an_archive_that_unpacks_to_hundreds_of_times_its_size_is_read_in_parts(tmp_path: Path) -> None:
    count, samples = 4_000_000, 20
    ends = np.arange(samples + 1) * (count // samples)
    path = bags(tmp_path, zipfile.ZIP_DEFLATED, indices=array(np.zeros(count)), offsets=array(ends))
    chunks = list(read_key_log(path).chunks())
    assert chunks[-1].end == samples
    assert sum(len(chunk.tables["keys"].codes) for chunk in chunks) == count
    assert max(len(chunk.tables["keys"].codes) for chunk in chunks) <= (1 << 20) + count // samples


def test_a_million_tables_named_by_a_header_are_refused(tmp_path: Path) -> None:
    many = (1 << 20) + 1
    lengths = array(np.zeros(many), f"({many}, 1)")
    path = bags(
        tmp_path, zipfile.ZIP_DEFLATED, indices=array([]), offsets=array(np.zeros(many)), lengths=lengths
    )
    assert "has 1,048,577 tables, more than 1,048,576" in problem_of(path)


def test_an_arrow_file_whose_offsets_point_elsewhere_is_refused(tmp_path: Path) -> None:
    """Arrow itself believes them, and reads memory that is not its own."""
    import pyarrow
    from pyarrow import feather

    words = [f"word {number}" for number in range(500)]
    log = tmp_path / "log.arrow"
    feather.write_feather(pyarrow.table({"a": words}), str(log), compression="uncompressed")
    ends = np.cumsum([0] + [len(word) for word in words]).astype("<i4")
    forged = np.where(np.arange(501) == 250, 2**31 - 1, ends).astype("<i4")
    assert log.read_bytes().count(ends.tobytes()) == 1
    log.write_bytes(log.read_bytes().replace(ends.tobytes(), forged.tobytes()))
    assert "log.arrow: cannot be read as a key log: In column 0: Invalid" in problem_of(log)


def test_a_misshapen_row_in_another_code_page_is_counted_and_prints_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(b"a,b\n1,2\n\xff\xfe,3,4\n\xe9,6\n\xe9,\xc3\xa9\n")
    words = ["-c", "from analysis.cli.running import main; main()", "keys", str(log), "--batch", "1"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60)
    said = [line for line in done.stderr.splitlines() if "% after" not in line]  # a busy machine
    assert (done.returncode, said) == (0, [])
    assert "1 broken lines left out; the first: line 3: expected 2 fields, found 3" in done.stdout
    first, second = summarize(log, 1).tables
    assert (first.frequencies.distinct, second.frequencies.distinct) == (2, 3)


@pytest.mark.parametrize("kind", ["[serialized]", "{a: 1}", "null", "1", "[[[]]]"])
def test_a_policy_kind_that_is_no_text_is_refused_by_plan(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text((shipped_folder() / "quickstart.yaml").read_text())
    (tmp_path / "p.yaml").write_text(
        "scenario: s.yaml\ntarget: {samples: 1e9}\nhardware: [{name: a, workers: [8]}]\n"
        f"policies: [{{kind: {kind}}}]\n"
    )
    assert run(["plan", str(tmp_path / "p.yaml")]) == 2
    assert "p.yaml:4: policies[0]: no policy is called" in capsys.readouterr().err


def on_a_torus(dims: str, link: str = "45 GB/s") -> Scenario:
    fabric = f"{{kind: torus, dims: {dims}, link_bandwidth: {link}, hop_latency: 1 us}}"
    cluster = f"cluster={{accelerator: tpu_v4, per_host: 1, hosts: 1, fabric: {fabric}}}"
    tables = "workload.tables=[{name: a, rows: 1000, dimension: 128, copies: 26}]"
    settings = [cluster, tables, "workload.model.precision=bf16", "run.batches=14", "run.warm_up=6"]
    return load(shipped_folder() / "quickstart.yaml", settings)


@pytest.mark.parametrize("engine", ["events", "vector"])
def test_a_torus_of_one_chip_runs_and_its_links_carry_nothing(engine: str) -> None:
    alike = on_a_torus("[1, 1, 1]"), on_a_torus("[1]"), on_a_torus("[1]", "1 kB/s")
    steps = {run_scenario(one, engine).report.step_ms["mean"] for one in alike}
    assert len(steps) == 1 and steps.pop() > 0
