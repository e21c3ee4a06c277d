"""Collectives over sockets deliver what was sent, to whom it was sent, in any size."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from simulator.calibration.local.launch import free_ports
from simulator.calibration.measure.channel import slices
from simulator.calibration.measure.sockets import Mesh, SocketChannel, connect
from simulator.errors import InputError

RANKS = 3


def on_all(channels: list[SocketChannel], act: Callable[[SocketChannel], Any]) -> list[Any]:
    """Do the same on all ranks at once; return what each got, or raise what any raised."""
    found: dict[int, Any] = {}

    def one(channel: SocketChannel) -> None:
        try:
            found[channel.rank] = act(channel)
        except Exception as error:
            found[channel.rank] = error

    threads = [threading.Thread(target=one, args=(channel,)) for channel in channels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), "a collective hangs"
    return [found[channel.rank] for channel in channels]


@pytest.fixture
def channels() -> Iterator[list[SocketChannel]]:
    mesh, made = Mesh(("127.0.0.1",) * RANKS, free_ports(RANKS)), dict[int, SocketChannel]()
    threads = [
        threading.Thread(target=lambda rank=rank: made.__setitem__(rank, connect(mesh, rank, 0)))
        for rank in range(RANKS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    yield [made[rank] for rank in range(RANKS)]
    for channel in made.values():
        channel.close()


def test_an_all_to_all_of_unequal_parts_brings_each_part_to_its_rank(channels: list[SocketChannel]) -> None:
    def part(source: int, target: int) -> Any:
        return np.full(7 * source + target, 10 * source + target, dtype=np.int64)

    got = on_all(channels, lambda c: c.all_to_all([part(c.rank, target) for target in range(RANKS)]))
    for target, parts in enumerate(got):
        for source, received in enumerate(parts):
            np.testing.assert_array_equal(received, part(source, target))


def test_messages_larger_than_any_kernel_buffer_arrive_whole(channels: list[SocketChannel]) -> None:
    def big(rank: int) -> Any:
        return np.random.default_rng(rank).random(6_000_000)  # 48 MB

    got = on_all(channels, lambda c: c.all_gather(big(c.rank)))
    assert all(np.array_equal(part, big(rank)) for parts in got for rank, part in enumerate(parts))


@pytest.mark.parametrize("length", [1, 2, 3, 1000, 100_001])
def test_an_all_reduce_adds_up_and_gives_all_ranks_the_same_bytes(
    channels: list[SocketChannel], length: int
) -> None:
    vectors = [np.random.default_rng(rank).random(length, dtype=np.float32) for rank in range(RANKS)]
    got = on_all(channels, lambda c: c.all_reduce(vectors[c.rank]))
    np.testing.assert_allclose(got[0], np.sum(vectors, axis=0), rtol=1e-6)
    assert got[0].tobytes() == got[1].tobytes() == got[2].tobytes()


def test_a_reduce_scatter_leaves_each_rank_its_slice(channels: list[SocketChannel]) -> None:
    vectors = [np.arange(10.0) * (rank + 1) for rank in range(RANKS)]
    got = on_all(channels, lambda c: c.reduce_scatter(vectors[c.rank]))
    np.testing.assert_array_equal(np.concatenate(got), np.arange(10.0) * 6)
    assert [len(part) for part in got] == [part.stop - part.start for part in slices(10, RANKS)]


def test_a_broadcast_brings_the_vector_of_rank_0_to_all(channels: list[SocketChannel]) -> None:
    got = on_all(channels, lambda c: c.broadcast(np.arange(5.0) + 100 * c.rank))
    assert all(np.array_equal(vector, np.arange(5.0)) for vector in got)


def test_a_rank_that_goes_away_ends_the_others_with_one_line(channels: list[SocketChannel]) -> None:
    channels[2].close()
    got = on_all(channels[:2], lambda c: c.all_gather(np.zeros(10)))
    assert all(isinstance(error, InputError) and "went away" in str(error) for error in got)


def test_slices_are_as_equal_as_can_be_and_cover_all() -> None:
    for length in range(20):
        for size in range(1, 6):
            parts = slices(length, size)
            assert [i for part in parts for i in range(length)[part]] == list(range(length))
            lengths = [part.stop - part.start for part in parts]
            assert max(lengths) - min(lengths) <= 1
