"""The stages that run on the ranks of one host now, and when they end.

Inside, time is real: a stage that ends at 3.4 ns gives back what it held at 3.4 ns. Outside, it
has ended at 4 ns. One wake-up is pending at a time; where an end moves away from it, it is left to
pass in vain, which is cheaper than a second one.
"""

from collections.abc import Callable, Sequence
from math import ceil, inf

from simulator.engine.agenda import Agenda
from simulator.engine.sharing import Felt, Lane, Lanes, Law, Needs
from simulator.engine.traffic import Traffic

Done = Callable[[int, int], None]
NEVER = 2**63
ROUNDING_NS = 1e-6  # a stage that misses a whole nanosecond by less than this has met it


class _Running:
    """One stage that runs: which part of it, what is left of that at nominal speed, and how fast it goes."""

    __slots__ = ("duration_ns", "instance", "last", "left_ns", "part", "speed")

    def __init__(self, instance: int, parts: range, duration_ns: float, left_ns: float) -> None:
        self.instance = instance
        self.part = parts.start
        self.last = parts.stop - 1
        self.duration_ns = duration_ns
        self.left_ns = left_ns
        self.speed = 1.0


class SharedRank:
    """What runs on one rank, or on each of `count` ranks of the same host that move as one.

    `done(instance, now)` is called when a stage ends. Alone, a rank keeps its even part of a host;
    `SharedHost.of` puts several on one.
    """

    __slots__ = ("count", "done", "host", "kind", "lane", "late", "running")

    def __init__(
        self, agenda: Agenda, law: Law | Needs, done: Done, traffic: Traffic | None = None, kind: int = 0
    ) -> None:
        """Start with an idle rank of a `kind`, on which flows of collectives pass as `traffic` says."""
        self.done = done
        self.kind = kind
        self.count = 1
        self.running: list[_Running] = []
        self.lane: Lane = ()  # the parts that run, in the same order
        self.late: dict[int, float] = {}  # ns by which this rank holds up flows, by their tag
        known = law if isinstance(law, Law) else Law([law])
        self.host = SharedHost(agenda, known, [self], traffic or Traffic())

    def begin(self, instance: int, node: int, duration_ns: int) -> None:
        """Start `instance` now; with nobody beside it on its rank or host it takes its nominal time."""
        parts = self.host.law.parts_of(self.kind, node)
        first = duration_ns * self.host.law.parts[parts.start].share
        self.host.begin(self, _Running(instance, parts, duration_ns, first))


class SharedHost:
    """Ranks that share a host; `ranks` may be one with an even part of it."""

    __slots__ = (
        "_agenda",
        "_held_up",
        "_lanes",
        "_since",
        "_span_ns",
        "_stale",
        "_telling",
        "_traffic",
        "_wake_at",
        "law",
        "ranks",
    )

    def __init__(self, agenda: Agenda, law: Law, ranks: Sequence[SharedRank], traffic: Traffic) -> None:
        """Start with idle ranks."""
        self._agenda = agenda
        self.law = law
        self.ranks = ranks
        self._traffic = traffic
        self._since = 0  # the time up to which what is left of each is right
        self._span_ns = inf  # from then to the next end
        self._lanes: Lanes = ()  # what ran when speeds were set, of all ranks
        self._held_up: list[tuple[dict[int, float], int, float]] = []  # late of a rank, tag, share lost
        self._stale = False  # whether speeds are to be set anew
        self._wake_at = NEVER
        self._telling = False

    @classmethod
    def of(cls, agenda: Agenda, law: Law, ranks: Sequence[tuple[SharedRank, int]], traffic: Traffic) -> None:
        """Put ranks on one host, each with the number of ranks that it stands for."""
        host = cls(agenda, law, [rank for rank, _ in ranks], traffic)
        for rank, count in ranks:
            rank.host, rank.count = host, count

    def begin(self, rank: SharedRank, started: _Running) -> None:
        """Let a stage begin on `rank` now."""
        over = [] if self._telling else self._run_to(self._agenda.now)
        rank.running.append(started)
        rank.lane = (*rank.lane, started.part)
        self._stale = True
        if not self._telling:  # otherwise it follows at once on a stage that has just ended
            self._go_on(over)

    def minds(self, felt: Felt) -> bool:
        """Whether other flows than at present would change anything here."""
        return bool(self._lanes) and self.law.minds(self._lanes, self._traffic.felt, felt)

    @property
    def holds_up(self) -> bool:
        """Whether flows of collectives cannot pass here as fast as the network lets them."""
        return bool(self._held_up)

    def catch_up(self) -> Callable[[], None]:
        """Bring the host to the present before flows change; return what to do when they have."""
        over = self._run_to(self._agenda.now)
        self._stale = True
        return lambda: self._go_on(over)

    def _run_to(self, now: int) -> list[tuple[SharedRank, _Running]]:
        """Let the running stages proceed to the present; return those that have ended."""
        left, self._since = float(now - self._since), now
        over: list[tuple[SharedRank, _Running]] = []
        while self._span_ns <= left + ROUNDING_NS:
            span = self._span_ns
            left = max(0.0, left - span)
            self._pass(span)
            over += self._ended()
            self._set_speeds()
        self._pass(left)
        self._span_ns -= left
        return over

    def _pass(self, span: float) -> None:
        """Let all stages run for `span` ns, and note what flows lose meanwhile."""
        if span:
            for rank in self.ranks:
                for one in rank.running:
                    one.left_ns -= one.speed * span
            for late, tag, lost in self._held_up:
                late[tag] = late.get(tag, 0.0) + lost * span

    def _ended(self) -> list[tuple[SharedRank, _Running]]:
        """Return the stages that end now; those of which only a part ends go on with the next one."""
        over = []
        for rank in self.ranks:
            ending = [one for one in rank.running if one.left_ns <= ROUNDING_NS * one.speed]
            for one in ending:
                if one.part < one.last:
                    one.part += 1
                    one.left_ns += self.law.parts[one.part].share * one.duration_ns
                else:
                    rank.running.remove(one)
                    over.append((rank, one))
            if ending:
                rank.lane = tuple([one.part for one in rank.running])
        return over

    def _set_speeds(self) -> None:
        """Share anew among what runs now, and see when the next part ends."""
        self._stale = False
        busy = [rank for rank in self.ranks if rank.lane]
        self._lanes = _lanes(busy)
        found = self.law.speeds(self._lanes, self._traffic.felt)
        span, self._held_up = inf, []
        for rank in busy:
            speeds, lost = found[rank.lane]
            for one, speed in zip(rank.running, speeds, strict=True):
                one.speed = speed
                left = one.left_ns / speed
                if left < span:
                    span = left
            if lost:
                tags = self._traffic.tags
                self._held_up += [(rank.late, tags[place], share) for place, share in lost]
        self._span_ns = span

    def _go_on(self, over: list[tuple[SharedRank, _Running]]) -> None:
        """Tell what has ended, share with what has begun, and see to it that somebody wakes up."""
        now = self._since
        self._telling = True
        for rank, one in over:
            rank.done(one.instance, now)
        self._telling = False
        if self._stale:
            self._set_speeds()
        if self._span_ns < inf:
            self._wake_by(now + ceil(self._span_ns - ROUNDING_NS))

    def _wake_by(self, moment: int) -> None:
        if moment < self._wake_at:
            self._wake_at = moment
            self._agenda.at(moment, self._wake, moment)

    def _wake(self, moment: int) -> None:
        if moment == self._wake_at:
            self._wake_at = NEVER
            self._go_on(self._run_to(moment))


def _lanes(busy: Sequence[SharedRank]) -> Lanes:
    """Return what runs on all busy ranks, as often as there are such ranks."""
    if len(busy) == 1:
        return (busy[0].lane,) * busy[0].count
    return tuple(sorted([lane for rank in busy for lane in (rank.lane,) * rank.count]))
