"""What ranks feel of the flows of collectives that pass through their memories and links.

A rank sees flows as a demand, capped at the rate that the network gives them (in whole per cent of what
they reach alone). Where a rank cannot serve it, the flows fall behind there; the rank that is furthest
behind when the network is done with them holds up the collective by as much.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from simulator.engine.sharing import Felt


class Late(Protocol):
    """A rank: by how many ns it has held up flows so far, by their tag."""

    late: dict[int, float]


class Host(Protocol):
    """Ranks through which flows pass."""

    @property
    def ranks(self) -> Sequence[Late]:
        """All ranks of the host."""

    def minds(self, felt: Felt) -> bool:
        """Whether other flows than at present would change anything here."""

    @property
    def holds_up(self) -> bool:
        """Whether flows lose time here at present."""

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
        if (tags, felt) != (self.tags, self.felt):
            self._settle([host for host in self.hosts if host.minds(felt)], tags, felt)

    def behind(self, tag: int) -> float:
        """Return by how many ns the flows of `tag` are behind on the worst rank, and forget it."""
        self._settle([host for host in self.hosts if host.holds_up], self.tags, self.felt)
        return max([rank.late.pop(tag, 0.0) for host in self.hosts for rank in host.ranks], default=0.0)

    def forget(self, tag: int) -> None:
        """Drop what the flows of `tag`, now over, have fallen behind since: nobody asks for it again."""
        for host in self.hosts:
            for rank in host.ranks:
                rank.late.pop(tag, None)

    def _settle(self, hosts: Sequence[Host], tags: tuple[int, ...], felt: Felt) -> None:
        going_on = [host.catch_up() for host in hosts]
        self.tags, self.felt = tags, felt
        for go_on in going_on:
            go_on()
