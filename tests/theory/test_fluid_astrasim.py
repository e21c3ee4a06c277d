"""ASTRA-sim's congestion-aware times to the nanosecond, by storing and forwarding whole messages.

The closed forms and the measured times are of astra-sim at commit 518bd513 (analytical backends, one
dimension of 50 GB/s and 500 ns, one split, endpoint delay 10 ns, local memory 1600 bytes/ns). The mode
that reproduces them lives in this test alone: it shows that we know what the other simulator computes
where ours differs. Run as a script, this file prints the table of docs/concepts/why_not_astra_sim.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil, floor
from pathlib import Path

import pytest

from simulator.engine.fluid import FlowClasses, finish_times

BANDWIDTH = 50 * 2**30 / 1e9  # bytes/ns: there, a GB is 2^30 bytes
LATENCY = 500
ENDPOINT = 10
MEMORY = 1600  # bytes/ns: there, a GB of memory is 1e9 bytes
MIB = 2**20
PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "why_not_astra_sim.md"


def chunk(ranks: int, size: int) -> int:
    return max(size, ranks) // ranks


def link_time(message: int) -> int:
    return floor(LATENCY + message / BANDWIDTH)


# The closed forms.


def all_reduce_form(ranks: int, size: int, hops: int) -> int:
    part = chunk(ranks, size)
    steps = 2 * (ranks - 1) * (hops * link_time(part) + ENDPOINT)
    return ENDPOINT + steps + 3 * (ranks - 1) * floor(part / MEMORY)


def all_to_all_form(ranks: int, size: int, hops: int) -> int:
    part = chunk(ranks, size)
    queue = (ranks - 2) * floor(part / BANDWIDTH) if hops == 2 else 0
    return 2 * ENDPOINT + queue + hops * link_time(part)


# The reference mode: messages, links that serve one at a time, whole nanoseconds.


@dataclass
class StoreAndForward:
    """Whole messages over links that serve in order of arrival; times are rounded down at each hop."""

    free: dict[object, int] = field(default_factory=dict)
    events: list[tuple[int, int, Callable[[int], None]]] = field(default_factory=list)
    count: int = 0

    def at(self, time: int, act: Callable[[int], None]) -> None:
        self.count += 1
        heappush(self.events, (time, self.count, act))

    def send(self, time: int, size: int, path: list[object], received: Callable[[int], None]) -> None:
        def arrive(now: int) -> None:
            if not path:
                received(now)
                return
            link, rest = path[0], path[1:]
            begin = max(now, self.free.get(link, 0))
            self.free[link] = begin + floor(size / BANDWIDTH)
            self.send(begin + link_time(size), size, rest, received)

        self.at(time, arrive)

    def run(self) -> None:
        while self.events:
            time, _, act = heappop(self.events)
            act(time)


def switch(source: int, target: int) -> list[object]:
    return [("up", source), ("down", target)]


def wire(source: int, target: int) -> list[object]:
    return [(source, target)]


def all_to_all(ranks: int, size: int, path: Callable[[int, int], list[object]]) -> int:
    """Each rank hands over all its messages at once, to its right neighbour first."""
    network, part, ends = StoreAndForward(), chunk(ranks, size), []
    for rank in range(ranks):
        for step in range(1, ranks):
            to = path(rank, (rank + step) % ranks)
            network.send(ENDPOINT, part, to, lambda now: ends.append(now + ENDPOINT))
    network.run()
    assert len(ends) == ranks * (ranks - 1)
    return max(ends)


def ring_all_reduce(ranks: int, size: int, path: Callable[[int, int], list[object]]) -> int:
    """Pass a part on 2 (ranks - 1) times; in the first half it is added to one's own on arrival."""
    network, part, ends = StoreAndForward(), chunk(ranks, size), []

    def step(now: int, rank: int, left: int) -> None:
        if left == 0:
            ends.append(now)
            return
        right = (rank + 1) % ranks
        adding = 3 * floor(part / MEMORY) if left > ranks - 1 else 0
        network.send(
            now, part, path(rank, right), lambda then: step(then + ENDPOINT + adding, right, left - 1)
        )

    for rank in range(ranks):
        step(ENDPOINT, rank, 2 * (ranks - 1))
    network.run()
    assert len(ends) == ranks
    return max(ends)


@dataclass(frozen=True)
class Case:
    """One closed form: its parts, and the measured ns at 1 MiB and 64 MiB per rank."""

    name: str
    form: Callable[[int, int, int], int]
    play: Callable[[int, int, Callable[[int, int], list[object]]], int]
    path: Callable[[int, int], list[object]]
    measured: dict[int, tuple[int | None, int | None]]

    @property
    def hops(self) -> int:
        return len(self.path(0, 1))


CASES = [
    Case(
        "all-to-all, direct, switch",
        all_to_all_form,
        all_to_all,
        switch,
        {
            8: (20_548, 1_251_020),
            64: (20_540, 1_251_004),
            256: (20_476, 1_250_812),
            1024: (20_476, 1_250_300),
            1536: (19_452, 1_249_788),
        },
    ),
    Case(
        "all-to-all, direct, fully connected",
        all_to_all_form,
        all_to_all,
        wire,
        {8: (2_961, 156_770), 64: (825, 20_051), 256: (596, 5_402), 1024: (None, 1_740), 1536: (None, 1_333)},
    ),
    Case(
        "all-reduce, ring, switch",
        all_reduce_form,
        ring_all_reduce,
        switch,
        {
            8: (84_199, 4_499_232),
            64: (206_020, 5_172_877),
            256: (594_160, 5_619_445),
            1024: (2_144_218, 7_181_470),
            1536: (3_174_390, 8_216_865),
        },
    ),
    Case(
        "all-reduce, ring, ring or fully connected",
        all_reduce_form,
        ring_all_reduce,
        wire,
        {
            8: (43_025, 2_304_732),
            64: (104_590, 2_648_971),
            256: (300_400, 2_874_625),
            1024: (None, 3_662_350),
            1536: (None, 4_185_955),
        },
    ),
]
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cases
def test_the_closed_form_is_what_was_measured(case: Case) -> None:
    for ranks, times in case.measured.items():
        for size, time in zip((MIB, 64 * MIB), times, strict=True):
            assert time is None or case.form(ranks, size, case.hops) == time


@cases
@pytest.mark.parametrize("size", [1, 1000, MIB, 64 * MIB])
@pytest.mark.parametrize("ranks", [2, 3, 8, 17, 64])
def test_store_and_forward_gives_the_closed_form_to_the_nanosecond(case: Case, ranks: int, size: int) -> None:
    assert case.play(ranks, size, case.path) == case.form(ranks, size, case.hops)


# Our own answer: bytes flow through all their links at once, and share them max-min.


def ours(case: Case, ranks: int, size: int) -> int:
    """Return ns: start-up of every hop once per message that waits for another, then bytes over bandwidth."""
    part, rounds, flows = size / ranks, 1, 1.0
    if case.play is ring_all_reduce:
        rounds = 2 * (ranks - 1)
    elif case.path is switch:
        flows = ranks - 1.0
    crossed = FlowClasses.over([range(case.hops)], part, coefficient=flows)
    (seconds,) = finish_times([BANDWIDTH * 1e9] * case.hops, crossed)
    return ceil(rounds * (case.hops * LATENCY + seconds * 1e9) - 1e-6)


def table() -> str:
    rows = [
        "| collective | ranks | per rank | ASTRA-sim, ns | ours, ns | theirs / ours |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for case in CASES:
        for ranks in (8, 64, 1536):
            for size, name in ((MIB, "1 MiB"), (64 * MIB, "64 MiB")):
                theirs, own = case.form(ranks, size, case.hops), ours(case, ranks, size)
                rows.append(
                    f"| {case.name} | {ranks:,} | {name} | {theirs:,} | {own:,} | {theirs / own:.3f} |"
                )
    return "\n".join(rows)


@cases
@pytest.mark.parametrize("ranks", [8, 64])
def test_our_answer_for_large_messages_is_bytes_over_bandwidth(case: Case, ranks: int) -> None:
    share = 1 if case.form is all_to_all_form and case.path is wire else ranks - 1
    rounds = 2 if case.form is all_reduce_form else 1
    bound = rounds * share * (1024 * MIB / ranks) / BANDWIDTH
    assert bound < ours(case, ranks, 1024 * MIB) < 1.01 * bound + 2 * rounds * share * LATENCY


def test_a_rounded_message_beats_its_own_link_there_and_not_here() -> None:
    """682 of 682.67 bytes in 12 of 12.7 ns: 1,535 messages arrive before the link could carry them."""
    case, least = CASES[0], 1535 * MIB / 1536 / BANDWIDTH
    assert case.form(1536, MIB, 2) < least < ours(case, 1536, MIB)


def test_the_page_shows_the_table_that_this_file_prints() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    print(table())
