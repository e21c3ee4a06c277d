"""What placements are worth: the time that tables take on their chips, and the steps that were predicted."""

from dataclasses import dataclass
from typing import Any

from simulator.sharding.placement import Placement

LINEAR = (
    "seconds per step of reading, updating and sending rows on a chip, one table after the other, each in "
    "proportion to its keys and columns"
)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A placement that was looked at: what was minimised, the narrowest piece allowed, and its step in ms."""

    objective: str
    narrowest: int
    pieces: int
    step_ms: float

    def to_dict(self) -> dict[str, Any]:
        """Return it, JSON-ready."""
        return {
            "objective": self.objective,
            "narrowest_columns": self.narrowest,
            "pieces": self.pieces,
            "step_ms": self.step_ms,
        }


@dataclass(frozen=True, eq=False)
class PlacedSteps:
    """Simulated steps in ms: with the scenario's own sharding (None: it does not fit) and with the placement.

    `linear` is the placement with chip loads in seconds (`LINEAR`) and a bound on the longest of them.
    """

    before_ms: float | None
    after_ms: float
    linear: Placement
    candidates: tuple[Candidate, ...]

    @property
    def gains(self) -> bool:
        """Whether the placement is predicted to be faster than the scenario's own sharding."""
        return self.before_ms is None or self.after_ms < self.before_ms

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-ready."""
        return {
            "step_ms": {"before": self.before_ms, "after": self.after_ms},
            "time": {
                "of": LINEAR,
                "busiest_ms": self.linear.busiest * 1e3,
                "bound_ms": self.linear.bound * 1e3,
                "gap": self.linear.gap,
                "proven": self.linear.proven,
                "loads_ms": (self.linear.loads * 1e3).tolist(),
            },
            "candidates": [one.to_dict() for one in self.candidates],
        }
