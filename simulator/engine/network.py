"""Sharing of the network: collectives that are under way at the same time share links max-min.

A collective that meets no other takes exactly the time that it takes alone. As soon as a second one
starts to send, both are handed to the fluid solver, the first from the moment at which it began.
Ranks are told which flows pass through them (`Traffic`), do the local work at the ends of collectives,
and may hold a collective up.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import cast

import numpy as np
import simpy

from simulator.costs import Flows, Phase
from simulator.costs.phases import flow_seconds
from simulator.engine.contention import Contention
from simulator.engine.fluid.flows import FlowClasses
from simulator.engine.fluid.fluid import Fluid
from simulator.engine.traffic import Done, Traffic
from simulator.quantities import FloatArray

NS = 1e9
REMEMBERED = 1024
FIRST = 1e6  # the weight of flows whose end has been told: they keep their pace
ROUNDING = 1e-9


@dataclass(eq=False)
class Course:
    """How a collective fares: it has `met` others (or was held up), or its end is `settled` and stands."""

    met: bool = False
    settled: bool = False


@dataclass(eq=False)
class _Move:
    """The flows of one phase of `node` under way since `begin` ns; `shared` once in the fluid solver."""

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

    def share(self, rates: FloatArray, link_rates: FloatArray) -> float:
        """Return how fast flows pass, 1 for as fast as alone: on the link that alone is busiest.

        Over all the time that the flows take it adds up to the time that they take alone.
        """
        flows = self.flows
        owner = flows.owner()
        load = np.bincount(flows.link, flows.coefficient * flows.bytes[owner], len(link_rates))
        busiest = int(np.argmax(load / link_rates))
        passing = float((flows.coefficient * rates[owner])[flows.link == busiest].sum())
        return passing * self.leg.alone_ns / NS / float(load[busiest])


@dataclass(frozen=True, eq=False)
class _Leg:
    """One phase of a collective: ns before its flows, the flows (None without), ns that they take alone."""

    before_ns: float
    flows: FlowClasses | None
    alone_ns: float

    def scaled(self, factor: float) -> "_Leg":
        """Return the leg with everything `factor` times as long."""
        flows = self.flows and replace(self.flows, bytes=self.flows.bytes * factor)
        return _Leg(self.before_ns * factor, flows, self.alone_ns * factor)


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
        self._ends = contention.shared_ends if self._traffic.hosts else frozenset()
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
        for place, leg in enumerate(self._legs_of(node, nominal_ns)):
            planned += leg.before_ns
            start = begin + floor(planned) if not course.met else int(self.env.now) + floor(leg.before_ns)
            if start > self.env.now and (yield from self._prepare(node, place, start)):
                course.met = not course.settled
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
        if node in self._felt and (yield from self._make_up(tag, node)):
            course.met = not course.settled

    def _prepare(self, node: int, place: int, start: int) -> Generator[simpy.Event, None, bool]:
        """Let pass what comes before the flows of a leg; return whether a rank held up its local work."""
        if (node, place) not in self._ends:
            yield self._until(start)
            return False
        span_ns = start - int(self.env.now)
        yield from self._by_ranks(lambda done: self._traffic.begin_end(node, place, span_ns, done))
        return self.env.now > start

    def _make_up(self, tag: int, node: int) -> Generator[simpy.Event, None, bool]:
        """Wait for the ranks where flows are still behind; say whether there are any."""
        self._tell()
        return (yield from self._by_ranks(lambda done: self._traffic.make_up(tag, node, done)))

    def _by_ranks(self, begin: Callable[[Done], int]) -> Generator[simpy.Event, None, bool]:
        """Wait until all ranks on which something begins are done with it; say whether there are any."""
        ended, done = self.env.event(), 0

        def one_done(_node: int, _now: int) -> None:
            nonlocal done
            done += 1
            if done == begun:
                ended.succeed()

        begun = begin(one_done)
        if begun:
            self.events += 1
            yield ended
        return begun > 0

    def _tell(self) -> None:
        """Tell ranks which flows pass, and how fast."""
        if self._felt:
            moves = [(tag, move) for tag, move in sorted(self._moves.items()) if move.node in self._felt]
            self._traffic.change({tag: (move.node, self._per_cent(tag, move)) for tag, move in moves})

    def _per_cent(self, tag: int, move: _Move) -> int:
        """Return the rate of flows under way in per cent of what they reach alone, never too few."""
        if not move.shared:
            return 100
        if not self._fluid.carries(tag):  # all have ended at this very moment, which is not told yet
            return 0
        return ceil(100 * move.share(self._fluid.rates(tag), self._rates) - ROUNDING)

    def _end_alone(self, tag: int) -> None:
        move = self._moves.get(tag)
        if move and not move.shared:
            del self._moves[tag]
            move.ended.succeed()

    def _share(self) -> None:
        """Hand all moves that are not yet there to the fluid solver, each from when it began."""
        for move in self._moves.values():
            others = [other.flows.link for other in self._moves.values() if other is not move]
            if others and np.isin(move.flows.link, np.concatenate(others)).any():
                move.course.met = not move.course.settled
        for tag, move in self._moves.items():
            if not move.shared:
                move.shared = True
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
            return _Leg(phase.seconds * NS, None, 0.0)
        alone = flow_seconds(phase.flows, self._named_rates) * NS
        return _Leg(phase.seconds * NS, self._classes(phase.flows), alone)

    def _classes(self, flows: Sequence[Flows]) -> FlowClasses:
        """Return the flows as the solver takes them, weighed against those of other collectives."""
        rows = [{self._links.index(link): count for link, count in flow.crossing.items()} for flow in flows]
        weights = self._weights.weights(flows, self._named_rates)
        caps = [flow.bytes / flow.least if flow.least else np.inf for flow in flows]
        return FlowClasses.of_rows(rows, [flow.bytes for flow in flows], weights, caps)
