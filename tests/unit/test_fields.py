"""The field types of scenarios: what they accept, say, export and write back."""

from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from simulator.scenario import fields

QUANTITIES = {
    fields.Bytes: "64 kB",
    fields.Bandwidth: "25 GB/s",
    fields.Time: "20 us",
    fields.FlopRate: "312 TFLOP/s",
    fields.Frequency: "500 M/s",
    fields.Power: "400 W",
    fields.Energy: "3.6 MJ",
    fields.Price: "30 kUSD",
    fields.MoneyRate: "2.5 USD/h",
    fields.Fraction: "24.7 %",
}


def read(kind: Any, value: object) -> Any:
    return TypeAdapter(kind).validate_python(value)


def message(kind: Any, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        read(kind, value)
    return str(caught.value.errors()[0]["ctx"]["error"])


@pytest.mark.parametrize(("kind", "text"), QUANTITIES.items(), ids=lambda part: str(part)[:12])
def test_a_quantity_dumped_as_json_reads_back_equal(kind: Any, text: str) -> None:
    adapter = TypeAdapter(kind)
    value = adapter.validate_python(text)
    assert adapter.validate_python(adapter.dump_python(value, mode="json")) == value > 0
    assert adapter.dump_python(value) == value


@pytest.mark.parametrize(("kind", "text"), QUANTITIES.items(), ids=lambda part: str(part)[:12])
def test_the_schema_of_a_quantity_is_text_with_an_example(kind: Any, text: str) -> None:
    schema = TypeAdapter(kind).json_schema()
    assert {"type": "string", "examples": [text]}.items() <= schema.get("anyOf", [schema])[-1].items()


@pytest.mark.parametrize("kind", QUANTITIES, ids=lambda kind: kind.__metadata__[0].dimension)
@pytest.mark.parametrize("value", [True, None, [1], {}, "", "nan"])
def test_what_is_no_quantity_is_refused(kind: Any, value: object) -> None:
    assert message(kind, value).isprintable()


def test_the_text_of_a_quantity_error_is_that_of_the_units() -> None:
    assert message(fields.Bandwidth, 25) == 'needs a unit: write "25 GB/s", not 25'


@pytest.mark.parametrize(("value", "count"), [(1, 1), (2e9, 2_000_000_000), (1e15, 10**15)])
def test_a_count_is_a_whole_number_in_any_notation(value: float, count: int) -> None:
    assert (read(fields.Count, value), type(read(fields.Count, value))) == (count, int)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (fields.Count, 0, "must be a whole number from 1 to 1e+15, not 0"),
        (fields.Count, 1.5, "must be a whole number from 1 to 1e+15, not 1.5"),
        (fields.Count, True, "must be a whole number from 1 to 1e+15, not true"),
        (fields.Count, None, "must be a whole number from 1 to 1e+15, not nothing"),
        (fields.Count, [8], "must be a whole number from 1 to 1e+15, not a list"),
        (fields.Count, "many", 'must be a whole number from 1 to 1e+15, not "many"'),
        (fields.Count, "2e9", '"2e9" is text; write 2e9 without quotes'),
        (fields.Count, float("inf"), "must be a whole number from 1 to 1e+15, not inf"),
        (fields.Count, float("nan"), "must be a whole number from 1 to 1e+15, not nan"),
        (fields.Count, 10**400, "must be a whole number from 1 to 1e+15, not a very large number"),
        (fields.CountOrZero, -1, "must be a whole number from 0 to 1e+15, not -1"),
        (fields.PositiveFloat, 0, "must be a number above 0 to 1e+30, not 0"),
        (fields.PositiveFloat, float("inf"), "must be a number above 0 to 1e+30, not inf"),
        (fields.NonNegativeFloat, float("nan"), "must be a number from 0 to 1e+30, not nan"),
    ],
)
def test_a_number_out_of_place_is_refused_in_plain_words(kind: Any, value: object, text: str) -> None:
    assert message(kind, value) == text


def test_plain_numbers_become_floats() -> None:
    assert [type(read(kind, 2)) for kind in (fields.PositiveFloat, fields.NonNegativeFloat)] == [float, float]
    assert read(fields.NonNegativeFloat, 0) == 0.0
    assert read(fields.CountOrZero, 0) == 0


def test_the_schema_of_numbers_holds_their_limits() -> None:
    assert TypeAdapter(fields.Count).json_schema() == {"type": "integer", "minimum": 1, "maximum": 1e15}
    schema = TypeAdapter(fields.PositiveFloat).json_schema()
    assert schema == {"type": "number", "exclusiveMinimum": 0, "maximum": 1e30}


def test_a_model_of_these_fields_exports_its_schema() -> None:
    class Example(BaseModel):
        size: fields.Bytes
        wait: fields.Time | None = None
        fold: fields.Flag = True

    schema = Example.model_json_schema()
    assert schema["properties"]["size"]["examples"] == ["64 kB"]
    assert Example.model_validate({"size": "1 kB"}).model_dump_json() == (
        '{"size":"1000.0 B","wait":null,"fold":true}'
    )


def test_a_flag_is_true_or_false_and_no_word_for_it() -> None:
    with pytest.raises(ValidationError):
        read(fields.Flag, "yes")
    assert read(fields.Flag, False) is False
