"""Quantities written with units: what is read, what is refused, and with which words."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import printable
from simulator.units import (
    DIMENSIONS,
    format_bandwidth,
    format_bytes,
    format_rate,
    format_time,
    parse_quantity,
    shown,
    spellings,
)


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("25 GB/s", "bandwidth", 25e9),
        ("25GB/s", "bandwidth", 25e9),
        (" 25 GB / s ", "bandwidth", 25e9),
        ("200 Gb/s", "bandwidth", 25e9),
        ("200 Gbit/s", "bandwidth", 25e9),
        ("1 GiB/s", "bandwidth", 2.0**30),
        ("1.6 TB/s", "bandwidth", 1.6e12),
        ("80 GiB", "bytes", 80 * 2.0**30),
        ("64 kB", "bytes", 64e3),
        ("0 B", "bytes", 0.0),
        ("1_000 B", "bytes", 1e3),
        ("20 us", "time", 20e-6),
        ("20 \u00b5s", "time", 20e-6),  # the micro sign
        ("20 \u03bcs", "time", 20e-6),  # the Greek letter
        ("1.5 h", "time", 5400.0),
        ("2 min", "time", 120.0),
        ("1 day", "time", 86400.0),
        ("312 TFLOP/s", "rate", 312e12),
        ("312 TFLOPS", "rate", 312e12),
        ("0.5 PFLOP/s", "rate", 5e14),
        ("400 TOP/s", "rate", 4e14),
        ("500 M/s", "frequency", 5e8),
        ("1.4 GHz", "frequency", 1.4e9),
        ("310 W", "power", 310.0),
        ("1.2 MW", "power", 1.2e6),
        ("1 kWh", "energy", 3.6e6),
        ("3.6 USD/h", "money", 1e-3),
        ("31536 USD/year", "money", 1e-3),
        ("30 kUSD", "price", 30e3),
        ("24.7 %", "fraction", 0.247),
        (0.247, "fraction", 0.247),
        (1, "fraction", 1.0),
        ("1e3 ms", "time", 1.0),
        (".5 s", "time", 0.5),
    ],
)
def test_a_quantity_is_read_to_the_nearest_float_in_si(text: object, dimension: str, value: float) -> None:
    assert parse_quantity(text, dimension) == value


@pytest.mark.parametrize(
    ("text", "dimension", "message"),
    [
        (25, "bandwidth", 'needs a unit: write "25 GB/s", not 25'),
        ("25", "bandwidth", 'needs a unit: write "25 GB/s", not 25'),
        (2.5, "time", 'needs a unit: write "2.5 us", not 2.5'),
        (25e9, "bandwidth", 'needs a unit, such as "25 GB/s"'),
        (0, "bytes", 'needs a unit, such as "64 kB"'),
        ("25 ms", "bandwidth", '"25 ms" is a time; a bandwidth is needed, such as "25 GB/s"'),
        ("25 GB", "bandwidth", '"25 GB" is an amount of data; a bandwidth is needed, such as "25 GB/s"'),
        ("200 Gbps", "bandwidth", 'unknown unit "Gbps"; did you mean "GB/s" or "Gb/s"?'),
        ("25 GBps", "bandwidth", 'unknown unit "GBps"; did you mean "GB/s" or "Gb/s"?'),
        ("64 KB", "bytes", 'unknown unit "KB"; did you mean "kB" or "kb"?'),
        ("5 Ms", "time", 'unknown unit "Ms"; did you mean "ms"?'),
        ("5 fortnight", "time", 'unknown unit "fortnight"; a time is written like "20 us"'),
        ("5 hour", "time", 'unknown unit "hour"; did you mean "h"?'),
        ("3 d", "time", 'unknown unit "d"; did you mean "day"?'),
        ("2 USD/hr", "money", 'unknown unit "USD/hr"; did you mean "USD/h"?'),
        ("-1 GB/s", "bandwidth", '"-1 GB/s" is negative; a bandwidth cannot be'),
        ("-0.1", "fraction", "-0.1 is negative; a fraction cannot be"),
        ("0 GB/s", "bandwidth", '"0 GB/s" is zero; a bandwidth cannot be'),
        ("120 %", "fraction", '"120 %" is out of range: a fraction lies between 0 and 1'),
        (float("nan"), "fraction", "nan is out of range: a fraction lies between 0 and 1"),
        (True, "fraction", 'true is not a fraction; write it like "24.7 %"'),
        (None, "time", 'nothing is not a time; write it like "20 us"'),
        (["25 GB/s"], "bandwidth", 'a list is not a bandwidth; write it like "25 GB/s"'),
        ({}, "bandwidth", 'a mapping is not a bandwidth; write it like "25 GB/s"'),
        ("nan GB/s", "bandwidth", '"nan GB/s" is not a number with a unit; write it like "25 GB/s"'),
    ],
)
def test_a_wrong_quantity_is_refused_with_what_to_write(text: object, dimension: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_quantity(text, dimension)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "2**99999 GB/s",
        "GB/s * 1e999",
        "__import__('os') GB/s",
        "1e999 GB/s",
        "1e999999999 GB/s",
        "1e-300 GB/s",
        "inf GB/s",
        "9" * 100_000,
        "9" * 60 + " B/s",
        "1 " + "GB/" * 1000,
        "25 GB/s GB/s",
        "1,000 GB/s",
        "٢٥ GB/s",
        "",
        "\n",
        "\ud800 GB/s",
        10**5000,
    ],
    ids=lambda text: type(text).__name__,
)
def test_hostile_text_is_refused_in_one_printable_line(text: object) -> None:
    with pytest.raises(ValueError) as caught:
        parse_quantity(text, "bandwidth")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_a_time_too_small_to_matter_is_refused_rather_than_read_as_zero() -> None:
    with pytest.raises(ValueError, match="out of range"):
        parse_quantity("1e-400 s", "time")


@given(st.text(max_size=30), st.sampled_from(sorted(DIMENSIONS)))
def test_any_text_gives_a_number_in_range_or_a_value_error(text: str, dimension: str) -> None:
    try:
        value = parse_quantity(text, dimension)
    except ValueError as error:
        assert str(error).isprintable()
    else:
        assert 0 <= value <= DIMENSIONS[dimension].most


@pytest.mark.parametrize("dimension", sorted(DIMENSIONS))
def test_each_spelling_is_convertible_and_belongs_to_one_dimension(dimension: str) -> None:
    for unit in spellings(dimension):
        assert [name for name in DIMENSIONS if unit in spellings(name)] == [dimension]
        assert any(_fits(f"{number} {unit}", dimension) for number in ("1e-9", "1", "1e9"))


def _fits(text: str, dimension: str) -> bool:
    try:
        return parse_quantity(text, dimension) > 0
    except ValueError:
        return False


@pytest.mark.parametrize("dimension", sorted(DIMENSIONS))
def test_the_example_of_each_dimension_is_valid(dimension: str) -> None:
    assert parse_quantity(DIMENSIONS[dimension].example, dimension) > 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.896, "1.896 s"),
        (0.02, "20 ms"),
        (20e-6, "20 us"),
        (999.96e-6, "1 ms"),
        (0.99999, "1 s"),
        (59.9999, "1 min"),
        (12345.0, "3.429 h"),
        (3 * 86400.0, "3 day"),
        (0.0, "0 s"),
        (-0.5, "-500 ms"),
        (float("inf"), "inf s"),
    ],
)
def test_a_time_is_written_with_the_right_prefix(seconds: float, text: str) -> None:
    assert format_time(seconds) == text


def test_amounts_and_rates_are_written_with_the_right_prefix() -> None:
    assert format_bytes(80 * 2.0**30) == "85.9 GB"
    assert format_bytes(512) == "512 B"
    assert format_bandwidth(25e9) == "25 GB/s"
    assert format_rate(312e12) == "312 TFLOP/s"
    assert format_rate(999.99e12) == "1 PFLOP/s"


@given(st.floats(min_value=1e-9, max_value=1e8))
def test_a_written_time_reads_back_to_four_digits(seconds: float) -> None:
    assert parse_quantity(format_time(seconds), "time") == pytest.approx(seconds, rel=6e-4)


@given(st.floats(min_value=1.0, max_value=9e17))
def test_a_written_bandwidth_reads_back_to_four_digits(value: float) -> None:
    assert parse_quantity(format_bandwidth(value), "bandwidth") == pytest.approx(value, rel=6e-4)


def test_values_are_shown_short_and_on_one_line() -> None:
    assert shown("a\nb") == '"a\\nb"'
    assert len(shown("x" * 1000)) == 42
    assert shown(10**5000) == "a very large number"
    assert printable("\x1b[31m\ud800") == "\\x1b[31m\\ud800"


def test_pint_is_imported_by_the_first_conversion_only() -> None:
    script = (
        "import sys\nfrom simulator.units import parse_quantity\nassert 'pint' not in sys.modules\n"
        "parse_quantity('1 s', 'time')\nassert 'pint' in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
