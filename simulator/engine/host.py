"""The stages that run on the ranks of one host now, and when they end.

Inside, time is real: a stage that ends at 3.4 ns gives back what it held at 3.4 ns. Outside, it
has ended at 4 ns. One wake-up is pending at a time; where an end moves away from it, it is left to
pass in vain, which is cheaper than a second one.
"""

from collections.abc import Callable, Sequence

from simulator.engine.agenda import Agenda
from simulator.engine.moment import NEVER, Moment, after, between
from simulator.engine.needs import Needs
from simulator.engine.running import FOREVER, IDLE, Done, Running
from simulator.engine.sharing import Felt, Lane, Lanes, Law, Speeds
from simulator.engine.traffic import Traffic

ROUNDING_NS = 1e-6  # a stage that misses a whole nanosecond by less than this has met it
NOTHING_NS = 1e-3  # what adds up from roundings of speeds


class SharedRank:
    """What runs on one rank, or on each of `count` ranks of the same host that move as one.

    `done(instance, now)` is called when a stage ends. Alone, a rank keeps its even part of a host;
    `SharedHost.of` puts several on one.
    """

    __slots__ = (
        *("count", "done", "due", "found", "host", "joint", "kind", "lane", "late", "lost", "running"),
        *("since", "solved", "stale"),
    )

    def __init__(
        self, agenda: Agenda, law: Law | Needs, done: Done, traffic: Traffic | None = None, kind: int = 0
    ) -> None:
        """Start with an idle rank of a `kind`, on which flows of collectives pass as `traffic` says."""
        self.done = done
        self.kind = kind
        self.count = 1
        self.running: list[Running] = []
        self.lane: Lane = ()  # the parts that run, in the same order
        self.late: dict[int, float] = {}  # ns by which this rank holds up flows, by their tag
        self.lost: list[tuple[int, float]] = []  # tags of flows that lose time here now, ns lost per ns
        self.since: Moment = (0, 0.0)  # the time up to which what is left of each is right
        self.due: Moment = (NEVER, 0.0)  # when the next one ends here
        self.stale = False  # whether speeds are to be set anew
        self.found = IDLE  # the speeds at which it runs, and what flows lose here
        self.solved: Lanes = ()  # what ran when they were set, of all ranks that were solved together
        self.joint = False  # whether these use the host
        known = law if isinstance(law, Law) else Law([law])
        self.host = SharedHost(agenda, known, [self], traffic or Traffic())

    def begin(self, instance: int, node: int, duration_ns: int) -> None:
        """Start `instance` now; with nobody beside it on its rank or host it takes its nominal time."""
        parts = self.host.law.parts_of(self.kind, node)
        first = duration_ns * self.host.law.parts[parts.start].share
        self.host.begin(self, Running(instance, parts, duration_ns, first, self.done))

    def begin_end(self, node: int, phase: int, span_ns: float, done: Done) -> None:
        """Start the local work of a collective before the flows of a phase; `done(node, now)` follows."""
        parts = self.host.law.end_of(self.kind, node, phase)
        self.host.begin(self, Running(node, parts, span_ns, span_ns, done))

    def catch_up(self, tag: int, node: int, done: Done) -> bool:
        """Start what flows of a collective have left undone here; say whether `done(node, now)` follows."""
        self.bring_to((self.host.now, 0.0))
        late_ns = self.late.pop(tag, 0.0)
        if late_ns <= NOTHING_NS:
            return False
        parts = self.host.law.flows_of(self.kind, node)
        self.host.begin(self, Running(node, parts, late_ns, late_ns, done))
        return True

    def bring_to(self, at: Moment) -> None:
        """Let what runs proceed to this time, and note what flows lose meanwhile."""
        since = self.since
        if at == since:
            return
        span, self.since = at[0] - since[0] + (at[1] - since[1]), at  # `between`, called most of all
        if span:
            for one in self.running:
                one.left_ns -= one.speed * span
            for tag, lost in self.lost:
                self.late[tag] = self.late.get(tag, 0.0) + lost * span


class SharedHost:
    """Ranks that share a host; `ranks` may be one with an even part of it."""

    __slots__ = (
        *("_agenda", "_at", "_due", "_settling", "_stale", "_telling", "_traffic", "_wake_at", "law"),
        "ranks",
    )

    def __init__(self, agenda: Agenda, law: Law, ranks: Sequence[SharedRank], traffic: Traffic) -> None:
        """Start with idle ranks."""
        self._agenda = agenda
        self.law = law
        self.ranks = ranks
        self._traffic = traffic
        self._at: Moment = (0, 0.0)  # the present, as far as the host has come
        self._due: Moment = (NEVER, 0.0)  # the next end
        self._stale = False  # whether speeds are to be set anew
        self._wake_at = NEVER
        self._telling = False
        self._settling = False  # whether speeds will be set anew before time goes on

    @classmethod
    def of(cls, agenda: Agenda, law: Law, ranks: Sequence[tuple[SharedRank, int]], traffic: Traffic) -> None:
        """Put ranks on one host, each with the number of ranks that it stands for."""
        host = cls(agenda, law, [rank for rank, _ in ranks], traffic)
        for rank, count in ranks:
            rank.host, rank.count = host, count

    @property
    def now(self) -> int:
        """The present on the clock, ns."""
        return self._agenda.now

    def begin(self, rank: SharedRank, started: Running) -> None:
        """Let a stage begin on `rank` now."""
        over = [] if self._telling else self._run_to(self.now)
        rank.bring_to(self._at)
        rank.running.append(started)
        rank.lane = (*rank.lane, started.part)
        rank.stale = self._stale = True
        if over:
            self._go_on(over)
        elif not (self._telling or self._settling):  # otherwise it follows at once on what has just ended
            self._settling = True
            self._agenda.at(self.now, self._settle, None)  # after all else that begins at this moment

    def _settle(self, _: None) -> None:
        self._settling = False
        self._go_on([])

    def minds(self, felt: Felt) -> bool:
        """Whether other flows than at present would change anything here."""
        before, solved = self._traffic.felt, {rank.solved for rank in self.ranks if rank.lane}
        return self._stale or any(self.law.minds(lanes, before, felt) for lanes in solved)

    def catch_up(self) -> Callable[[], None]:
        """Bring the host to the present before flows change; return what to do when they have."""
        over = self._run_to(self.now)
        self._stale = True
        for rank in self.ranks:
            rank.stale = True
        return lambda: self._go_on(over)

    def _run_to(self, now: int) -> list[Running]:
        """Let time pass to the present; return the stages that have ended."""
        over: list[Running] = []
        while self._due <= (now, ROUNDING_NS):
            self._at = whole, part = self._due
            for rank in self.ranks:
                due = rank.due
                if due[0] - whole + (due[1] - part) <= ROUNDING_NS:
                    over += self._ended_on(rank)
            if between(self._at, (now, 0.0)) > ROUNDING_NS:
                self._set_speeds()
            else:  # what ends now is told first, for what follows on it begins now, too
                self._stale, self._due = True, (NEVER, 0.0)
        self._at = (now, 0.0)
        return over

    def _ended_on(self, rank: SharedRank) -> list[Running]:
        """Return the stages that end now; those of which only a part ends go on with the next one."""
        over, rank.stale = [], True
        rank.bring_to(self._at)
        for one in [one for one in rank.running if one.left_ns <= ROUNDING_NS * one.speed]:
            if one.part < one.last:
                one.part += 1
                one.left_ns += self.law.parts[one.part].share * one.duration_ns
            else:
                rank.running.remove(one)
                over.append(one)
        rank.lane = tuple([one.part for one in rank.running])
        return over

    def _set_speeds(self) -> None:
        """Share anew where something has changed, and see when the next part ends."""
        self._stale = False
        if len(self.ranks) == 1:  # most often, and then nobody else is to be asked
            (rank,) = self.ranks
            if rank.stale:
                self._solve_alone(rank)
            self._due = rank.due
            return
        on_host = self.law.on_host
        if any([rank.joint or on_host(rank.lane) for rank in self.ranks if rank.stale]):
            self._solve([rank for rank in self.ranks if on_host(rank.lane)])
        for rank in self.ranks:
            if rank.stale:
                self._solve_alone(rank)
        self._due = min([rank.due for rank in self.ranks])

    def _solve_alone(self, rank: SharedRank) -> None:
        """Set the speeds of stages on a rank with which nobody shares anything now."""
        rank.solved = (rank.lane,) * rank.count if rank.lane else ()
        rank.joint = False
        self._set(rank, self.law.speeds(rank.solved, self._traffic.felt)[rank.lane] if rank.lane else IDLE)

    def _solve(self, ranks: Sequence[SharedRank]) -> None:
        """Set the speeds of stages on ranks that use the host together, and what flows lose there."""
        lanes = _lanes(ranks)
        found = self.law.speeds(lanes, self._traffic.felt)
        for rank in ranks:
            rank.joint, rank.solved = True, lanes
            self._set(rank, found[rank.lane] if rank.lane else IDLE)

    def _set(self, rank: SharedRank, found: Speeds) -> None:
        """Let what runs on a rank go on at these speeds, and see when the next part ends there."""
        if not rank.stale and found == rank.found:
            return
        rank.bring_to(self._at)
        rank.stale, rank.found = False, found
        speeds, lost = found
        for one, speed in zip(rank.running, speeds, strict=True):
            one.speed = speed
        soonest = min([one.left_ns / one.speed for one in rank.running], default=FOREVER)
        rank.lost = [(self._traffic.tags[place], share) for place, share in lost] if lost else []
        rank.due = after(self._at, soonest) if soonest < FOREVER else (NEVER, 0.0)

    def _go_on(self, over: list[Running]) -> None:
        """Tell what has ended, share with what has begun, and see to it that somebody wakes up."""
        now = self._at[0]
        self._telling = True
        for one in over:
            one.done(one.instance, now)
        self._telling = False
        if self._stale:
            self._set_speeds()
        if self._due[0] < NEVER:
            self._wake_by(self._due[0] + (self._due[1] > ROUNDING_NS))

    def _wake_by(self, moment: int) -> None:
        if moment < self._wake_at:
            self._wake_at = moment
            self._agenda.at(moment, self._wake, moment)

    def _wake(self, moment: int) -> None:
        if moment == self._wake_at:
            self._wake_at = NEVER
            self._go_on(self._run_to(moment))


def _lanes(ranks: Sequence[SharedRank]) -> Lanes:
    """Return what runs on all busy ones of these ranks, as often as there are such ranks."""
    return tuple(sorted([lane for rank in ranks for lane in (rank.lane,) * rank.count if lane]))
