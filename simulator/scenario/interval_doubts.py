"""What is doubtful about a scenario: parameters with the ends of their intervals, and draws of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from simulator.errors import InputError, RecscaleError
from simulator.hardware import catalog
from simulator.hardware.catalog.build import DIMENSIONS, quantity
from simulator.quantities import FloatArray
from simulator.scenario.cluster_spec import ClusterSpec
from simulator.scenario.field_limits import limits_at
from simulator.scenario.interval_spec import COVERAGE, DoubtSpec
from simulator.scenario.machine_spec import GroupSpec, machine_with
from simulator.scenario.overrides import path_of
from simulator.scenario.scenario import Scenario
from simulator.workload.draws import uniforms

PRICES = ("price_usd_per_hour", "power_watts")  # they change no time
OF_THE_WORLD = ("cluster", "workload", "sharding", "software")  # what a run finds, not what it decides
SIZES = ("hbm_bytes", "cache_bytes", "dram_bytes", "ssd_bytes", "domain")  # what was bought


@dataclass(frozen=True)
class Sample:
    """One of `count` samples of a run with `seed`; levels are spread evenly over all of them."""

    seed: int
    index: int
    count: int

    def level(self, name: str) -> float:
        """Return the share of cases below the quantity of that name, in (0, 1).

        A Latin hypercube: a keyed shuffle of the middles of `count` equal parts.
        """
        return float(_levels(name, self.seed, self.count)[self.index])


@lru_cache(maxsize=512)
def _levels(name: str, seed: int, count: int) -> FloatArray:
    keys = uniforms(seed, f"interval/{name}", 0, np.arange(count, dtype=np.int64))
    return np.asarray((np.argsort(np.argsort(keys, kind="stable"), kind="stable") + 0.5) / count)


@dataclass(frozen=True)
class Doubt:
    """A positive quantity `value` that lies between `low` and `high` in `COVERAGE` of cases.

    `name` keys its draws: they depend on it, the seed and the sample, and on nothing else.
    """

    name: str
    low: float
    value: float
    high: float

    def drawn(self, sample: Sample) -> float:
        """Return the value of a sample: lognormal below and above the median, each with its own width."""
        from scipy.special import ndtri

        at = float(ndtri(sample.level(self.name)) / ndtri((1 + COVERAGE) / 2))
        end = self.high if at > 0 else self.low
        return float(self.value * (end / self.value) ** abs(at))


@dataclass(frozen=True)
class PathDoubt:
    """A doubt about the value at a path of the scenario; `unit` is that of the numbers.

    What is drawn beyond the `least` or the `most` that the field may be is that.
    """

    path: str
    unit: str
    whole: bool
    doubt: Doubt
    least: float = 0.0
    most: float = float("inf")

    def setting(self, sample: Sample) -> str:
        """Return the `path=value` of a sample."""
        value = min(max(self.doubt.drawn(sample), self.least), self.most)
        return f"{self.path}={max(1, round(value)) if self.whole else repr(value)} {self.unit}".strip()


def path_doubts(scenario: Scenario, specs: Sequence[DoubtSpec]) -> tuple[PathDoubt, ...]:
    """Return the doubts about named paths.

    Raises InputError for a path without a positive number or given twice, for one of the run or its policy,
    and for ends that do not enclose its value.
    """
    for place, spec in enumerate(specs):
        if problem := _unfit(spec.path, [one.path for one in specs[:place]]):
            where = scenario.document.where(("run", "interval", "parameters", place))
            raise InputError(f"{spec.path}: {problem}", where)
    return tuple(_path_doubt(scenario, spec, place) for place, spec in enumerate(specs))


def _unfit(path: str, before: Sequence[str]) -> str:
    """Return why a path cannot be in doubt, whatever stands there; nothing where it can."""
    steps = path_of(path)
    if steps and steps[0] not in OF_THE_WORLD:
        return f"that is a choice; in doubt can be a number under {', '.join(OF_THE_WORLD)}"
    return "stands twice among the parameters" if steps and steps in map(path_of, before) else ""


def _path_doubt(scenario: Scenario, spec: DoubtSpec, place: int) -> PathDoubt:
    where = scenario.document.where(("run", "interval", "parameters", place))
    try:
        value = _number(scenario, spec.path)
        low, high = (
            _number(scenario.with_overrides([f"{spec.path}={end}"]), spec.path)
            for end in (spec.low, spec.high)
        )
    except RecscaleError as problem:
        raise InputError(f"{spec.path}: {problem.problem}", where) from None
    if not 0 < low[0] <= value[0] <= high[0]:
        raise InputError(f"{spec.path}: low and high must enclose its value, and be above 0", where)
    doubt = Doubt(spec.path, low[0], value[0], high[0])
    least, most = limits_at(scenario.spec, path_of(spec.path))
    return PathDoubt(spec.path, value[1], value[2], doubt, least, most)


def _number(scenario: Scenario, path: str) -> tuple[float, str, bool]:
    """Return the number at a path, its unit, and whether it is a whole one."""
    here: Any = scenario.resolved()
    steps = path_of(path)
    if not steps:
        raise InputError("that is not a path such as cluster.hosts")
    for step in steps:
        try:
            here = here[step]
        except (LookupError, TypeError):
            raise InputError("the scenario has no such value; a part that is named has none inside") from None
    text, _, unit = str(here).partition(" ")
    try:
        return float(text), unit, isinstance(here, int)
    except ValueError:
        raise InputError("that is not a number") from None


@dataclass(frozen=True)
class CatalogDoubt:
    """A doubt about a field of a catalog entry: `part` is accelerator, host or fabric.

    `places` are the groups of hosts that the entry is named for (0: all of a cluster without groups).
    """

    part: str
    field: str
    key: str
    doubt: Doubt
    fraction: bool
    places: tuple[int, ...] = (0,)

    def stretched(self, known: float, sample: Sample) -> float:
        """Return the field's value, stretched as a sample stretches the catalog's; a fraction stays one."""
        drawn = known * self.doubt.drawn(sample) / self.doubt.value
        return min(drawn, 1.0) if self.fraction else drawn


def catalog_doubts(scenario: Scenario) -> tuple[CatalogDoubt, ...]:
    """Return the doubts that the named catalog entries state about what changes times.

    A gather efficiency that the software brings takes the place of the accelerator's, doubt and all.
    """
    replaced = {"gather_efficiency"} if scenario.spec.framework.gather_efficiency is not None else set()
    return tuple(
        replace(doubt, places=places)
        for part in ("accelerator", "host", "fabric")
        for name, places in _named(scenario, part).items()
        for doubt in _of_entry(part, name, alone=len(_named(scenario, part)) == 1)
        if doubt.field not in replaced
    )


def _named(scenario: Scenario, part: str) -> dict[str, tuple[int, ...]]:
    """Return the entries that a part of the cluster is built from, each with the groups that have it.

    They are those named, or those of the accelerators' machines.
    """
    spec = scenario.spec.cluster
    whole = part == "fabric" and spec.fabric is not None
    groups: Sequence[ClusterSpec | GroupSpec] = (spec,) if whole else spec.groups or (spec,)
    found: dict[str, tuple[int, ...]] = {}
    for place, group in enumerate(groups):
        name = getattr(group, part, None)
        if name is None:
            name = catalog.entry("machine", machine_with(group.accelerator, part))[part]
        if isinstance(name, str):
            found[name] = (*found.get(name, ()), place)
    return found


def _of_entry(part: str, name: str, alone: bool) -> Iterator[CatalogDoubt]:
    """Yield the doubts of an entry; of several for one part, each has draws of its own."""
    for field, fields in catalog.entry(part, name).items():
        if not isinstance(fields, Mapping) or field in PRICES + SIZES:
            continue
        numbers = {"": fields} if "value" in fields else fields
        for key, number in numbers.items():
            if isinstance(number, Mapping) and (ends := number.get("interval", number.get("range"))):
                drawn = part if alone else f"{part} {name}"
                yield _catalog_doubt(part, (field, key), number["value"], ends, drawn)


def _catalog_doubt(
    part: str, place: tuple[str, str], value: Any, ends: Sequence[Any], drawn: str
) -> CatalogDoubt:
    field, key = place
    low, middle, high = (quantity(field, one) for one in (ends[0], value, ends[1]))
    doubt = Doubt(f"{drawn}.{field}.{key}", min(low, middle), middle, max(high, middle))
    return CatalogDoubt(part, field, key, doubt, DIMENSIONS[field] == "fraction")
