"""Sharing of the network: collectives that are under way at the same time share links max-min.

A collective that meets no other takes exactly the time that it takes alone. As soon as a second one
starts to send, both are handed to the fluid solver, the first from the moment at which it began.
Ranks are told which flows pass through them (`Traffic`), and may hold a collective up.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import cast

import numpy as np
import simpy

from simulator.costs import Flows, Phase
from simulator.costs.phases import flow_seconds
from simulator.engine.contention import Contention
from simulator.engine.fluid.flows import FlowClasses
from simulator.engine.fluid.fluid import Fluid
from simulator.engine.traffic import Traffic
from simulator.quantities import FloatArray

NS = 1e9
REMEMBERED = 1024
FIRST = 1e6  # the weight of flows whose end has been told already: they keep their pace
PASSES = 2  # how often ranks may hold up the flows of one phase: what comes later is beyond accuracy


@dataclass(eq=False)
class Course:
    """How a collective fares: it has `met` others (or was held up), or its end is `settled` and stands."""

    met: bool = False
    settled: bool = False


@dataclass(eq=False)
class _Move:
    """The flows of one phase under way since `begin` ns; `shared` once they are in the fluid solver.

    `node` is the collective's.
    """

    node: int
    leg: "_Leg"
    flows: FlowClasses
    begin: int
    ended: simpy.Event
    course: Course
    shared: bool = False

    @property
    def competing(self) -> FlowClasses:
        """The flows, before all others where their end has been told."""
        return replace(self.flows, weight=self.flows.weight * FIRST) if self.course.settled else self.flows

    @property
    def rate(self) -> float:
        """Bytes/s of one rank, sent by flows of all classes, when they are alone."""
        return float((self.flows.bytes * self.leg.sent).sum()) / self.leg.alone_ns * NS


@dataclass(frozen=True, eq=False)
class _Leg:
    """One phase of a collective: ns before its flows, the flows (None without), ns that they take alone.

    `sent`: how many flows of each class a rank sends, (F,).
    """

    before_ns: float
    flows: FlowClasses | None
    alone_ns: float
    sent: FloatArray

    def scaled(self, factor: float) -> "_Leg":
        """Return the leg with everything `factor` times as long."""
        flows = self.flows and replace(self.flows, bytes=self.flows.bytes * factor)
        return _Leg(self.before_ns * factor, flows, self.alone_ns * factor, self.sent)


class SharedNetwork:
    """All collectives under way. Drive `carry` as part of a SimPy process."""

    def __init__(
        self, env: simpy.Environment, contention: Contention, traffic: Traffic | None = None
    ) -> None:
        """Start with an idle network; the ranks that `traffic` knows are told of flows."""
        self.env = env
        self._links, self._named_rates = sorted(contention.rates), contention.rates
        self._rates = np.array([contention.rates[link] for link in self._links])
        self._fluid = Fluid(self._rates)
        self._traffic = traffic or Traffic()
        self._felt = contention.felt if self._traffic.hosts else frozenset()
        self._moves: dict[int, _Move] = {}
        self._held: dict[int, int] = {}  # nodes of flows that only ranks still hold up, by tag
        self._weights = contention.weights
        self._legs = [tuple(self._leg(phase) for phase in phases) for phases in contention.phases]
        self._scaled: dict[tuple[int, int], tuple[_Leg, ...]] = {}
        self._token = 0
        self._tags = 0
        self.events = 0

    def carry(
        self, node: int, nominal_ns: int, course: Course | None = None
    ) -> Generator[simpy.Event, None, None]:
        """Take the collective of `node` through its phases; alone that takes exactly `nominal_ns`.

        Its `course` says how that goes; once that is settled, the collective goes before all others.
        """
        begin, planned, course = int(self.env.now), 0.0, course or Course()
        for leg in self._legs_of(node, nominal_ns):
            planned += leg.before_ns
            start = begin + floor(planned) if not course.met else int(self.env.now) + floor(leg.before_ns)
            if start > self.env.now:
                yield self._until(start)
            yield from self._send(node, leg, course)
            planned += leg.alone_ns
        if self.env.now < begin + nominal_ns:  # phases are rounded one by one
            yield self._until(begin + nominal_ns)

    def _legs_of(self, node: int, nominal_ns: int) -> tuple[_Leg, ...]:
        """Return the legs of `node`, together as long as it takes alone.

        They are remembered, because the solver remembers what it found for the very same flows.
        """
        key = (node, nominal_ns)
        if key not in self._scaled:
            if len(self._scaled) >= REMEMBERED:
                self._scaled.clear()
            nominal = sum(leg.before_ns + leg.alone_ns for leg in self._legs[node])
            factor = nominal_ns / nominal if nominal else 1.0
            self._scaled[key] = tuple(leg.scaled(factor) for leg in self._legs[node])
        return self._scaled[key]

    def _until(self, moment: int) -> simpy.Event:
        self.events += 1
        return self.env.timeout(max(0, moment - int(self.env.now)))

    def _send(self, node: int, leg: _Leg, course: Course) -> Generator[simpy.Event, None, None]:
        """Let the flows of a leg pass; note in `course` if others are met, or a rank holds them up."""
        if leg.flows is None:
            return
        self._tags += 1
        tag = self._tags
        move = _Move(node, leg, leg.flows, int(self.env.now), self.env.event(), course)
        self._moves[tag] = move
        if len(self._moves) > 1:
            self._share()
        else:
            alone = self._until(move.begin + floor(leg.alone_ns))
            alone.callbacks.append(lambda _: self._end_alone(tag))
        self._tell()
        yield move.ended
        if node in self._felt and (yield from self._hold(tag, node)):
            course.met = not course.settled

    def _hold(self, tag: int, node: int) -> Generator[simpy.Event, None, bool]:
        """Wait for the rank that is furthest behind, while the flows still pass there; say whether one is."""
        held, self._held[tag] = False, node
        for _ in range(PASSES):
            late = floor(self._traffic.behind(tag))
            if late < 1:
                break
            held = True
            self._tell()
            yield self._until(int(self.env.now) + late)
        del self._held[tag]
        self._tell()
        if held:
            self._traffic.forget(tag)
        return held

    def _tell(self) -> None:
        """Tell ranks which flows pass, and how fast."""
        if self._felt:
            present = {tag: (node, 100) for tag, node in self._held.items()}
            for tag, move in self._moves.items():
                if move.node in self._felt:
                    present[tag] = move.node, self._per_cent(tag, move)
            self._traffic.change(dict(sorted(present.items())))

    def _per_cent(self, tag: int, move: _Move) -> int:
        """Return the rate of flows under way in per cent of what they reach alone."""
        if not move.shared:
            return 100
        return round(100 * float((self._fluid.rates(tag) * move.leg.sent).sum()) / move.rate)

    def _end_alone(self, tag: int) -> None:
        move = self._moves.get(tag)
        if move and not move.shared:
            del self._moves[tag]
            move.ended.succeed()

    def _share(self) -> None:
        """Hand all moves that are not yet there to the fluid solver, each from when it began."""
        for tag, move in self._moves.items():
            if not move.shared:
                move.shared, move.course.met = True, not move.course.settled
                self._fluid.start(move.begin, move.competing, tag)
        self._watch()

    def _watch(self) -> None:
        """Wake up at the next end; older wake-ups lapse."""
        self._token += 1
        moment = self._fluid.next_finish()
        if moment is not None:
            wake = self._until(moment)
            token = self._token
            wake.callbacks.append(lambda _: self._wake(token))

    def _wake(self, token: int) -> None:
        if token != self._token:
            return
        for finished in self._fluid.advance(int(self.env.now)):
            if finished.last:
                self._moves.pop(cast(int, finished.tag)).ended.succeed()
        self._tell()
        self._watch()

    def _leg(self, phase: Phase) -> _Leg:
        if not any(flow.bytes for flow in phase.flows):  # flows of nothing have no rate
            return _Leg(phase.seconds * NS, None, 0.0, np.zeros(0))
        alone = flow_seconds(phase.flows, self._named_rates) * NS
        return _Leg(phase.seconds * NS, self._classes(phase.flows), alone, _sent(phase.flows))

    def _classes(self, flows: Sequence[Flows]) -> FlowClasses:
        """Return the flows as the solver takes them, weighed against those of other collectives."""
        rows = [{self._links.index(link): count for link, count in flow.crossing.items()} for flow in flows]
        weights = self._weights.weights(flows, self._named_rates)
        caps = [flow.bytes / flow.least if flow.least else np.inf for flow in flows]
        return FlowClasses.of_rows(rows, [flow.bytes for flow in flows], weights, caps)


def _sent(flows: Sequence[Flows]) -> FloatArray:
    """Return how many flows of each class a rank sends; where that is not said, how many links they load."""
    sent = np.array([flow.near + flow.far for flow in flows])
    return sent if sent.all() else np.array([sum(flow.crossing.values()) for flow in flows])
