"""What the simulator says of a local run: the policy's plan, measured curves, and the engine's sharing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simulator.calibration.local.costs import MeasuredCosts, Wire, cluster, split
from simulator.calibration.local.curves import CurveSet
from simulator.calibration.local.served import asks_servers, served_works
from simulator.calibration.local.unfolding import kind_of, unfolded
from simulator.calibration.train.plans import needs_servers, parts_of, planned
from simulator.calibration.train.settings import Settings
from simulator.engine.contention import Contention
from simulator.engine.durations import Variation, tabulate
from simulator.engine.events import run_events
from simulator.errors import InputError
from simulator.pipeline import MarkedGraph, Stage, compile_pipeline
from simulator.quantities import FloatArray, Work
from simulator.results.timeline import Timeline

BATCHES, SKIPPED, DROPPED = 40, 8, 6
LOCAL = ("distinct", "gather", "segment_sum", "mlp_forward", "mlp_backward")
COLLECTIVE = ("all_to_all", "all_reduce")
MOST_SPREAD = 0.06  # of a quiet machine; what a busy one shows beyond it are interruptions, not a spread
LOCAL_KINDS = ("compute", "lookup", "input")
COLLECTIVE_KINDS = ("all_to_all", "all_reduce")


@dataclass(frozen=True)
class LocalMachine:
    """What a recording says of its machine: `curves`, how many `ranks` and `cores`, nearly empty runs.

    `refill` seconds fill the token bucket of a link (0: it has none).
    """

    curves: CurveSet
    ranks: int
    cores: int
    software: tuple[Mapping[str, Any], ...] = ()
    refill: float = 0.0

    @classmethod
    def of(cls, recording: dict[str, Any]) -> "LocalMachine":
        """Return the machine of a recording in plain data."""
        launch = recording["launch"]
        curves = CurveSet.of(recording["primitives"])
        software = tuple(recording["software"])
        rate = launch["link_bytes_per_s"]
        refill = launch["burst_bytes"] / rate if rate else 0.0
        cores = int(recording["environment"]["cores"])
        return cls(curves, int(launch["ranks"]), cores, software, refill)

    def costs(self, settings: Settings) -> MeasuredCosts:
        """Return what the work of a run costs here."""
        return replace(self._bare(settings), program=self._program(settings))

    def _bare(self, settings: Settings) -> MeasuredCosts:
        share = max(1.0, self.ranks / self.cores)
        return MeasuredCosts(
            cluster(self.ranks), measured=self.curves, settings=settings, ranks_per_core=share
        )

    def _program(self, settings: Settings) -> dict[str, float]:
        """Return what stages of each kind cost beyond their operations, from a nearly empty run.

        It is that of the same policy if there is one, else of any with as many micro-batches.
        """
        few = [(Settings.of(run["settings"]), run["stage_cpu_s"]) for run in self.software]
        fitting = [one for one in few if one[0].title == settings.title]
        fitting = fitting or [one for one in few if parts_of(one[0]) == parts_of(settings)] or few
        found: dict[str, list[float]] = {}
        for alike, used in fitting:
            for kind, beyond in self._beyond(alike, used) if alike == fitting[0][0] else ():
                found.setdefault(kind, []).append(beyond)
        return {kind: float(np.median(seconds)) for kind, seconds in found.items()}

    def _beyond(self, few: Settings, used: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """Yield the kind of each stage of a nearly empty run and what it used beyond its operations."""
        costs = self._bare(few)
        for stage in planned(few, self.ranks).stages:
            known = sum(float(costs.seconds(part)) for part in split(stage.work) if not part.rendezvous)
            yield kind_of(stage.name), max(0.0, used[stage.name] * costs.ranks_per_core - known)

    def variation(self, seed: int) -> Variation:
        """Return the spread of stages by kind that the primitives showed."""
        spreads = [min(MOST_SPREAD, self.curves.spread(names)) for names in (LOCAL, COLLECTIVE)]
        local = dict.fromkeys(LOCAL_KINDS, spreads[0])
        collective = dict.fromkeys(COLLECTIVE_KINDS, spreads[1])
        return Variation({**local, **collective}, seed)

    def step_seconds(self, settings: Settings) -> FloatArray:
        """Return the predicted times between updates of the slowest rank.

        On shaped links a first simulation shows how long they rest before each flow, and with it how much
        credit their token buckets have; a second one uses that.

        Raises InputError when a primitive that the run needs was not measured, and for `bagpipe`.
        """
        apart = unfolded(planned(settings, self.ranks), self._served(settings))
        graph, costs = compile_pipeline(apart), self.costs(settings)
        cycles = -(-BATCHES // graph.period)
        timeline = self._simulated(graph, costs, cycles)
        if self.refill:
            rested = rests(timeline, costs, self.refill)
            timeline = self._simulated(graph, replace(costs, rested=rested), cycles)
        updates = timeline.update_ns.max(axis=1)
        return np.asarray(np.diff(updates)[SKIPPED : len(updates) - 1 - DROPPED] / 1e9)

    def works(self, settings: Settings) -> Iterator[tuple[Stage, Work]]:
        """Yield every stage of a run and what it does in measured primitives.

        Raises InputError for a policy whose fetches depend on a cache: they are not measured.
        """
        served = self._served(settings)
        for stage in planned(settings, self.ranks).stages:
            yield stage, served.get(kind_of(stage.name), stage.work)

    def _served(self, settings: Settings) -> Mapping[str, Work]:
        if not needs_servers(settings):
            return {}
        if not asks_servers(settings):
            raise InputError(f'steps of "{settings.policy}" are executed here, not predicted')
        return served_works(settings, self.ranks)

    def _simulated(self, graph: MarkedGraph, costs: MeasuredCosts, cycles: int) -> Timeline:
        variation = self.variation(costs.settings.seed)
        durations = tabulate(graph, costs.seconds, self.ranks, cycles, variation)
        return run_events(graph, durations, folded=False, contention=Contention.of(graph, costs))


def rests(timeline: Timeline, costs: MeasuredCosts, refill: float) -> dict[Work, float]:
    """Return how full a token bucket was before each collective of a run; `refill` seconds fill an empty one.

    What threads do between the flows of two collectives is no rest: several in a row, which leave the link
    none, were measured with it.
    """
    flows = [node.stage.work for node in timeline.graph.nodes]
    instances = sorted(
        (int(timeline.began_ns[node, cycle, 0]), int(timeline.end_ns[node, cycle, 0]), node)
        for node, work in enumerate(flows)
        for cycle in range(SKIPPED, timeline.cycles - DROPPED)
        if isinstance(work, Wire)
    )
    filled: dict[Work, list[float]] = {work: [] for work in flows if _first(work)}
    busy_until = None
    for began, ended, node in instances:
        if busy_until is not None and _first(flows[node]):
            rest = max(0.0, (began - busy_until) / 1e9 - _between(flows[node], costs))
            filled[flows[node]].append(min(1.0, rest / refill))
        busy_until = ended if busy_until is None else max(busy_until, ended)
    return {work: float(np.mean(shares or [1.0])) for work, shares in filled.items()}


def _first(work: Work) -> bool:
    return isinstance(work, Wire) and work.phase == 0


def _between(work: Work, costs: MeasuredCosts) -> float:
    """Return the seconds between the flows of two collectives like this one, one right after the other."""
    assert isinstance(work, Wire)
    return costs.handling(work.operation, work.size) / work.phases
