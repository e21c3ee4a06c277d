"""Fitted numbers of a software profile that may be off, and how far its predictions were off elsewhere.

A number is in doubt where the scenario has the catalog's and the catalog states an `interval` or a `range`
for it. What lies beyond single numbers is the profile's `spread`: how far steps of jobs that nothing was
fitted on lay from predicted ones, on machines of the same kind.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from simulator.costs import CostModel
from simulator.costs.software import Slowed, Software
from simulator.quantities import HoldWork, InTurn, Together, Work, leaves
from simulator.scenario import software_catalog
from simulator.scenario.interval_doubts import Doubt, Sample
from simulator.scenario.scenario import Scenario
from simulator.scenario.software_spec import SoftwareSpec

GATHER = "gather_efficiency"
RATES = ("software.loader_rate",)  # what is held is in inverse proportion to them
SAME = 1e-9  # of a value: what rounding leaves of the catalog's


@dataclass(frozen=True)
class SoftwareDoubt:
    """A doubt about a field of the `software` part, in SI units."""

    field: str
    doubt: Doubt


@dataclass(frozen=True)
class DrawnSoftware:
    """The software of a sample: its numbers over those of the scenario, by field.

    What is held in a step is in proportion to them, so that neither plan nor traffic has to be made anew.
    """

    ratios: Mapping[str, float]

    @classmethod
    def of(cls, doubts: Iterable[SoftwareDoubt], sample: Sample) -> "DrawnSoftware":
        """Draw all of them."""
        return cls({one.field: one.doubt.drawn(sample) / one.doubt.value for one in doubts})

    def costs(self, costs: CostModel) -> CostModel:
        """Return the costs with dense kernels and gathers as fast as drawn; efficiencies stay fractions."""
        slowdown = self.ratios.get("slowdown", 1.0)
        if slowdown != 1.0:
            costs = replace(costs, dense=Slowed(costs.dense, slowdown))
        if GATHER in self.ratios:
            reached = costs.cluster.accelerator.gather_efficiency * self.ratios[GATHER]
            software = Software(gather_efficiency=min(reached, 1.0))
            costs = replace(costs, cluster=software.on(costs.cluster))
        return costs

    def held(self, work: Work) -> Work:
        """Return the work of a stage with what is held in it as drawn."""
        if not any(isinstance(part, HoldWork) for part in leaves(work)):
            return work
        if isinstance(work, InTurn | Together):
            return replace(work, parts=tuple(map(self.held, work.parts)))
        if isinstance(work, HoldWork):
            ratio = self.ratios.get(work.setting.removeprefix("software."), 1.0)
            return replace(work, seconds=work.seconds * (1 / ratio if work.setting in RATES else ratio))
        return work


AS_IS = DrawnSoftware({})


def software_doubts(scenario: Scenario, apart: Iterable[str] = ()) -> tuple[SoftwareDoubt, ...]:
    """Return the doubts about the software's numbers; `apart` are paths that have doubts of their own."""
    spec, named = scenario.spec.framework, {path.strip() for path in apart}
    return tuple(
        SoftwareDoubt(field, doubt)
        for field, doubt in _stated(spec)
        if f"software.{field}" not in named and abs(getattr(spec, field) / doubt.value - 1) <= SAME
    )


def _stated(spec: SoftwareSpec) -> Iterator[tuple[str, Doubt]]:
    """Yield what the catalog doubts of the fields that the software sets."""
    known = software_catalog.numbers(spec.family) if spec.family in software_catalog.names() else {}
    listed = [*known.items(), *((GATHER, one) for one in software_catalog.gather_numbers().values())]
    for field, number in listed:
        doubt = _doubt(field, number)
        if doubt is not None and getattr(spec, field) is not None:
            yield field, doubt


def _doubt(field: str, number: Mapping[str, Any]) -> Doubt | None:
    """Return the doubt that a number of the catalog states; None where it states none, or is nothing."""
    ends = number.get("interval") or number.get("range")
    if not ends:
        return None
    low, value, high = (_si(field, one) for one in (ends[0], number["value"], ends[1]))
    return Doubt(f"software.{field}", min(low, value), value, max(high, value)) if value > 0 else None


def _si(field: str, value: Any) -> float:
    return float(getattr(SoftwareSpec.model_validate({field: value}), field))


def spread_doubt(scenario: Scenario) -> Doubt | None:
    """Return the doubt about the whole step, as a factor; None for software without a known spread."""
    band = scenario.spec.framework.band(scenario.cluster, 1.0)
    return Doubt("software.spread", band["low"], 1.0, band["high"]) if band else None
