"""Broadcast and point-to-point."""

from dataclasses import dataclass

from simulator.costs.algorithms.algorithm import Plan
from simulator.costs.algorithms.ground import Ground, Load
from simulator.costs.algorithms.reductions import depth_start_up, ring_start_up, through_all
from simulator.costs.phases import Phase


@dataclass(frozen=True)
class RingBroadcast:
    """One rank's vector passed on from rank to rank, in chunks: S through every rank, n - 1 messages."""

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return one phase."""
        return Plan("ring", (Phase(ring_start_up(ground, 1), through_all(ground, load.busiest)),))


@dataclass(frozen=True)
class TreeBroadcast:
    """One rank's vector down two binary trees at once (Sanders, Speck and Traff, 2009): S, log2 n deep.

    On a torus the chips along each axis pass it on.
    """

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return one phase."""
        seconds, flows = depth_start_up(ground, 1), through_all(ground, load.busiest)
        return Plan("double binary tree", (Phase(seconds, flows),))


@dataclass(frozen=True)
class PointToPoint:
    """Every rank sends to the one `distance` further on, all at once; the slowest pair sets the time.

    With a distance below the size of a domain, some pairs meet inside and some across a border.
    """

    distance: int = 1

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return one phase."""
        level = ground.widest
        ways = [ground.near] if ground.far is None or self.distance < ground.inside else []
        ways += [ground.far] if ground.far else []
        flows = tuple(way.to_next(load.busiest) for way in ways)
        return Plan("point to point", (Phase(level.latency + level.cable, flows),))
