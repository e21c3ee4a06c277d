"""Sharing inside ranks against a plain fluid simulation of all ranks at once, written for this test alone.

Each rank has several streams; a stream does one job after the other, each not before its time. The
reference keeps one list of all jobs under way anywhere, one row of resources for all ranks, and fills
all of them together whenever anything anywhere begins or ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
import pytest
import simpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator.engine.agenda import Agenda
from simulator.engine.sharing import Needs, SharedRank
from simulator.quantities import FloatArray

RESOURCES = ("tensor", "hbm", "dram", "host_to_device")


@dataclass(frozen=True)
class Job:
    """Not before `after` ns; alone it takes `alone` ns, and needs these shares of its rank's resources."""

    after: int
    alone: int
    need: Mapping[str, float]


Ranks = list[list[list[Job]]]  # by rank and stream
Ends = dict[tuple[int, int, int], int]  # by rank, stream and place on it


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


def reference(ranks: Ranks) -> Ends:
    """Ends of all jobs, whole ns: time is real, jobs begin at whole nanoseconds, ends are rounded up."""
    columns = {
        (rank, name): rank * len(RESOURCES) + k
        for rank in range(len(ranks))
        for k, name in enumerate(RESOURCES)
    }
    upcoming = {
        (r, s, 0): jobs[0].after for r, streams in enumerate(ranks) for s, jobs in enumerate(streams) if jobs
    }
    under_way: dict[tuple[int, int, int], float] = {}
    ends: Ends = {}
    now = 0.0
    while upcoming or under_way:
        keys = list(under_way)
        load = np.zeros((len(keys), len(columns)))
        for row, (r, s, place) in enumerate(keys):
            for name, share in ranks[r][s][place].need.items():
                load[row, columns[r, name]] = share
        speed = filled(load)
        spans = np.array([under_way[key] for key in keys]) / speed if keys else np.zeros(0)
        until = min([now + span for span in spans] + [float(begin) for begin in upcoming.values()])
        for key, rate in zip(keys, speed, strict=True):
            under_way[key] -= rate * (until - now)
        for key, span in zip(keys, spans, strict=True):
            if now + span <= until + 1e-6:
                del under_way[key]
                ends[key] = ceil(until - 1e-6)
                r, s, place = key
                if place + 1 < len(ranks[r][s]):
                    upcoming[r, s, place + 1] = max(ends[key], ranks[r][s][place + 1].after)
        for key, begin in [*upcoming.items()]:
            if begin <= until:
                under_way[key] = ranks[key[0]][key[1]][key[2]].alone
                del upcoming[key]
        now = until
    return ends


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
            at = max(int(self.agenda.env.now), self.streams[s][place].after)
            self.agenda.at(at, self.begin, self.places.index((s, place)))

    def begin(self, number: int) -> None:
        s, place = self.places[number]
        self.shared.begin(number, number, self.streams[s][place].alone)

    def done(self, number: int) -> None:
        s, place = self.places[number]
        self.ends[self.rank, s, place] = int(self.agenda.env.now)
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


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(some_ranks)
def test_any_jobs_on_any_streams_end_when_the_joint_simulation_says(ranks: Ranks) -> None:
    expected, found = reference(ranks), simulated(ranks)
    assert found.keys() == expected.keys()
    assert max((abs(found[key] - end) for key, end in expected.items()), default=0) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_sixty_four_ranks_of_five_streams_end_to_the_nanosecond(seed: int) -> None:
    draw = np.random.default_rng(seed)

    def need() -> dict[str, float]:
        chosen = draw.choice(RESOURCES, size=draw.integers(1, 4), replace=False)
        return {str(name): float(draw.uniform(0.05, 1.0)) for name in chosen}

    def stream() -> list[Job]:
        return [Job(int(draw.integers(0, 10**6)), int(draw.lognormal(11, 1)), need()) for _ in range(5)]

    ranks = [[stream() for _ in range(5)] for _ in range(64)]
    expected, found = reference(ranks), simulated(ranks)
    assert len(found) == 64 * 5 * 5
    slowed = sum(found[r, s, p] - ranks[r][s][p].after > 1.2 * ranks[r][s][p].alone for r, s, p in found)
    assert slowed > len(found) / 4  # they do meet
    assert max(abs(found[key] - end) for key, end in expected.items()) <= 1
