"""docs/guides/scenario.md lists every key that a scenario may hold, with its default, and no other.

A heading names the path of a part and the kinds it holds for (none: every kind); the table below it has one
row per key. Here the rows are compared with the fields of the specification that reads scenario files.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from simulator.hardware.catalog import CONFIDENCE
from simulator.hardware.catalog.build import DIMENSIONS
from simulator.policies import catalog
from simulator.scenario.fields import Quantity
from simulator.scenario.scenario import ScenarioSpec
from simulator.units import parse_quantity

CHECKOUT = Path(__file__).resolve().parents[2]
GUIDE = CHECKOUT / "docs" / "guides" / "scenario.md"
HARDWARE = CHECKOUT / "docs" / "guides" / "add_hardware.md"
POLICIES = CHECKOUT / "docs" / "concepts" / "policies.md"
HEADING = re.compile(r"#{2,6} ((?:`[^`]+` ?)+)$")
# parts that are written like another one and refer to its section
SAME_AS = {
    "cluster.servers.host": "cluster.host",
    "cluster.groups.accelerator": "cluster.accelerator",
    "cluster.groups.host": "cluster.host",
    "workload.tables.keys": "workload.keys",
    "policy.inter_batch": "policy",
    "policy.intra_batch": "policy",
    "sharding.default": "sharding",
    "sharding.rules.sharding": "sharding",
    "sharding.tier.below": "sharding.tier",
    "cluster.fabric.inside.trunk": "cluster.fabric.inside.lane",
    "cluster.fabric.inside.memory": "cluster.fabric.inside.lane",
    "cluster.fabric.cores": "cluster.fabric.spines",
}


@dataclass(frozen=True)
class Row:
    """One line of a table: the part and kinds its heading names, and its four cells."""

    path: str
    kinds: tuple[str, ...]
    key: str
    value: str
    default: str


@dataclass(frozen=True)
class Key:
    """One field of the specification, and the kind of part that it belongs to."""

    path: str
    kind: str
    name: str
    field: FieldInfo

    def __str__(self) -> str:
        return f"{self.path} {self.kind} {self.name}"


def rows() -> Iterator[Row]:
    spans: list[str] = []
    for line in GUIDE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = HEADING.match(line)
            spans = re.findall("`([^`]+)`", heading[1]) if heading else []
        elif spans and line.startswith("| `"):
            key, value, default, _ = [cell.strip() for cell in line.strip("|").split("|")]
            yield Row(spans[0], tuple(spans[1:]), key.strip("`"), value, default)


def parts_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the specification classes that a value of this type may be read by."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Annotated, Union, UnionType, tuple):
        for inner in get_args(annotation):
            yield from parts_in(inner)


def kind_of(part: type[BaseModel]) -> str:
    kind = part.model_fields.get("kind")
    values = get_args(kind.annotation) if kind and get_origin(kind.annotation) is Literal else ()
    return str(values[0]) if len(values) == 1 else ""


def keys_of(part: type[BaseModel], path: str) -> Iterator[Key]:
    for name, field in part.model_fields.items():
        yield Key(path or "scenario", kind_of(part), name, field)
        below = f"{path}.{name}".removeprefix(".")
        for inner in parts_in(field.annotation) if below not in SAME_AS else ():
            yield from keys_of(inner, below)


@cache
def keys() -> tuple[Key, ...]:
    found = {str(key): key for key in keys_of(ScenarioSpec, "")}  # alike parts of several kinds count once
    return tuple(found.values())


def documented(key: Key) -> list[Row]:
    return [
        row
        for row in rows()
        if (row.path, row.key) == (key.path, key.name) and (not row.kinds or key.kind in row.kinds)
    ]


def written(default: str, field: FieldInfo) -> Any:
    """Return the default that a cell shows, as the program holds it."""
    text = default.strip("`")
    for mark in field.metadata:
        if isinstance(mark, Quantity):
            return parse_quantity(yaml.safe_load(text), mark.dimension)
    value = None if default == "none" else yaml.safe_load(text)
    return tuple(value) if isinstance(value, list) else value


def right_default(row: Row, field: FieldInfo) -> bool:
    if field.is_required() or row.default == "required":
        return field.is_required() and row.default == "required"
    if isinstance(field.default, BaseModel):
        return bool(row.default)
    return bool(written(row.default, field) == field.default)


@pytest.mark.parametrize("key", keys(), ids=str)
def test_every_key_stands_once_in_the_guide_with_its_default(key: Key) -> None:
    found = documented(key)
    assert len(found) == 1, f"{GUIDE.name} has {len(found)} rows for {key}"
    assert right_default(found[0], key.field), f"{key}: the guide says {found[0].default}"


@pytest.mark.parametrize("key", [k for k in keys() if get_origin(k.field.annotation) is Literal], ids=str)
def test_every_allowed_word_of_a_key_stands_in_the_guide(key: Key) -> None:
    shown = re.findall("`([^`]+)`", documented(key)[0].value)
    assert {str(word) for word in get_args(key.field.annotation)} <= set(shown)


@pytest.mark.parametrize(
    "key", [k for k in keys() if any(isinstance(m, Quantity) for m in k.field.metadata)], ids=str
)
def test_every_example_of_a_quantity_can_be_read(key: Key) -> None:
    dimension = next(mark.dimension for mark in key.field.metadata if isinstance(mark, Quantity))
    (example,) = re.findall("`([^`]+)`", documented(key)[0].value)
    assert parse_quantity(yaml.safe_load(example), dimension) > 0


def test_the_guide_names_no_key_that_does_not_exist() -> None:
    known = {(key.path, key.kind, key.name) for key in keys()}
    for row in rows():
        kinds = row.kinds or {kind for path, kind, _ in known if path == row.path}
        assert kinds, f"{row.path} is no part of a scenario"
        missing = [kind for kind in kinds if (row.path, kind, row.key) not in known]
        assert not missing, f"{row.path}.{row.key} does not exist for {missing}"


def test_every_policy_of_the_catalog_is_explained() -> None:
    text = POLICIES.read_text(encoding="utf-8")
    assert [name for name in catalog.BUILT_IN if f"`{name}`" not in text] == []


def test_every_field_and_every_confidence_of_the_catalog_is_explained() -> None:
    text = HARDWARE.read_text(encoding="utf-8")
    words = [*DIMENSIONS, *CONFIDENCE]
    assert [word for word in words if f"`{word}`" not in text] == []
