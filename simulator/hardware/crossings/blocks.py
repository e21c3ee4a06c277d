"""Links of hosts, domains, leaves and pods: each is crossed by what leaves a block of ranks, or enters it.

A message crosses a link because of where it comes from (`source`), where it goes to (`target`), or both.
Sums over blocks then do for sums over pairs: what a block sends outside is what it sends in all, in the
share that those outside receive.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from simulator.hardware.crossings.exchange import Exchange
from simulator.quantities import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Rule:
    """Messages between ranks that share `within` (None: any) and none of `across` cross one of some links.

    It is link `source[i] + target[j]`, or one of the two where only one end matters; keys have one entry per
    rank, and `target` is below `width` where there is a `source`. A message leaves the part `share` of its
    bytes there. `far`: it counts among the messages between domains.
    """

    within: IntArray | None
    across: tuple[IntArray, ...]
    source: IntArray | None = None
    target: IntArray | None = None
    width: int = 1
    share: float = 1.0
    far: bool = False

    @cached_property
    def mask(self) -> FloatArray:
        """1 for messages that cross one of the links, else 0, (ranks, ranks)."""
        key = self.across[0]
        here = np.ones((len(key), len(key)), bool)
        if self.within is not None:
            here &= self.within[:, None] == self.within
        for apart in self.across:
            here &= apart[:, None] != apart
        return here.astype(float)

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The places of these messages in a flat matrix, and their links where both ends matter."""
        place = np.flatnonzero(self.mask)
        assert self.source is not None and self.target is not None
        origin, goal = np.divmod(place, len(self.mask))
        return place, self.source[origin] + self.target[goal]

    def load(self, messages: FloatArray, size: int) -> FloatArray:
        """Return the bytes on each of `size` links."""
        if self.source is not None and self.target is not None:
            place, link = self.pairs
            return _counted(link, messages.ravel()[place] * self.share, size)
        key, axis = (self.source, "ij,ij->i") if self.target is None else (self.target, "ij,ij->j")
        assert key is not None
        return _counted(key, np.einsum(axis, messages, self.mask) * self.share, size)

    def lower(self, found: FloatArray, level: FloatArray) -> None:
        """Lower what is `found` so far to the `level` of the link that each message crosses."""
        here = self.mask > 0
        if self.source is not None and self.target is not None:
            place, link = self.pairs
            flat = found.reshape(-1)
            flat[place] = np.minimum(flat[place], level[link])
        elif self.source is not None:
            np.minimum(found, level[self.source][:, None], out=found, where=here)
        elif self.target is not None:
            np.minimum(found, level[self.target], out=found, where=here)

    def spread(self, exchange: Exchange, size: int) -> FloatArray:
        """Return the bytes on each of `size` links in an exchange."""
        group, total = exchange.group, exchange.totals
        if self.source is None:
            assert self.target is not None
            met = self._met(exchange.sent / total, group)
            return _counted(self.target, exchange.received * met * self.share, size)
        found = np.zeros(size)
        for column in range(self.width):
            wanted = exchange.received
            if self.target is not None:
                wanted = np.where(self.target == column, wanted, 0.0)
            moved = exchange.sent / total * self._met(wanted, group) * self.share
            found += _counted(self.source + column, moved, size)
        return found

    def _met(self, amount: FloatArray, group: IntArray) -> FloatArray:
        """Return the `amount` of all that each rank meets by this rule: in and out as blocks overlap."""
        base = [group] if self.within is None else [group, self.within]
        found = np.zeros(len(group))
        for taken in range(len(self.across) + 1):
            for some in combinations(self.across, taken):
                found += (-1) ** taken * _of_block(amount, [*base, *some])
        return np.maximum(found, 0.0)


def _counted(place: IntArray, amount: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(place, amount, size), np.float64)


def _of_block(amount: FloatArray, keys: Sequence[IntArray]) -> FloatArray:
    """Return for each rank the sum over the ranks that have the same keys."""
    joined = keys[0]
    for key in keys[1:]:
        joined = joined * (int(key.max()) + 1) + key
        joined = np.unique(joined, return_inverse=True)[1]
    return np.asarray(np.bincount(joined, amount)[joined], np.float64)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Links of one fabric as rules say who crosses them: `names` (links,) their class, `capacity` bytes/s.

    `ends` are pairs of a rank and a link that is beside it, (2, n).
    """

    names: tuple[str, ...]
    capacity: FloatArray
    rules: tuple[Rule, ...]
    ends: IntArray

    @property
    def parts(self) -> int:
        """Messages inside domains, and between them."""
        return 2

    @cached_property
    def far(self) -> FloatArray:
        """Which messages go between domains."""
        masks = [rule.mask for rule in self.rules if rule.far]
        return np.maximum.reduce(masks) if masks else np.zeros_like(self.rules[0].mask)

    def paced(self, speed: FloatArray) -> "Blocks":
        """Return the same with the links of slow ranks slow; what ranks share goes at the slowest's pace."""
        pace = np.ones(len(self.capacity))
        np.minimum.at(pace, self.ends[1], speed[self.ends[0]])
        return replace(self, capacity=self.capacity * pace)

    def loads(self, messages: FloatArray) -> FloatArray:
        """Return the bytes that cross each link, inside and between domains."""
        return self._summed((rule, rule.load(messages, len(self.names))) for rule in self.rules)

    def spread(self, exchange: Exchange) -> FloatArray:
        """Return the same for an exchange."""
        return self._summed((rule, rule.spread(exchange, len(self.names))) for rule in self.rules)

    def _summed(self, each: Iterator[tuple[Rule, FloatArray]]) -> FloatArray:
        found = np.zeros((2, len(self.names)))
        for rule, load in each:
            found[int(rule.far)] += load
        return found

    def least(self, level: FloatArray) -> FloatArray:
        """Return the lowest level on the way of each message."""
        found = np.full_like(self.rules[0].mask, np.inf)
        for rule in self.rules:
            rule.lower(found, level)
        return found

    def seconds(self, loads: FloatArray) -> Mapping[str, FloatArray]:
        """Return what each part leaves on the busiest link of each class."""
        busy, found = loads / self.capacity, {}
        for name, links in self._of_class.items():
            found[name] = busy[:, links[int(busy[:, links].sum(axis=0).argmax())]]
        return found

    @cached_property
    def _of_class(self) -> dict[str, IntArray]:
        names = np.array(self.names)
        limited = dict.fromkeys(names[np.isfinite(self.capacity)].tolist())
        return {name: np.flatnonzero(names == name) for name in limited}


@dataclass
class Book:
    """Where links and rules are entered one after the other."""

    names: list[str] = field(default_factory=list)
    capacity: list[float] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    ends: list[IntArray] = field(default_factory=list)

    def links(self, key: IntArray, names: Sequence[str], rate: FloatArray, width: int = 1) -> IntArray:
        """Enter `width` links for each number in `key`, as named and fast as its first rank says.

        `key`, `names` and `rate` have one entry per rank. Return the (first) link of each rank.
        """
        first = len(self.names)
        _, at, place = np.unique(key, return_index=True, return_inverse=True)
        for rank in at:
            self.names += [names[rank]] * width
            self.capacity += [float(rate[rank])] * width
        return np.asarray(first + place * width, np.int64)

    def beside(self, ranks: IntArray, links: IntArray) -> None:
        """Enter that a rank's speed is felt on a link, pair by pair."""
        self.ends.append(np.stack([ranks, links]))

    def rule(self, rule: Rule) -> None:
        """Enter who crosses some links."""
        self.rules.append(rule)

    def close(self) -> Blocks:
        """Return what was entered; links without a limit carry nothing that counts."""
        ends = np.concatenate(self.ends, axis=1) if self.ends else np.zeros((2, 0), np.int64)
        return Blocks(tuple(self.names), np.array(self.capacity), tuple(self.rules), ends)
