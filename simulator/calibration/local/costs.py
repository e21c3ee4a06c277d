"""Costs of a local run: every primitive from its measured curve, collectives on links that they share.

A collective is work of its rank's core (what its thread was measured to take from others) and flows: the
rest of its measured time. Messages are handed to the kernel before they travel and fetched from it after,
so half of the work comes first and half comes last; an all-reduce does this twice (reduce-scatter, then
all-gather). So it slows what runs beside it on the core, is slowed by it, and shares its link with other
collectives.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, singledispatch
from typing import Any

from simulator.calibration.local.curves import CurveSet
from simulator.calibration.local.served import FETCH, PUSH, served_shape
from simulator.calibration.train.settings import Settings
from simulator.calibration.train.step import Primitive
from simulator.costs import CostModel, Flows, Network, Phase
from simulator.costs.occupancy import Occupancy, occupancy
from simulator.hardware import Accelerator, Cluster, Host, TwoLevel
from simulator.quantities import AllReduceWork, AllToAllWork, Amount, InTurn, Work

LINK = "link"
CORE = "core"
SHAPED = {"mlp_forward": "network", "mlp_backward": "network"}
EFFICIENCIES = ("matrix_efficiency", "memory_efficiency", "gather_efficiency")
PHASES = {"all_to_all": 1, "all_reduce": 2}
OF_ROWS = ("gather", "scatter", "segment_sum")


@dataclass(frozen=True, eq=False)
class Wire(Work):
    """The `phase`-th of `phases` in which the bytes of an `operation` travel; `size` are all its bytes."""

    operation: str
    size: float
    phase: int = 0
    phases: int = 1

    @property
    def rendezvous(self) -> bool:
        """Return true: all ranks take part."""
        return True


@dataclass(frozen=True, eq=False)
class Handling(Work):
    """A `share` of what a collective's thread computes: copies to and from the kernel, bookkeeping."""

    operation: str
    size: float
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class Program(Work):
    """What a stage of a `kind` costs before there is anything to do: the interpreter, calls of libraries."""

    kind: str


class OneLink(Network):
    """Every rank has one link in each direction; flows say how long they take on it alone."""

    @property
    def rates(self) -> dict[str, float]:
        """Amounts are seconds of the link here, so that its rate is 1."""
        return {LINK: 1.0}


@dataclass(frozen=True)
class MeasuredCosts(CostModel):
    """Seconds of any work of a run from measured curves; `ranks_per_core` of them share a core.

    `program` is what a stage costs by its kind when there is nothing to do. `rested` says how far the
    token bucket of the link had filled up again when a flow began: 1 is full (the default), 0 empty.
    """

    measured: CurveSet = field(default_factory=lambda: CurveSet(()), hash=False)
    settings: Settings = field(default_factory=Settings, hash=False)
    ranks_per_core: float = 1.0
    program: Mapping[str, float] = field(default_factory=dict, hash=False)
    rested: Mapping[Work, float] = field(default_factory=dict, hash=False)

    @cached_property
    def network(self) -> OneLink:
        """The links of ranks."""
        return OneLink(self.cluster)

    def seconds(self, work: Work) -> Amount:
        """Return what `work` takes on every rank. Raises InputError for what was not measured."""
        return _seconds(work, self)

    def phases(self, work: Work) -> tuple[Phase, ...]:
        """Return the flows of a collective; other work has none."""
        seconds = _seconds(work, self)
        return (Phase(0.0, (Flows(seconds, {LINK: 1.0}),)),) if isinstance(work, Wire) else (Phase(seconds),)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape in which a primitive must have been measured."""
        if name in OF_ROWS:
            return (self.settings.model.dimension,)
        if name.startswith((FETCH, PUSH)):
            return served_shape(self.settings)
        return self.settings.model.widths if name in SHAPED else ()

    def handling(self, operation: str, size: float) -> float:
        """Return the time that a collective's thread keeps its rank's part of a core busy."""
        curve = self.measured.of_operation(operation)[0]
        return min(curve.seconds(size), curve.core_seconds(size))


@singledispatch
def _seconds(work: Work, costs: MeasuredCosts) -> float:
    raise TypeError(f"a local run has no {type(work).__name__}")


@_seconds.register
def _(work: InTurn, costs: MeasuredCosts) -> float:
    return sum(_seconds(part, costs) for part in work.parts)


@_seconds.register
def _(work: Primitive, costs: MeasuredCosts) -> float:
    return costs.measured.seconds(work.name, work.size, work.context, costs.shape_of(work.name))


@_seconds.register
def _(work: Program, costs: MeasuredCosts) -> float:
    return costs.program.get(work.kind, 0.0)


@_seconds.register
def _(work: Handling, costs: MeasuredCosts) -> float:
    return work.share * costs.handling(work.operation, work.size)


@_seconds.register
def _(work: Wire, costs: MeasuredCosts) -> float:
    """Flows after a rest are faster by what a full token bucket lets through; the first phase has that."""
    curve, handling = (
        costs.measured.of_operation(work.operation)[0],
        costs.handling(work.operation, work.size),
    )
    fresh = max(0.0, curve.seconds(work.size) - handling)
    tired = max(fresh, curve.seconds_in_a_row(work.size) - handling)
    filled = costs.rested.get(work, 1.0) if work.phase == 0 else 0.0
    return max(0.0, tired / work.phases - filled * (tired - fresh))


@occupancy.register(Primitive)
@occupancy.register(Handling)
@occupancy.register(Program)
def _(work: Work, costs: CostModel) -> Occupancy:
    return {CORE: float(costs.seconds(work))}


@singledispatch
def split(work: Work) -> tuple[Work, ...]:
    """Return what the thread of a stage does one after the other: local work, handling, and flows."""
    return (work,)


@split.register
def _(work: InTurn) -> tuple[Work, ...]:
    return tuple(leaf for part in work.parts for leaf in split(part))


@split.register
def _(work: AllToAllWork) -> tuple[Work, ...]:
    return _collective("all_to_all", float(work.bytes))


@split.register
def _(work: AllReduceWork) -> tuple[Work, ...]:
    return _collective("all_reduce", work.bytes)


def _collective(operation: str, size: float) -> tuple[Work, ...]:
    phases = PHASES[operation]
    half = Handling(operation, size, 0.5 / phases)
    return tuple(
        part for phase in range(phases) for part in (half, Wire(operation, size, phase, phases), half)
    )


def cluster(ranks: int) -> Cluster:
    """Return `ranks` ranks on a link each. Its nominal rates time nothing: everything here was measured."""
    nominal: dict[str, Any] = dict.fromkeys(EFFICIENCIES, 1.0) | {
        "hbm_bytes": 1e9,
        "hbm_bandwidth": 1e9,
        "cache_bytes": 0.0,
        "launch_time": 0.0,
    }
    core = Accelerator("core", "gpu", {"fp32": 1e9}, **nominal, host_link_bandwidth=1e9)
    host = Host("core", cores=1, dram_bytes=1e9, dram_bandwidth=1e9, dram_efficiency=1.0)
    return Cluster(core, host, TwoLevel(1e9, 1e9), 1, ranks)
