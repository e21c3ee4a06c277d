"""One stage under way on one rank."""

from collections.abc import Callable

from simulator.engine.sharing import Speeds

Done = Callable[[int, int], None]
FOREVER = float("inf")
IDLE: Speeds = ((), ())  # where nothing runs


class Running:
    """One stage that runs: which part of it, what is left of that at nominal speed, and how fast it goes."""

    __slots__ = ("done", "duration_ns", "instance", "last", "left_ns", "part", "speed")

    def __init__(self, instance: int, parts: range, duration_ns: float, left_ns: float, done: Done) -> None:
        """Start with the first of its parts, of which `left_ns` are left."""
        self.instance = instance
        self.done = done
        self.part = parts.start
        self.last = parts.stop - 1
        self.duration_ns = duration_ns
        self.left_ns = left_ns
        self.speed = 1.0
