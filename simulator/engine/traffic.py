"""What ranks feel of the collectives that pass through their engines, memories and links.

The local work at the ends of a collective runs on each rank beside its stages. Flows are a demand there,
capped at the rate that the network gives them (in whole per cent of what they reach alone, rounded up).
Where a rank cannot serve it, the flows fall behind; when the network is done with them, each rank makes
up for what it is behind, and the collective ends when the last has.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from simulator.engine.sharing import Felt

Done = Callable[[int, int], None]


class Rank(Protocol):
    """A rank, or alike ones, on which collectives do something."""

    def begin_end(self, node: int, phase: int, span_ns: float, done: Done) -> None:
        """Start the local work of a collective before the flows of a phase; `done(node, now)` follows."""

    def catch_up(self, tag: int, node: int, done: Done) -> bool:
        """Start what flows of a collective have left undone here; say whether `done(node, now)` follows."""


class Host(Protocol):
    """Ranks through which flows pass."""

    @property
    def ranks(self) -> Sequence[Rank]:
        """All ranks of the host."""

    def minds(self, felt: Felt) -> bool:
        """Whether other flows than at present would change anything here."""

    def catch_up(self) -> Callable[[], None]:
        """Bring the host to the present; return what to do when flows have changed."""


class Traffic:
    """The flows under way: `felt` lists node and per cent of the rate alone, `tags` whose they are."""

    def __init__(self, hosts: Sequence[Host] = ()) -> None:
        """Nothing is under way."""
        self.hosts = hosts
        self.felt: Felt = ()
        self.tags: tuple[int, ...] = ()

    def change(self, under_way: Mapping[int, tuple[int, int]]) -> None:
        """Tell hosts what is under way from now on: by tag, the node and its per cent."""
        tags, felt = tuple(under_way), tuple(under_way.values())
        if (tags, felt) == (self.tags, self.felt):
            return
        going_on = [host.catch_up() for host in self.hosts if host.minds(felt)]
        self.tags, self.felt = tags, felt
        for go_on in going_on:
            go_on()

    def begin_end(self, node: int, phase: int, span_ns: float, done: Done) -> int:
        """Start the local work of a collective on all ranks; return how many will call `done`."""
        ranks = self._ranks()
        for rank in ranks:
            rank.begin_end(node, phase, span_ns, done)
        return len(ranks)

    def make_up(self, tag: int, node: int, done: Done) -> int:
        """Let ranks do what flows that the network is done with left undone; return how many call `done`."""
        return sum([rank.catch_up(tag, node, done) for rank in self._ranks()])

    def _ranks(self) -> list[Rank]:
        return [rank for host in self.hosts for rank in host.ranks]
