"""A grid file: a scenario, what to vary in it, and the points that follow."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from analysis.asked import read_asked, read_base
from analysis.sweep.axes import AxisSpec, SampleSpec, Setting, repeated, undone
from simulator.scenario.base import Spec
from simulator.scenario.document import Document
from simulator.scenario.named_files import contents

MOST_POINTS = 1_000_000


class GridSpec(Spec):
    """The whole file."""

    scenario: str
    engine: Literal["events", "vector"] = "vector"
    vary: Annotated[tuple[AxisSpec, ...], Field(min_length=1, max_length=50)]
    sample: SampleSpec | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        twice = repeated(self.vary)
        if twice:
            raise ValueError(f'"{twice}" is varied twice')
        if lost := undone(self.vary):
            raise ValueError(f'"{lost[1]}" replaces what "{lost[0]}" sets: name "{lost[1]}" first')
        if self.sample is None and prod(axis.size for axis in self.vary) > MOST_POINTS:
            raise ValueError(f"more than {MOST_POINTS:,} points; sample them instead")
        return self


@dataclass(frozen=True)
class Point:
    """One scenario of a sweep: what is set, the key under which its result is kept, who sets it."""

    key: str
    settings: tuple[Setting, ...]
    source: str = "sweep"


@dataclass(frozen=True)
class Grid:
    """A grid file that was read, and the scenario it varies."""

    spec: GridSpec
    base: Document
    document: Document

    def on(self, engine: str) -> "Grid":
        """Return the same grid on another engine."""
        return replace(self, spec=self.spec.model_copy(update={"engine": engine}))

    @property
    def axes(self) -> tuple[str, ...]:
        """The paths that are varied."""
        return tuple(path for axis in self.spec.vary for path in axis.paths)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """All points, each once, in the order of the file (the last axis moves first)."""
        found = (self._point(settings) for settings in self._settings())
        return tuple({point.key: point for point in found}.values())

    def _settings(self) -> Iterator[tuple[Setting, ...]]:
        axes, sample = self.spec.vary, self.spec.sample
        if sample is None:
            for places in product(*(range(axis.size) for axis in axes)):
                pairs = zip(axes, places, strict=True)
                yield tuple(one for axis, place in pairs for one in axis.settings(place))
        else:
            for row in sample.shares(len(axes)):
                pairs = zip(axes, row, strict=True)
                yield tuple(one for axis, share in pairs for one in axis.sampled(float(share)))

    def _point(self, settings: tuple[Setting, ...]) -> Point:
        return point_of(self.base, settings, self.spec.engine)


def point_of(base: Document, settings: tuple[Setting, ...], engine: str) -> Point:
    """Return a point, named by what decides its result: scenario, files, settings, engine and version."""
    files = contents([base.data, _nested(settings)], Path(base.file).parent)
    text = _text([base.data, settings, engine, _version(), *([files] if files else [])])
    return Point(hashlib.blake2b(text, digest_size=12).hexdigest(), settings)


def _nested(settings: tuple[Setting, ...]) -> list[dict[str, Any]]:
    """Return settings as parts, so that the last step of a path is the name of what it sets."""
    return [{path.rpartition(".")[2]: value} for path, value in settings]


@cache
def _version() -> str:
    from simulator.results.export import versions

    return versions().get("recscale", "")


def _text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def read_grid(path: Path) -> Grid:
    """Read and check the grid file at `path` and the scenario that it names.

    Raises InputError with file, line and path for anything wrong with either.
    """
    spec, document = read_asked(path, GridSpec, "grid")
    return Grid(spec, read_base(path, spec, document), document)
