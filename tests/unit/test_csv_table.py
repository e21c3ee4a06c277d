"""One reader for all CSV files of measurements: places, limits, and marks of a spreadsheet."""

import os
from pathlib import Path

import pytest

from simulator.calibration.csv_table import Line, number, read_lines
from simulator.errors import InputError, Where


def written(path: Path, content: str | bytes) -> Path:
    file = path / "table.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_a_byte_order_mark_and_lines_of_a_spreadsheet_are_borne_with(tmp_path: Path) -> None:
    (line,) = read_lines(written(tmp_path, "\ufeffname, size \r\n a , 3 ,,\r\n\r\n"), ("name", "size"))
    assert line.fields == {"name": "a", "size": "3"}
    assert (line.count("size"), line.text("other")) == (3, "")


def test_a_line_is_named_by_where_it_starts(tmp_path: Path) -> None:
    file = written(tmp_path, 'name,size\n\n"a\nb",1\nc,2\n')
    assert [line.where.line for line in read_lines(file)] == [3, 5]


def test_cells_that_a_line_lacks_are_empty(tmp_path: Path) -> None:
    (line,) = read_lines(written(tmp_path, "name,size\na\n"))
    assert line.fields == {"name": "a", "size": ""}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("name\na\n", ":1: the table has no column size"),
        ("name,sizes\na,1\n", 'no column size (did you mean "sizes"?)'),
        ("name,size,size\n", ":1: the table has two columns size"),
        ("", ":1: the table has no column name, size"),
        ("name,size\na,1\nb,2,3\n", ":3: has 3 cells, the header 2"),
        ("name,size\na,1\nb,2\nc,3\nd,4\n", "has more than 3 rows"),
        ("name,size\n" + "a" * 140_000 + ",1\n", ":2: is not a CSV file: field larger than"),
        (b"name,size\n\xff\xfe,1\n", "is not a text file in UTF-8"),
        (b"name,size\n" + b"a,1\n" * 50_000, "is larger than 150,000 bytes"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused_in_one_line(
    tmp_path: Path, content: str | bytes, told: str
) -> None:
    with pytest.raises(InputError) as error:
        read_lines(written(tmp_path, content), ("name", "size"), most_rows=3, most_bytes=150_000)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_regular_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for name, told in (("pipe.csv", "not a regular file"), ("none.csv", "cannot be read")):
        with pytest.raises(InputError, match=told):
            read_lines(tmp_path / name)


@pytest.mark.parametrize("text", ["", "many", "nan", "inf", "-1", "0", "1e999"])
def test_numbers_are_positive_and_finite(text: str) -> None:
    line = Line(Where("t.csv", 4), {"size": text})
    with pytest.raises(InputError, match=r"t\.csv:4: size: a positive number is needed"):
        line.number("size")


def test_counts_are_whole_numbers() -> None:
    line = Line(Where("t.csv", 4), {"size": "1.5", "more": "8.0"})
    assert line.count("more") == 8
    with pytest.raises(InputError, match="a whole number is needed"):
        line.count("size")


def test_a_number_may_be_anything_finite() -> None:
    assert [number(text) for text in ("-2", "1e3", "x", "inf")] == [-2.0, 1000.0, None, None]
