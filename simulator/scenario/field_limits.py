"""The least and the most that a value at a path of the file may be: what the marks of its field say."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from simulator.scenario.fields import Number, Quantity
from simulator.units import DIMENSIONS

ANYTHING = (0.0, float("inf"))


def limits_at(part: BaseModel, steps: Sequence[str | int]) -> tuple[float, float]:
    """Return the least and the most of the number at `steps`, in base units.

    Zero and infinity stand where nothing is said. Where a field takes numbers of several kinds, the widest
    limits of all are returned.
    """
    marks: list[Number | Quantity] = []
    here: Any = part
    for step in steps:
        if isinstance(here, BaseModel):
            field = type(here).model_fields[str(step)]
            marks = [*_own(field.metadata), *_marks(field.annotation)]
            here = getattr(here, str(step))
        else:
            here = here[step]
    ends = [_ends(mark) for mark in marks] or [ANYTHING]
    return min(least for least, _ in ends), max(most for _, most in ends)


def _own(marks: Sequence[Any]) -> list[Number | Quantity]:
    return [mark for mark in marks if isinstance(mark, Number | Quantity)]


def _marks(annotation: Any) -> Iterator[Number | Quantity]:
    """Yield the marks within a type: those of its members, and of what a list or a mapping holds."""
    yield from _own(getattr(annotation, "__metadata__", ()))
    for member in get_args(annotation):
        yield from _marks(member)


def _ends(mark: Number | Quantity) -> tuple[float, float]:
    if isinstance(mark, Number):
        return mark.least, mark.most
    kind = DIMENSIONS[mark.dimension]
    return kind.least, kind.most
