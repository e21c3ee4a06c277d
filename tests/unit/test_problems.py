"""Validation errors in plain words: the place is right and pydantic cannot be heard."""

import re
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from simulator.errors import InputError
from simulator.scenario.fields import Count, Flag, Fraction, Time
from simulator.scenario.problems import to_input_error
from simulator.scenario.source import apply_overrides, parse_document


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Hstu(Strict):
    kind: Literal["hstu"]
    layers: Count
    dimension: Annotated[Count, Field(gt=3)] = 8


class Mlp(Strict):
    kind: Literal["mlp"]
    widths: list[Count]


class Table(Strict):
    name: str
    rows: Count
    dtype: Literal["fp32", "bf16"] = "fp32"


class Nested(Strict):
    kind: Literal["nested"]
    inner: "Annotated[Serial | Nested, Field(discriminator='kind')]"


class Serial(Strict):
    kind: Literal["serial"]
    hstu: Count = 1  # named like a tag of another union on purpose


class Chip(Strict):
    name: str


def from_catalog(value: object) -> object:
    if value == "wrong":
        raise ValueError('there is no accelerator "wrong"')
    return {"name": value} if isinstance(value, str) else value


class Scenario(Strict):
    model: Annotated[Hstu | Mlp, Field(discriminator="kind")] = Hstu(kind="hstu", layers=1)
    tables: list[Table] = []
    pair: tuple[Count, str] = (1, "a")
    by_name: dict[str, Table] = {}
    policy: Annotated[Serial | Nested, Field(discriminator="kind")] | None = None
    policies: Annotated[
        list[Annotated[Serial | Nested, Field(discriminator="kind")]], Field(max_length=2)
    ] = []
    chip: Annotated[Chip, BeforeValidator(from_catalog)] | None = None
    chip_or_name: str | Chip = "a"
    wait: Time | Literal["auto"] = 0.0
    size: int | Literal["auto"] = "auto"
    share: Fraction = 0.5
    fold: Flag = True
    title: Annotated[str, Field(max_length=5)] = ""

    @model_validator(mode="after")
    def agree(self) -> "Scenario":
        if self.title == "bad":
            raise ValueError("the title cannot be bad")
        return self


def problem(text: str, *overrides: str) -> str:
    document = apply_overrides(parse_document(text, "x.yaml"), overrides)
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate(document.data)
    error = to_input_error(caught.value, document, Scenario)
    assert isinstance(error, InputError)
    return str(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "title: a\nmodel:\n  kind: hstu\n  layerz: 3",
            'x.yaml:4: model.layerz: unknown key "layerz" (did you mean "layers"?) (and 1 more problem)',
        ),
        ("modle: {}", 'x.yaml:1: modle: unknown key "modle" (did you mean "model"?)'),
        (
            "model: {kind: mlp, widths: [1], layers: 3}",
            'x.yaml:1: model.layers: unknown key "layers" (allowed: kind, widths)',
        ),
        ("title: a\ntables:\n- name: x", 'x.yaml:3: tables[0]: missing key "rows"'),
        ("by_name:\n  b: {name: x}", 'x.yaml:2: by_name.b: missing key "rows"'),
        (
            "model:\n  kind: hst\n  layers: 1",
            'x.yaml:2: model.kind: unknown kind "hst" (did you mean "hstu"?) (allowed: hstu, mlp)',
        ),
        ("model: {kind: q}", 'x.yaml:1: model.kind: unknown kind "q" (allowed: hstu, mlp)'),
        ("model: {kind: [1]}", "x.yaml:1: model.kind: unknown kind a list (allowed: hstu, mlp)"),
        ("model: {layers: 1}", 'x.yaml:1: model: missing key "kind" (allowed: hstu, mlp)'),
        ("policies: [{}]", 'x.yaml:1: policies[0]: missing key "kind" (allowed: nested, serial)'),
        ("model: hstu", 'x.yaml:1: model: must be a mapping, not "hstu"'),
        ("model:", "x.yaml:1: model: must be a mapping, not nothing"),
        (
            "model: {kind: hstu, layers: x}",
            'x.yaml:1: model.layers: must be a whole number from 1 to 1e+15, not "x"',
        ),
        ("model: {kind: hstu, layers: 1, dimension: 2}", "x.yaml:1: model.dimension: must be above 3, not 2"),
        (
            "policy:\n  kind: nested\n  inner:\n    kind: nested\n    inner: {kind: serial, hstu: 0}",
            "x.yaml:5: policy.inner.inner.hstu: must be a whole number from 1 to 1e+15, not 0",
        ),
        (
            "policies:\n- kind: serial\n  hstu: 0",
            "x.yaml:3: policies[0].hstu: must be a whole number from 1 to 1e+15, not 0",
        ),
        (
            "policies: [{kind: serial}, {kind: serial}, {kind: serial}]",
            "x.yaml:1: policies: must be a list of at most 2, not a list of 3",
        ),
        ("tables: {}", "x.yaml:1: tables: must be a list, not a mapping"),
        ("tables: [5]", "x.yaml:1: tables[0]: must be a mapping, not 5"),
        ("tables: [{name: 5, rows: 1}]", "x.yaml:1: tables[0].name: must be text, not 5"),
        (
            "tables: [{name: a, rows: 1, dtype: fp23}]",
            'x.yaml:1: tables[0].dtype: must be fp32 or bf16, not "fp23"',
        ),
        ("pair: [1, 2]", "x.yaml:1: pair[1]: must be text, not 2"),
        ("pair: [1]", "x.yaml:1: pair: needs more than 1 items"),
        ("share: 25 %%", 'x.yaml:1: share: unknown unit "%%"; did you mean "%"?'),
        ("wait: 5", 'x.yaml:1: wait: needs a unit: write "5 us", not 5, or auto'),
        ("size: x", 'x.yaml:1: size: must be a whole number or auto, not "x"'),
        ("size: 1.5", "x.yaml:1: size: must be a whole number or auto, not 1.5"),
        ("fold: yes", 'x.yaml:1: fold: must be true or false, not "yes"'),
        ("title: abcdefg", 'x.yaml:1: title: must be text of at most 5 characters, not "abcdefg"'),
        ("title: bad", "x.yaml:1: the title cannot be bad"),
        ("chip: wrong", 'x.yaml:1: chip: there is no accelerator "wrong"'),
        (
            "chip: {nam: a}",
            'x.yaml:1: chip.nam: unknown key "nam" (did you mean "name"?) (and 1 more problem)',
        ),
        ("chip_or_name: {name: 5}", "x.yaml:1: chip_or_name.name: must be text, not 5"),
        ("chip_or_name: 5", "x.yaml:1: chip_or_name: must be text or a mapping, not 5"),
        (
            "share: 2\nfold: 1\nsize: x\ntitle: 1",
            "x.yaml:1: share: 2 is out of range: a fraction lies between 0 and 1 (and 3 more problems)",
        ),
    ],
)
def test_a_problem_is_one_plain_line_with_its_place(text: str, message: str) -> None:
    assert problem(text) == message


def test_a_problem_in_an_override_names_the_override() -> None:
    message = problem("model: {kind: hstu, layers: 1}", "model.layerz=2", "run.x=1")
    assert (
        message == '--set: model.layerz: unknown key "layerz" (did you mean "layers"?) (and 1 more problem)'
    )


def test_a_problem_beside_an_override_names_the_file() -> None:
    assert (
        problem("title: a\nmodel: {kind: hstu}", "model.dimension=9")
        == 'x.yaml:2: model: missing key "layers"'
    )


def test_thousands_of_problems_are_counted_and_one_is_told() -> None:
    message = problem("tables: [" + "{name: 5}, " * 3000 + "]")
    assert message == "x.yaml:1: tables[0].name: must be text, not 5 (and 5999 more problems)"


VALUES: list[Any] = [
    "{}",
    "[]",
    "5",
    "x",
    "null",
    "true",
    "1e400",
    "[{}]",
    "{kind: 5}",
    "{kind: serial, x: 1}",
    "[[1]]",
]


@pytest.mark.parametrize("field", sorted(Scenario.model_fields))
@pytest.mark.parametrize("value", VALUES)
def test_no_wording_or_class_name_of_the_library_comes_through(field: str, value: str) -> None:
    document = parse_document(f"{field}: {value}", "x.yaml")
    try:
        Scenario.model_validate(document.data)
    except ValidationError as error:
        message = str(to_input_error(error, document, Scenario))
        assert message.isprintable()
        assert re.match(rf"x\.yaml:1: {field}(\W|$)", message)
        words = (
            r"Input should|validator|pydantic|Hstu|Mlp|Table|Serial\b|Nested\b|tagged|literal|dict|instance"
        )
        assert not re.search(words, message)
    else:
        assert Scenario.model_validate(document.data)
