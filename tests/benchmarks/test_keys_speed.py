"""How fast keys are drawn, described and counted, and in how much memory.

Rates are of CPU time in one process; RECSCALE_CRITEO_MB sets the size of the generated log (1000
for the figure that the documentation quotes; 100 by default).
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from simulator.workload.caches import curves_of
from simulator.workload.keys import BoundedZipf, batch_keys
from simulator.workload.traces import SyntheticTable, SyntheticTrace, sampler_of, stream

CRITEO_ROWS = (
    *(1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992),
    *(5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572),
)
SAMPLES = 20_000
MEGABYTES = float(os.environ.get("RECSCALE_CRITEO_MB", "100"))


@pytest.mark.parametrize("exponent", [0.8, 1.05, 1.2])
def test_forty_million_keys_are_drawn_per_second(exponent: float) -> None:
    sampler, draws = sampler_of(BoundedZipf(1e9, exponent)), stream(0, "speed", 0, 0)
    rates = []
    for _ in range(5):
        started = time.process_time()
        sampler.draw(draws, 2_000_000)
        rates.append(2.0 / (time.process_time() - started))
    print(f"exponent {exponent}: {max(rates):.0f} M keys/s")
    assert max(rates) >= 40


def test_two_hundred_tables_on_1536_ranks_are_described_in_fifty_milliseconds() -> None:
    random = np.random.default_rng(1)
    sizes, exponents = np.exp(random.uniform(5, 21, 200)), random.uniform(0.6, 1.2, 200)
    tables = [BoundedZipf(int(n), float(a)) for n, a in zip(sizes, exponents, strict=True)]
    batch_keys(BoundedZipf(1000, 0.5), 100.0, 2)
    took = []
    for _ in range(5):
        started = time.process_time()
        statistics = [batch_keys(table, 8192.0, 1536) for table in tables]
        took.append(1e3 * (time.process_time() - started))
    print(
        f"200 tables x 1,536 ranks: {took[0]:.1f} ms at first, {min(took):.1f} ms when the tables are known"
    )
    assert len(statistics) == 200
    assert took[0] <= 50
    assert min(took) <= 15


def test_exact_miss_curves_of_a_million_lookups_take_seconds() -> None:
    codes = sampler_of(BoundedZipf(100_000, 0.9)).draw(stream(0, "curves", 0, 0), 1_000_000)
    started = time.process_time()
    curves = curves_of("items", codes)
    took = time.process_time() - started
    print(f"LRU, LFU and Belady at {len(curves.slots)} sizes: {took:.1f} s per million lookups")
    assert took < 30


def write_criteo(path: Path, megabytes: float) -> None:
    """Write a log of Criteo's shape, with keys by Zipf laws over Criteo Kaggle's rows."""
    tables = tuple(SyntheticTable(f"C{at}", BoundedZipf(n, 0.984)) for at, n in enumerate(CRITEO_ROWS, 1))
    trace = SyntheticTrace(tables, SAMPLES)
    with path.open("wb") as file:
        for batch in range(1 << 20):
            if file.tell() >= megabytes * 1e6:
                return
            numbers = stream(0, "numbers", 0, batch).integers(0, 5000, (14, SAMPLES)).astype("S4")
            keys = [
                hexadecimal(trace.keys(table.name, 0, batch).ravel(), at) for at, table in enumerate(tables)
            ]
            fields = zip(*(column.tolist() for column in (*numbers, *keys)), strict=True)
            file.write(b"\n".join(map(b"\t".join, fields)) + b"\n")


def hexadecimal(keys: NDArray[np.int64], salt: int) -> NDArray[np.bytes_]:
    """Return eight hexadecimal digits per key, different in each table."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    mixed = (keys * 2_654_435_761 + salt * 40_503) & 0xFFFFFFFF
    halves = mixed[:, None] >> np.arange(28, -1, -4) & 15
    return digits[halves].copy().view("S8").ravel()


# ru_maxrss would do, but Linux hands the peak of the process that started this one on to it
COUNT = """
import re, sys, time
from pathlib import Path
from simulator.workload.keys import summarize
summary = summarize(sys.argv[1], 16384)
peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
print(time.process_time(), peak,
      sum(table.frequencies.distinct for table in summary), len(summary.tables), summary.broken.count)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak of memory in /proc")
def test_a_criteo_log_is_summarised_in_half_a_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    write_criteo(path, MEGABYTES)
    size = path.stat().st_size / 1e6
    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(path)], capture_output=True, text=True, check=True
    )
    path.unlink()
    seconds, memory, distinct, tables, broken = map(float, done.stdout.split())
    print(
        f"{size:.0f} MB, {distinct:,.0f} keys: {size / seconds:.0f} MB/s of CPU time, {memory:.0f} MB at most"
    )
    assert (tables, broken) == (26, 0)
    assert memory <= 500
    assert size / seconds > 5
