"""What is to be done when: everything that falls on the same nanosecond shares one SimPy event."""

from collections.abc import Callable
from typing import Any, cast

import simpy

Action = Callable[[Any], None]


class Agenda:
    """A list of actions by moment. Ranks that do the same at the same time cost one event together."""

    def __init__(self, env: simpy.Environment) -> None:
        """Nothing is to be done."""
        self.env = env
        self.events = 0
        self._due: dict[int, list[tuple[Action, Any]]] = {}

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
        event = self.env.timeout(moment - self.env.now, value=moment)
        event.callbacks.append(self._ring)
        self.events += 1

    def _ring(self, event: simpy.Event) -> None:
        for act, what in self._due.pop(cast(int, event.value)):
            act(what)
