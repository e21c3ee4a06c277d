"""A planning question: options, target and limits, read from one file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from analysis.plan.money import MoneySpec
from simulator.scenario.base import Spec
from simulator.scenario.document import Document
from simulator.scenario.fields import Count, CountOrZero, Energy, Frequency, Number, Power, Price, Time

OBJECTIVES = ("hours", "usd", "kwh")


class HardwareSpec(Spec):
    """One kind of cluster that could be had: its `cluster` part, the sizes on offer, what it costs.

    `settings` (paths and values) are made with it, for what suits this hardware only.
    """

    name: Annotated[str, Field(min_length=1, max_length=60)]
    cluster: dict[str, Any] | None = None
    workers: Annotated[tuple[Count, ...], Field(min_length=1, max_length=200)]
    settings: Annotated[dict[str, Any], Field(default_factory=dict)]
    money: MoneySpec = MoneySpec()


class TargetSpec(Spec):
    """What is to be reached. `samples` is the job; limits that are not given do not hold."""

    samples: Annotated[float, Number(0, 1e18, above=True)]
    within: Time | None = None
    budget: Price | None = None
    throughput: Frequency | None = None
    usd_per_million_samples: Price | None = None
    energy_per_sample: Energy | None = None


class LimitsSpec(Spec):
    """What the answer must respect. Without `staleness_steps`, only synchronous training is allowed."""

    staleness_steps: CountOrZero = 0
    workers: Count | None = None
    power: Power | None = None


class SearchSpec(Spec):
    """Instead of trying every candidate: Optuna's sampler picks `trials` of them."""

    kind: Literal["optuna"]
    trials: Annotated[Count, Field(le=100_000)]
    seed: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)]


class QuestionSpec(Spec):
    """The whole file."""

    name: str = ""
    scenario: str
    target: TargetSpec
    hardware: Annotated[tuple[HardwareSpec, ...], Field(min_length=1, max_length=50)]
    policies: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=100)]
    micro_batches: Annotated[tuple[Count, ...], Field(max_length=50)] = ()
    sharding: Annotated[tuple[dict[str, Any], ...], Field(max_length=50)] = ()
    batch: Annotated[tuple[Count, ...], Field(max_length=50)] = ()
    limits: LimitsSpec = LimitsSpec()
    search: SearchSpec | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [option.name for option in self.hardware]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f'two hardware options are called "{twice}"')
        return self


@dataclass(frozen=True)
class Question:
    """A question that was read, and the scenario that says what is trained."""

    spec: QuestionSpec
    document: Document
    base: Document

    @property
    def name(self) -> str:
        """The name in the file, or that of the file."""
        return self.spec.name or Path(self.document.file).stem

    def option(self, name: str) -> HardwareSpec:
        """Return the hardware option of that name."""
        return next(option for option in self.spec.hardware if option.name == name)
