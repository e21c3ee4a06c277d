"""What is to be done when: everything that falls on the same nanosecond shares one SimPy event."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, cast

import simpy

Action = Callable[[Any], None]


class Agenda:
    """A list of actions by moment. Ranks that do the same at the same time cost one event together.

    SimPy is told of a moment when it is the next one: its queue, which sorts whole events, stays short
    however many ranks wait, and moments, plain numbers, are quicker to sort.
    """

    def __init__(self, env: simpy.Environment) -> None:
        """Nothing is to be done."""
        self.env = env
        self.events = 0
        self._due: dict[int, list[tuple[Action, Any]]] = {}
        self._moments: list[int] = []  # those of `_due`, as a heap
        self._told: set[int] = set()  # those that SimPy knows; the first of all is one of them

    @property
    def now(self) -> int:
        """The time, ns."""
        return int(self.env.now)

    def at(self, moment: int, act: Action, what: Any) -> None:
        """Call `act(what)` at `moment` ns, now or later; at the same moment, first come, first served."""
        due = self._due.get(moment)
        if due is not None:
            due.append((act, what))
            return
        self._due[moment] = [(act, what)]
        heappush(self._moments, moment)
        if self._moments[0] == moment:
            self._tell(moment)

    def _tell(self, moment: int) -> None:
        self._told.add(moment)
        event = self.env.timeout(moment - self.env.now, value=moment)
        event.callbacks.append(self._ring)
        self.events += 1

    def _ring(self, event: simpy.Event) -> None:
        moment = heappop(self._moments)
        assert moment == event.value
        self._told.remove(moment)
        for act, what in self._due.pop(cast(int, event.value)):
            act(what)
        if self._moments and self._moments[0] not in self._told:
            self._tell(self._moments[0])
