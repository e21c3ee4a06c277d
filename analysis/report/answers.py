"""Answers to planning questions as a report takes them."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from analysis.report.records import AboveZero, Count, Name, Number, Part
from analysis.times import HOUR_S

LONGEST = 2000


def _of_a_kind(part: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(part.get("kind"), str) or len(repr(part)) > LONGEST:
        raise ValueError("a short part of a scenario with a kind is needed")
    return part


Policy = Annotated[dict[str, Any], AfterValidator(_of_a_kind)]


class Hours(Part):
    """An interval of the hours that a job takes."""

    low: Number
    high: Number


class Plan(Part):
    """One plan that nothing beats."""

    hardware: Name
    workers: Count
    policy: Policy
    hours: AboveZero
    hours_interval: Hours | None
    usd: Number | None
    kwh: Number | None
    step_ms: AboveZero
    throughput_samples_per_s: AboveZero
    sharding: Policy | None = None
    peak_memory_hbm_bytes: Number | None = None
    bottleneck: Name = ""

    @property
    def kind(self) -> str:
        """The kind of its policy."""
        return str(self.policy["kind"])

    @property
    def usd_per_million(self) -> float | None:
        """Cost per million samples."""
        samples = self.hours * HOUR_S * self.throughput_samples_per_s
        return None if self.usd is None else self.usd / samples * 1e6


class Gain(Part):
    """What an improvement of one physical parameter brings."""

    parameter: Name
    value: Name
    factor: AboveZero
    step_ms: Number
    saved_share: Number


class Change(Part):
    """What would have to be allowed."""

    allow: Name


class Figure(Part):
    """A price or a power of one accelerator, and where it is from."""

    amount: Number | None
    of: Name
    between: Name


class Rate(Part):
    """What one accelerator of an option costs and draws."""

    hardware: Name
    usd_per_hour: Figure
    watts: Figure
    unlike: list[Name] = Field(default_factory=list)


class Basis(Part):
    """What was asked, and what the answer rests on."""

    target: Name
    limits: Name
    rates: list[Rate]
    assumptions: list[Name]


class Answer(Part):
    """What `recscale plan --format json` prints."""

    name: Name
    feasible: bool
    plans: list[Plan]
    chosen: int | None
    gains: list[Gain]
    changes: list[Change]
    tried: int
    failed: int
    refused: int
    reasons: list[Name]
    notes: list[Name]
    broken: Annotated[dict[str, int], Field(default_factory=dict)]
    basis: Basis | None = None

    @property
    def chosen_plan(self) -> Plan | None:
        """The plan that `gains` speak of, if there is one."""
        known = self.chosen is not None and 0 <= self.chosen < len(self.plans)
        return self.plans[self.chosen or 0] if known else None


MARKS = frozenset({"feasible", "plans", "tried"})


def is_answer(data: object) -> bool:
    """Whether a JSON file is meant as an answer; other files are none of a report's business."""
    return isinstance(data, dict) and data.keys() >= MARKS
