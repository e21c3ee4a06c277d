"""What pydantic finds wrong with a scenario, said in plain words with file, line and dotted path."""

from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, RootModel, ValidationError

from simulator.errors import InputError, did_you_mean, printable
from simulator.scenario.document import Document, KeyPath
from simulator.units import shown

_WANTED = {
    "a whole number": "int_type int_parsing int_parsing_size int_from_float",
    "a number": "float_type float_parsing",
    "a finite number": "finite_number",
    "text": "string_type string_sub_type",
    "true or false": "bool_type bool_parsing",
    "a list": "list_type tuple_type set_type frozen_set_type iterable_type",
    "a mapping": "dict_type mapping_type model_type model_attributes_type dataclass_type",
    "nothing": "none_required",
    "above {gt}": "greater_than",
    "at least {ge}": "greater_than_equal",
    "below {lt}": "less_than",
    "at most {le}": "less_than_equal",
    "a multiple of {multiple_of}": "multiple_of",
    "{expected}": "literal_error enum",
    "a list of at least {min_length}": "too_short",
    "a list of at most {max_length}": "too_long",
    "text of at least {min_length} characters": "string_too_short",
    "text of at most {max_length} characters": "string_too_long",
    "text of another form": "string_pattern_mismatch",
}
_WORDS = {kind: words for words, kinds in _WANTED.items() for kind in kinds.split()}
_OWN_TEXT = ("value_error", "assertion_error")


def to_input_error(error: ValidationError, document: Document, model: type[BaseModel]) -> InputError:
    """Return the first problem of `error`, in the order of the file, as one line for the user.

    `model` is what `document.data` was validated as: its fields tell keys from pydantic's own
    labels in a location, and supply the names for "did you mean". Unknown keys and what was
    overridden go first: the one is often the misspelling of a key that is then missing, the other
    is what the user has just typed.
    """
    problems = _grouped(error, document, model)
    first = min(problems, key=lambda one: one.order(document))
    count = len(problems) - 1
    more = f" (and {count} more problem{'s' if count > 1 else ''})" if count else ""
    return InputError(first.text() + more, document.where(first.place()))


class _Problem:
    """The errors at one path; several when no member of a union fits."""

    def __init__(self, path: KeyPath, model: type[BaseModel], data: Any) -> None:
        self.path, self.model, self.data = path, model, data
        self.errors: list[Any] = []

    @property
    def kind(self) -> str:
        """What is told: of a name-or-mapping that is a mapping, what the mapping lacks."""
        kinds = [str(error["type"]) for error in self.errors]
        return next((kind for kind in kinds if kind.startswith("union_tag")), kinds[0])

    @property
    def error(self) -> Any:
        """The error that `kind` was taken from."""
        return next(error for error in self.errors if error["type"] == self.kind)

    def order(self, document: Document) -> tuple[bool, int]:
        return self.kind != "extra_forbidden", document.where(self.place()).line or 0

    def place(self) -> KeyPath:
        """Return the path to point at: a missing key has no place of its own, a bad kind has one."""
        if self.kind == "missing":
            return self.path[:-1]
        return (*self.path, _discriminator(self.error)) if self.kind == "union_tag_invalid" else self.path

    def text(self) -> str:
        special = {
            "missing": self._missing,
            "extra_forbidden": self._unknown_key,
            "union_tag_invalid": self._unknown_kind,
            "union_tag_not_found": self._no_kind,
        }
        return special.get(self.kind, self._wrong_value)()

    def _missing(self) -> str:
        key = self.path[-1]
        return f"missing key {shown(key)}" if isinstance(key, str) else f"needs more than {key} items"

    def _unknown_key(self) -> str:
        _, members = _walk(self.error["loc"][:-1], self.model, self.data)
        allowed = {name for member in members for name in _fields(member)}
        key = str(self.path[-1])
        return f"unknown key {shown(key)}{did_you_mean(key, allowed)}"

    def _unknown_kind(self) -> str:
        name, tags = _discriminator(self.error), self.error["ctx"]["expected_tags"].replace("'", "")
        value = _at(self.error["input"], (name,))
        near = did_you_mean(str(value)[:100], tags.split(", "))
        allowed = "" if "allowed" in near else f" (allowed: {tags})"
        return f"unknown {name} {shown(value)}{near}{allowed}"

    def _no_kind(self) -> str:
        _, members = _walk(self.error["loc"], self.model, self.data)
        kinds = sorted(kind for member in members for kind in _kinds(member))
        return f"missing key {shown(_discriminator(self.error))} (allowed: {', '.join(kinds)})"

    def _wrong_value(self) -> str:
        own = [error for error in self.errors if error["type"] in _OWN_TEXT]
        wanted = dict.fromkeys(_wanted(error) for error in self.errors if error not in own)
        if own:  # the text of our own validators passes as it is
            text = printable(str(own[0]["ctx"]["error"]))
            return text + "".join(f", or {words}" for words in wanted)
        length = self.error.get("ctx", {}).get("actual_length")
        value = shown(self.error["input"]) + (f" of {length}" if length is not None else "")
        if not all(wanted):
            return f"{value} cannot be used here"
        return f"must be {' or '.join(wanted)}, not {value}"


def _grouped(error: ValidationError, document: Document, model: type[BaseModel]) -> list[_Problem]:
    """Gather errors by path, without those of union members that the value was not meant for."""
    found: dict[KeyPath, _Problem] = {}
    for item in error.errors(include_url=False):
        path = _path(item, model, document.data)
        found.setdefault(path, _Problem(path, model, document.data)).errors.append(item)
    deeper = {path[:length] for path in found for length in range(len(path))}
    kept = [one for path, one in found.items() if path not in deeper or one.kind not in _WORDS]
    return kept or list(found.values())


def _path(error: Any, model: type[BaseModel], data: Any) -> KeyPath:
    loc = error["loc"]
    if error["type"] in ("missing", "extra_forbidden"):  # these end in a key, whatever the data holds
        return (*_walk(loc[:-1], model, data)[0], loc[-1])
    return _walk(loc, model, data)[0]


def _wanted(error: Any) -> str:
    words = _WORDS.get(error["type"], "")
    context = {name: str(value).replace("'", "") for name, value in error.get("ctx", {}).items()}
    return words.format_map(context)


def _discriminator(error: Any) -> str:
    return str(error["ctx"]["discriminator"]).strip("'")


def _walk(loc: Iterable[str | int], model: type[BaseModel], data: Any) -> tuple[KeyPath, tuple[Any, ...]]:
    """Follow a pydantic location through types and data; return its true path and the types there.

    A step that is neither a field, an item nor a key in the data is a label that pydantic put in
    (the tag or class of a union member); it only narrows the types down.
    """
    path: KeyPath = ()
    members: tuple[Any, ...] = (model,)
    for step in loc:
        chosen = tuple(member for member in members if step in _labels(member))
        child = _child(members, step)
        if chosen and (len(members) > 1 or child is None):
            members = chosen[:1]
        elif child is not None or _has(data, step):
            path, members, data = (*path, step), child or (), _at(data, (step,))
    return path, members


def _child(members: tuple[Any, ...], step: str | int) -> tuple[Any, ...] | None:
    """Return the types one step down, or None where no member has such a field or item."""
    for member in members:
        arguments = get_args(member)
        if step in _fields(member):
            return _members(_fields(member)[str(step)])
        if isinstance(step, int) and get_origin(member) in (list, tuple, set, frozenset):
            items = [argument for argument in arguments if argument is not ...]
            return _members(items[min(step, len(items) - 1)])
        if isinstance(step, str) and get_origin(member) is dict:
            return _members(arguments[1])
    return None


def _members(annotation: Any) -> tuple[Any, ...]:
    """Take an annotation apart into the types a value may have, `None` left out."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _members(arguments[0])
    if origin in (Union, UnionType):
        return tuple(member for argument in arguments for member in _members(argument))
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        return _members(annotation.model_fields["root"].annotation)
    return () if annotation is NoneType else (annotation,)


def _fields(member: Any) -> dict[str, Any]:
    """Return the annotations of a model's fields under the names that people write."""
    if not (isinstance(member, type) and issubclass(member, BaseModel)):
        return {}
    return {field.alias or name: field.annotation for name, field in member.model_fields.items()}


def _kinds(member: Any) -> tuple[str, ...]:
    kind = _fields(member).get("kind")
    return get_args(kind) if get_origin(kind) is Literal else ()


def _labels(member: Any) -> tuple[str, ...]:
    return (*_kinds(member), getattr(member, "__name__", ""))


def _has(data: Any, step: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(step, int) and step < len(data)
    return isinstance(data, dict) and step in data


def _at(data: Any, path: KeyPath) -> Any:
    for step in path:
        data = data[step] if _has(data, step) else None
    return data
