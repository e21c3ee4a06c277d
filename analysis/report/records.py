"""What a report takes from files that others may have written: checked parts, and one row per result."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from analysis.jobs import job_of
from simulator.errors import InputError, Where, printable
from simulator.results.report import EXPOSED_KINDS

LONGEST_NAME = 60
MOST_LETTERS = 2000  # of a name that are read; more would only be cut where it is shown
Name = Annotated[str, AfterValidator(lambda name: name[:MOST_LETTERS])]
Number = Annotated[float, Field(allow_inf_nan=False)]
AboveZero = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1 << 40)]
Checked = TypeVar("Checked", bound="Part")


class Part(BaseModel):
    """A part of a record: what is named must be there and fit; what else is there is left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


def checked(kind: type[Checked], data: object, where: Where, what: str) -> Checked:
    """Return `data` as `kind`. Raises InputError naming the first part that is missing or does not fit."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(step) for step in first["loc"])
        told = first["msg"][:1].lower() + first["msg"][1:]
        raise InputError(f"is no {what} of this version: {told}", Where(where.file, None, path)) from None


def short(name: str) -> str:
    """Return a name as one printable line of a length that fits into tables and pictures."""
    line = printable(" ".join(name.split()))
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 3]}..."


@dataclass(frozen=True)
class Row:
    """One result, wherever it was found. Times in ms per step; `parts` is what a step is spent on.

    `band` is the interval of the step and `beyond` whether it lies outside of what fits have seen; `at`
    says what else a sweep had set. `engine` made it, and `job` tells which rows do the same job but for
    policy and workers: only those are held against each other.
    """

    scenario: str
    policy: str
    workers: int
    step_ms: float
    throughput: float
    parts: dict[str, float]
    usd_per_million: float | None
    staleness: float | None
    memory: float
    bottleneck: tuple[str, ...]
    band: tuple[float, float] | None = None
    beyond: bool = False
    at: str = ""
    engine: str = ""
    job: str = ""


def families(stages: Sequence[str]) -> tuple[str, ...]:
    """Return stages without their numbers, each once: `exchange.0; exchange.1` is `exchange`."""
    return tuple(dict.fromkeys(short(stage).partition(".")[0] for stage in stages))


def parts(compute_ms: float, exposed: dict[str, float]) -> dict[str, float]:
    """Return what a step is spent on, in the words of `recscale compare`: servers count as other waits."""
    shown = {
        f"exposed_{kind}_ms": exposed.get(kind, 0.0)
        for kind in EXPOSED_KINDS
        if kind not in ("other", "parameter_server")
    }
    other = exposed.get("other", 0.0) + exposed.get("parameter_server", 0.0)
    return {"compute_ms": compute_ms, **shown, "exposed_other_ms": other}


class Steps(Part):
    """Step times, ms."""

    mean: AboveZero
    p50: Number
    p95: Number
    p99: Number


class Band(Part):
    """An interval of the mean step, ms."""

    low: Number
    high: Number
    coverage: Number


class Cost(Part):
    """Costs that are known."""

    usd_per_million_samples: Number | None = None


class Stale(Part):
    """What a policy promises."""

    declared: Number | None


class Memory(Part):
    """Bytes on the fullest accelerator."""

    hbm: Number


class Told(Part):
    """What a report shows of the `report` of a run."""

    scenario: Name
    consistency: Name
    fidelity: Name
    ranks: Count
    batches: Count
    step_ms: Steps
    latency_ms: Number
    throughput_samples_per_s: AboveZero
    compute_ms: Number
    exposed_ms: dict[str, Number]
    staleness_steps: Stale
    peak_memory_bytes: Memory
    bottleneck: list[Name]
    extrapolated: list[Name]
    interval_ms: Band | None
    cost: Cost | None
    notes: list[Name]


class Kind(Part):
    """A part of a scenario that has a kind."""

    kind: Name


class Setup(Part):
    """What a report reads of the resolved scenario."""

    model_config = ConfigDict(extra="allow")

    policy: Kind
    cluster: dict[str, Any]

    @property
    def job(self) -> str:
        """The name of what the run does but for policy and workers."""
        return job_of(self.model_dump())


class RunRecord(Part):
    """A `run.json`."""

    hash: Name
    seed: int
    engine: Name
    versions: dict[str, Name]
    scenario: Setup
    report: Told

    @property
    def row(self) -> Row:
        """The run as a row."""
        told = self.report
        return Row(
            short(told.scenario),
            short(self.scenario.policy.kind),
            told.ranks,
            told.step_ms.mean,
            told.throughput_samples_per_s,
            parts(told.compute_ms, told.exposed_ms),
            told.cost.usd_per_million_samples if told.cost else None,
            told.staleness_steps.declared,
            told.peak_memory_bytes.hbm,
            families(told.bottleneck),
            (told.interval_ms.low, told.interval_ms.high) if told.interval_ms else None,
            bool(told.extrapolated),
            engine=short(self.engine),
            job=self.scenario.job,
        )
