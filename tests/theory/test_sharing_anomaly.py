"""More of a resource can make a step longer, as it can make a list schedule longer: both ways, by hand.

Graham (Bounds on multiprocessing timing anomalies, 1969) showed it of lists of jobs on processors. Here what
comes earlier takes its share from what the step waits for; and a mean over a window of steps grows when the
step before the window ends earlier.
"""

import numpy as np
import pytest
import simpy

from simulator.engine import Durations
from simulator.engine.agenda import Agenda
from simulator.engine.host import SharedRank
from simulator.engine.needs import Needs
from simulator.engine.recurrence import run_recurrence
from simulator.pipeline import Carry, Pipeline, Stage, compile_pipeline

GATHER = {"hbm": 1.0}


def done_after(loading: int) -> int:
    """A gather of 100 ns, then 100 ns of computing; a second gather of 100 ns once `loading` is over."""
    env = simpy.Environment()
    agenda, ends = Agenda(env), {}
    rank = SharedRank(agenda, Needs([GATHER, GATHER], [True, True]), lambda job, now: ends.update({job: now}))
    for job, begin in ((0, 0), (1, loading)):
        agenda.at(begin, lambda which: rank.begin(which, which, 100), job)
    env.run()
    return max(ends[0] + 100, ends[1])


def test_a_quicker_loader_makes_a_step_longer_where_its_batch_takes_from_the_one_waited_for() -> None:
    assert done_after(loading=100) == 200  # the gathers miss each other
    assert done_after(loading=50) == 250  # at 50 ns they meet, both at half speed, and the first ends at 150
    assert done_after(loading=0) == 300


def window_ns(first_read: int) -> float:
    """Mean step over the last two of three batches, the first of which takes `first_read` ns to read."""
    read, key = Stage("read", "input"), Stage("key", "lookup")
    compute = Stage("compute", "compute", after=(read, key))
    streams = {"loader": [read], "key": [key], "compute": [compute]}
    graph = compile_pipeline(Pipeline(streams, [Carry(compute, stage, lag=3) for stage in (read, key)]))
    by_stage = {"read": [first_read, 1, 1], "key": [10, 10, 280], "compute": [1, 1, 1]}
    ns = np.array([by_stage[node.name] for node in graph.nodes])[:, :, None]
    end = run_recurrence(graph, Durations(ns, np.zeros(1, dtype=np.int64), ns[:, 0])).end_ns
    done = end[[node.name for node in graph.nodes].index("compute"), :, 0]
    return float(done[2] - done[0]) / 2


def test_a_mean_over_a_window_grows_when_the_step_before_it_ends_earlier_and_the_last_one_no_later() -> None:
    assert window_ns(first_read=80) == pytest.approx(110)
    assert window_ns(first_read=50) == pytest.approx(125)
