"""Slow ranks: their own stages take longer, and everybody waits for them at collectives."""

import numpy as np
import pytest

from simulator.errors import InputError
from simulator.hardware.slowdown import Slowdown, speed


def test_without_slow_ranks_speed_is_one_number() -> None:
    assert speed((), "compute", 8) == 1.0


def test_slowdowns_of_one_rank_multiply_and_leave_others_alone() -> None:
    slow = (Slowdown((1, 2), compute=0.5), Slowdown((2,), compute=0.5, network=0.9))
    assert np.array_equal(speed(slow, "compute", 4), [1.0, 0.5, 0.25, 1.0])
    assert np.array_equal(speed(slow, "network", 4), [1.0, 1.0, 0.9, 1.0])
    assert speed(slow, "host", 4) == 1.0


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, float("nan")])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="compute"):
        Slowdown((0,), compute=share)


def test_a_rank_outside_the_cluster_is_refused() -> None:
    with pytest.raises(InputError, match="rank 8"):
        speed((Slowdown((8,), host=0.5),), "host", 8)


def test_a_slowdown_of_nobody_is_refused() -> None:
    with pytest.raises(InputError, match="at least one rank"):
        Slowdown((), host=0.5)
