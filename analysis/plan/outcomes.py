"""What a candidate would bring: hours, dollars and kilowatt-hours for the job, and what stands against it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.plan.candidates import Candidate
from analysis.plan.question import Question
from analysis.sweep.points import DONE, Record
from analysis.times import HOUR_S


@dataclass(frozen=True)
class Limit:
    """A limit that a candidate breaks: what is limited, what it `has` (None: unknown), what is `allowed`.

    `least`: the limit is a minimum.
    """

    name: str
    has: float | None
    allowed: float
    least: bool = False

    @property
    def broken(self) -> bool:
        """Whether it is broken; a limit on what is not known is."""
        if self.has is None:
            return True
        return self.has < self.allowed if self.least else self.has > self.allowed

    @property
    def excess(self) -> float:
        """By which factor; a limit of 0 counts what is over it, what is not known is infinitely far."""
        if self.has is None:
            return float("inf")
        if self.least:
            return self.allowed / self.has
        return self.has / self.allowed if self.allowed else 1.0 + self.has


THROUGHPUT = "samples/s"


@dataclass(frozen=True)
class Outcome:
    """A candidate that can run: the job's `hours`, `usd` and `kwh` (None: unknown), and its record."""

    candidate: Candidate
    record: Record
    hours: float
    usd: float | None
    kwh: float | None
    watts: float | None
    over: tuple[Limit, ...]

    @property
    def goals(self) -> tuple[float | None, ...]:
        """What is to be small."""
        return (self.hours, self.usd, self.kwh)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        low, high = self.record["interval_low_ms"], self.record["interval_high_ms"]
        scale = self.hours / self.record["step_mean_ms"]
        return {
            "hardware": self.candidate.hardware,
            "workers": self.candidate.workers,
            "policy": dict(self.candidate.settings)["policy"],
            "sharding": dict(self.candidate.settings).get("sharding"),
            "batch": dict(self.candidate.settings).get("workload.batch"),
            "hours": self.hours,
            "hours_interval": None if low is None else {"low": low * scale, "high": high * scale},
            "usd": self.usd,
            "kwh": self.kwh,
            "step_ms": self.record["step_mean_ms"],
            "throughput_samples_per_s": self.record["throughput_samples_per_s"],
            "staleness_steps": self.record["staleness_declared_steps"],
            "peak_memory_hbm_bytes": self.record["peak_memory_hbm_bytes"],
            "bottleneck": self.record["bottleneck"],
            "notes": self.record["notes"],
        }


def outcome_of(question: Question, candidate: Candidate, record: Record) -> Outcome | None:
    """Return what `candidate` brings, or None where it cannot run."""
    if record["status"] != DONE:
        return None
    hours = question.spec.target.samples / record["throughput_samples_per_s"] / HOUR_S
    money = question.option(candidate.hardware).money
    rate, watts = _rate(money.usd_per_hour, candidate, record), _watts(money.watts, candidate, record)
    usd = None if rate is None else rate * hours
    kwh = None if watts is None else watts * hours / 1e3
    bare = Outcome(candidate, record, hours, usd, kwh, watts, ())
    return Outcome(candidate, record, hours, usd, kwh, watts, tuple(_over(question, bare)))


def _rate(own: float | None, candidate: Candidate, record: Record) -> float | None:
    """Return USD per hour of the whole job: the option's price, or that of the catalog."""
    if own is not None:
        return own * candidate.workers
    per_million = record["usd_per_million_samples"]
    return None if per_million is None else per_million / 1e6 * record["throughput_samples_per_s"] * HOUR_S


def _watts(own: float | None, candidate: Candidate, record: Record) -> float | None:
    if own is not None:
        return own * candidate.workers
    joules = record["joules_per_sample"]
    return None if joules is None else joules * record["throughput_samples_per_s"]


def _over(question: Question, outcome: Outcome) -> Iterator[Limit]:
    """Yield the limits that an outcome breaks."""
    found = (
        Limit(name, has, allowed, name == THROUGHPUT)
        for name, has, allowed in _limits(question, outcome)
        if allowed is not None
    )
    return (limit for limit in found if limit.broken)


def _limits(question: Question, outcome: Outcome) -> Sequence[tuple[str, float | None, float | None]]:
    target, limits = question.spec.target, question.spec.limits
    samples = target.samples
    per_million = None if outcome.usd is None else outcome.usd / samples * 1e6
    joules = None if outcome.kwh is None else outcome.kwh * 3.6e6 / samples
    return (
        ("hours", outcome.hours, None if target.within is None else target.within / HOUR_S),
        (THROUGHPUT, outcome.record["throughput_samples_per_s"], target.throughput),
        ("USD", outcome.usd, target.budget),
        ("USD per million samples", per_million, target.usd_per_million_samples),
        ("J per sample", joules, target.energy_per_sample),
        ("steps of staleness", outcome.record["staleness_declared_steps"], float(limits.staleness_steps)),
        ("W", outcome.watts, limits.power),
    )
