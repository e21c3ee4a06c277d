"""All-reduce, and its two halves reduce-scatter and all-gather: rings, trees, and level by level."""

from dataclasses import dataclass
from math import ceil, log2

from simulator.costs.algorithms.algorithm import Algorithm, Plan
from simulator.costs.algorithms.ground import Ground, Level, Load
from simulator.costs.phases import Flows, Phase
from simulator.errors import InputError


@dataclass(frozen=True)
class Ring:
    """Rings through all ranks, as many as a domain has ranks, each with its own crossing of domains.

    Each moves 2 (n - 1)/n of its share of the vector through every rank, in 2 (n - 1) messages one
    after the other (Patarasuk and Yuan, 2009). Links inside and between work at the same time.
    """

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return one phase."""
        n = ground.ranks
        moved = 2 * (n - 1) / n * load.busiest
        return Plan("ring", (Phase(ring_start_up(ground, 2), through_all(ground, moved)),))


@dataclass(frozen=True)
class Tree:
    """Two binary trees that share the work, up and then down (Sanders, Speck and Traff, 2009).

    Every rank sends 2 S in the end, an inner one in the one tree and a leaf in the other, in the limit
    of many small chunks; the first of them passes ceil(log2) levels twice, inside domains and between.
    """

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return one phase. Raises InputError on a torus, where rings along the axes are known only."""
        if ground.grid:
            raise InputError("all_reduce: tree is not known on a torus; its rings run along the axes: ring")
        flows = through_all(ground, 2 * load.busiest)
        return Plan("double binary tree", (Phase(depth_start_up(ground, 2), flows),))


@dataclass(frozen=True)
class Hierarchical:
    """Reduce-scatter in the domain, all-reduce of each shard between domains, all-gather.

    The start-up between domains was measured between two and grows with log2 of their number, as
    tuned libraries show at scale; inside, it was measured over a whole domain. The two near phases
    are put together, before the far one.
    """

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return a phase for each level."""
        near = _on_level(ground.near, ground.inside, load.busiest)
        if ground.far is None:
            return Plan("ring", near)
        far = _on_level(ground.far, ground.domains, load.busiest / ground.inside)
        return Plan("hierarchical ring", near + far)


def _on_level(level: Level, ranks: int, size: float) -> tuple[Phase, ...]:
    moved = 2 * (ranks - 1) / ranks * size
    return (Phase(level.tuned, (level.to_next(moved),)),) if ranks > 1 else ()


@dataclass(frozen=True)
class HalfRing:
    """One half of a ring: (n - 1)/n of the vector in n - 1 messages, for reduce-scatter and all-gather."""

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return one phase."""
        n = ground.ranks
        moved = (n - 1) / n * load.busiest
        return Plan("ring", (Phase(ring_start_up(ground, 1), through_all(ground, moved)),))


@dataclass(frozen=True)
class Half:
    """One half of an all-reduce under `whole`: half of the bytes, and the start-up of a collective."""

    whole: Algorithm = Hierarchical()

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return the phases of the all-reduce of half the vector."""
        return self.whole.plan(ground, load.halved())


def through_all(ground: Ground, moved: float) -> tuple[Flows, ...]:
    """Return `moved` bytes from each rank to the next, on average, in as many rings as a domain has ranks."""
    if ground.far is None:
        return (ground.near.to_next(moved),)
    each = moved / ground.inside
    far = ground.far.to_next(each)
    return (far,) if ground.inside == 1 else (ground.near.to_next(each, ground.inside - 1), far)


def ring_start_up(ground: Ground, rounds: int) -> float:
    """Return the start-up of so many rounds through all ranks: messages inside domains, and between."""
    if ground.grid:
        return ground.near.tuned * rounds / 2
    if ground.far is None:
        return ground.near.seconds(rounds * (ground.ranks - 1))
    inside = rounds * (ground.ranks - ground.domains)
    return ground.far.seconds(rounds * (ground.domains - 1)) + inside * _further(ground.near)


def depth_start_up(ground: Ground, passes: int) -> float:
    """Return the start-up of so many passes through a tree over the ranks of a domain and the domains."""
    if ground.grid:
        return ground.near.tuned * passes / 2
    inside = passes * ceil(log2(ground.inside))
    if ground.far is None:
        return ground.near.seconds(inside)
    return ground.far.seconds(passes * ceil(log2(ground.domains))) + inside * _further(ground.near)


def _further(level: Level) -> float:
    """Return what a message costs in a collective that has begun."""
    return level.per_message + level.cable
