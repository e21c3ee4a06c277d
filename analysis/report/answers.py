"""Answers to planning questions as a report takes them."""

from analysis.report.records import AboveZero, Count, Kind, Name, Number, Part

HOUR_S = 3600.0


class Hours(Part):
    """An interval of the hours that a job takes."""

    low: Number
    high: Number


class Plan(Part):
    """One plan that nothing beats."""

    hardware: Name
    workers: Count
    policy: Kind
    hours: AboveZero
    hours_interval: Hours | None
    usd: Number | None
    kwh: Number | None
    step_ms: AboveZero
    throughput_samples_per_s: AboveZero

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

    @property
    def chosen_plan(self) -> Plan | None:
        """The plan that `gains` speak of, if there is one."""
        known = self.chosen is not None and 0 <= self.chosen < len(self.plans)
        return self.plans[self.chosen or 0] if known else None


MARKS = frozenset({"feasible", "plans", "tried"})


def is_answer(data: object) -> bool:
    """Whether a JSON file is meant as an answer; other files are none of a report's business."""
    return isinstance(data, dict) and data.keys() >= MARKS
