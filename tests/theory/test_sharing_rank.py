"""Sharing inside ranks against a plain fluid simulation of all ranks at once, written for this test alone.

Each rank has several streams; a stream does one job after the other, each not before its time. The
reference keeps one list of all jobs under way anywhere, one row of resources for all ranks, and fills
all of them together whenever anything anywhere begins or ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
import simpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.engine.agenda import Agenda
from simulator.engine.host import SharedRank
from simulator.engine.needs import Needs
from simulator.quantities import FloatArray

RESOURCES = ("tensor", "hbm", "dram", "host_to_device")


@dataclass(frozen=True)
class Job:
    """Not before `after` ns; alone it takes `alone` ns, and needs these shares of its rank's resources."""

    after: int
    alone: int
    need: Mapping[str, float]


Ranks = list[list[list[Job]]]  # by rank and stream
Key = tuple[int, int, int]  # rank, stream and place on it
Ends = dict[Key, int]


# ---------------------------------------------------------------- the reference


def filled(load: FloatArray) -> FloatArray:
    """Max-min speeds for `load` (activities, resources): raise all together, freeze at full resources."""
    speed, rising = np.zeros(len(load)), np.ones(len(load), dtype=bool)
    while rising.any():
        asked, left = load[rising].sum(axis=0), 1.0 - speed[~rising] @ load[~rising]
        with np.errstate(divide="ignore", invalid="ignore"):
            offers = np.where(asked > 1e-12, left / asked, np.inf)
        level = min(1.0, offers.min())
        stop = rising & ((load[:, offers <= level + 1e-12] > 0).any(axis=1) | (level == 1.0))
        speed[stop] = level
        rising &= ~stop
    return speed


class Reference:
    """Time is real, jobs begin at whole nanoseconds, and ends are rounded up to the next one."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self.ends: Ends = {}
        self.under_way: dict[Key, float] = {}
        first = {(r, s, 0): jobs for r, streams in enumerate(ranks) for s, jobs in enumerate(streams)}
        self.upcoming = {key: jobs[0].after for key, jobs in first.items() if jobs}

    def run(self) -> Ends:
        now = 0.0
        while self.upcoming or self.under_way:
            speed = filled(self.load())
            ends = {
                key: now + left / rate
                for (key, left), rate in zip(self.under_way.items(), speed, strict=True)
            }
            until = min([*ends.values(), *map(float, self.upcoming.values())])
            for key, rate in zip(ends, speed, strict=True):
                self.under_way[key] -= rate * (until - now)
            for key in [key for key, end in ends.items() if end <= until + 1e-6]:
                self.finish(key, ceil(until - 1e-6))
            for key in [key for key, begin in self.upcoming.items() if begin <= until]:
                del self.upcoming[key]
                self.under_way[key] = self.job(key).alone
            now = until
        return self.ends

    def job(self, key: Key) -> Job:
        rank, stream, place = key
        return self.ranks[rank][stream][place]

    def load(self) -> FloatArray:
        """What the jobs under way need of the resources of all ranks, (jobs, ranks * resources)."""
        load = np.zeros((len(self.under_way), len(self.ranks), len(RESOURCES)))
        for row, key in enumerate(self.under_way):
            for name, share in self.job(key).need.items():
                load[row, key[0], RESOURCES.index(name)] = share
        return load.reshape(len(load), len(self.ranks) * len(RESOURCES))

    def finish(self, key: Key, end: int) -> None:
        del self.under_way[key]
        self.ends[key] = end
        rank, stream, place = key
        if place + 1 < len(self.ranks[rank][stream]):
            following = (rank, stream, place + 1)
            self.upcoming[following] = max(end, self.job(following).after)


# ---------------------------------------------------------------- the engine's ranks


class Driver:
    """Feeds the streams of one rank, job by job, to the engine's `SharedRank`."""

    def __init__(self, agenda: Agenda, rank: int, streams: list[list[Job]], ends: Ends) -> None:
        self.agenda, self.rank, self.streams, self.ends = agenda, rank, streams, ends
        self.places = [(s, place) for s, jobs in enumerate(streams) for place in range(len(jobs))]
        needs = Needs([streams[s][place].need for s, place in self.places], [True] * len(self.places))
        self.shared = SharedRank(agenda, needs, self.done)
        for s in range(len(streams)):
            self.book(s, 0)

    def book(self, s: int, place: int) -> None:
        if place < len(self.streams[s]):
            at = max(self.agenda.now, self.streams[s][place].after)
            self.agenda.at(at, self.begin, self.places.index((s, place)))

    def begin(self, number: int) -> None:
        s, place = self.places[number]
        self.shared.begin(number, number, self.streams[s][place].alone)

    def done(self, number: int, now: int) -> None:
        s, place = self.places[number]
        self.ends[self.rank, s, place] = now
        self.book(s, place + 1)


def simulated(ranks: Ranks) -> Ends:
    env = simpy.Environment()
    agenda, ends = Agenda(env), Ends()
    for rank, streams in enumerate(ranks):
        Driver(agenda, rank, streams, ends)
    env.run()
    return ends


# ---------------------------------------------------------------- they agree

needs = st.dictionaries(
    st.sampled_from(RESOURCES), st.floats(0.01, 1.0) | st.sampled_from((0.25, 0.5, 1.0)), max_size=3
)
jobs = st.builds(Job, st.integers(0, 300), st.integers(0, 200) | st.integers(0, 10**6), needs)
some_ranks = st.lists(st.lists(st.lists(jobs, max_size=4), min_size=1, max_size=5), min_size=1, max_size=4)


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(some_ranks)
def test_any_jobs_on_any_streams_end_when_the_joint_simulation_says(ranks: Ranks) -> None:
    expected, found = Reference(ranks).run(), simulated(ranks)
    assert found.keys() == expected.keys()
    assert max((abs(found[key] - end) for key, end in expected.items()), default=0) <= 1


def test_sixty_four_ranks_of_four_streams_end_to_the_nanosecond() -> None:
    draw = np.random.default_rng(1)

    def need() -> dict[str, float]:
        chosen = draw.choice(RESOURCES, size=draw.integers(1, 4), replace=False)
        return {str(name): float(draw.uniform(0.05, 1.0)) for name in chosen}

    def job() -> Job:
        return Job(int(draw.integers(0, 200_000)), int(draw.lognormal(11, 1)), need())

    ranks = [[[job() for _ in range(3)] for _ in range(4)] for _ in range(64)]
    expected, found = Reference(ranks).run(), simulated(ranks)
    assert len(found) == 64 * 4 * 3
    slowed = sum(found[r, s, p] - ranks[r][s][p].after > 1.2 * ranks[r][s][p].alone for r, s, p in found)
    assert slowed > len(found) / 4  # they do meet
    assert max(abs(found[key] - end) for key, end in expected.items()) <= 1
