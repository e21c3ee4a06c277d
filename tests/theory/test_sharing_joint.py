"""The three scopes of sharing against one solver for everything at once, at up to 64 ranks.

The engine solves each host by itself and the network by itself, folds alike ranks and hosts, lets one
flow stand for many, and releases all ranks of a collective together. The reference, written for this
test alone, does none of that: every stage of every rank and every flow between two ranks is an activity,
engines, memories, copy paths, hosts and single links are resources, and all of them are filled together,
in real time, whenever anything begins or ends anywhere. Without flows in device memory the two agree to
nanoseconds; with them, which the engine sees as demands of one rate per collective, to a stated error.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

import numpy as np
import pytest
from numpy.typing import NDArray
from tiers import at_night

from simulator.costs import Flows
from simulator.engine.contention import Contention
from simulator.engine.events import run_events
from simulator.engine.needs import Needs, Part
from simulator.engine.recurrence import run_recurrence
from simulator.engine.weights import PerCollective, PerFlow, WeightRule
from simulator.quantities import AllToAllWork, FloatArray, IntArray, InTurn, Work
from simulator.scenario import Scenario, load
from simulator.scenario.shipped_files import shipped_folder
from simulator.scenario.simulate import tabulated

pytestmark = pytest.mark.slow

BoolArray = NDArray[np.bool_]
NS = 1e9
Key = tuple[str, int, int, int]  # kind of activity, node, cycle, rank
LINKS = ("near out", "near in", "far out", "far in")
MEMORIES = ("tensor", "hbm", "host_to_device", "device_to_host", "dram", "cores")
OF_HOST = ("dram", "cores")


# ---------------------------------------------------------------- activities and their levels


@dataclass(eq=False)
class Block:
    """Activities that begin together: `left` ns at full level each; what one level loads resources with.

    Entry k says that activity `act[k]` loads resource `res[k]` with `load[k]` per level.
    """

    left: FloatArray
    cap: float
    act: IntArray
    res: IntArray
    load: FloatArray
    what: Key


def levels(blocks: Sequence[Block], capacity: FloatArray) -> FloatArray:
    """Raise all levels together; whoever needs a full resource, or has reached its cap, stays behind."""
    offsets = np.cumsum([0, *(len(block.left) for block in blocks)])
    act = np.concatenate([block.act + start for block, start in zip(blocks, offsets, strict=False)])
    res, load_ = np.concatenate([b.res for b in blocks]), np.concatenate([b.load for b in blocks])
    cap = np.concatenate([np.full(len(b.left), b.cap) for b in blocks])
    level, rising = np.zeros(len(cap)), np.ones(len(cap), dtype=bool)
    while rising.any():
        live = rising[act]
        asked = np.bincount(res[live], load_[live], len(capacity))
        used = np.bincount(res[~live], (load_ * level[act])[~live], len(capacity))
        with np.errstate(divide="ignore", invalid="ignore"):
            offer = np.where(asked > 0, np.maximum(capacity - used, 0) / asked, np.inf)
        here = min(float(offer.min()), float(cap[rising].min()))
        stop = cap <= here
        stop[act[offer[res] <= here * (1 + 1e-12)]] = True
        stop &= rising
        level[stop] = here
        rising &= ~stop
    return level


# ---------------------------------------------------------------- the flows of one cluster


@dataclass(frozen=True, eq=False)
class World:
    """Who is near whom, and which of its own resources a flow loads, if any."""

    scenario: Scenario
    rule: WeightRule
    through_memory: bool = False

    @property
    def ranks(self) -> int:
        return self.scenario.cluster.ranks

    @property
    def inside(self) -> int:
        return min(self.scenario.cluster.fabric.domain_size(self.scenario.cluster.per_host), self.ranks)

    @property
    def rates(self) -> Mapping[str, float]:
        return self.scenario.costs.network.rates

    def capacity(self) -> FloatArray:
        links = [self.rates["near out"]] * 2 + [self.rates["far out"]] * 2
        own = np.ones(self.ranks * len(MEMORIES) + self.hosts * len(OF_HOST))
        return np.concatenate([own, np.repeat(links, self.ranks)])

    @property
    def hosts(self) -> int:
        return self.scenario.cluster.hosts

    def host(self, rank: int, name: str) -> int:
        of = rank // self.scenario.cluster.per_host
        return self.ranks * len(MEMORIES) + of * len(OF_HOST) + OF_HOST.index(name)

    def memory(self, rank: IntArray | int, name: str) -> IntArray:
        return np.asarray(rank) * len(MEMORIES) + MEMORIES.index(name)

    def link(self, rank: IntArray, level: str) -> IntArray:
        return self.ranks * (len(MEMORIES) + LINKS.index(level)) + self.hosts * len(OF_HOST) + rank

    def flows(self, source: IntArray, target: IntArray, size: FloatArray, what: Key) -> Block:
        """One activity for each flow that has something to carry."""
        near = source // self.inside == target // self.inside
        weight = self._weights(source, near)
        rate = weight * np.where(near, self.rates["near out"], self.rates["far out"])
        ways = [
            (np.where(near, self.link(source, "near out"), self.link(source, "far out")), rate),
            (np.where(near, self.link(target, "near in"), self.link(target, "far in")), rate),
        ]
        if self.through_memory:
            ways += self._memories(source, target, rate, near)
        act = np.tile(np.arange(len(size)), len(ways))
        res, load_ = (np.concatenate(parts) for parts in zip(*ways, strict=True))
        return Block(size / rate * NS, np.inf, act, res, load_, what)

    def _weights(self, source: IntArray, near: BoolArray) -> FloatArray:
        if isinstance(self.rule, PerFlow):
            return np.ones(len(source))
        most = {side: max(1, np.bincount(source[near == side]).max(initial=0)) for side in (True, False)}
        weights: FloatArray = np.where(near, 1 / most[True], 1 / most[False])
        return weights

    def _memories(
        self, source: IntArray, target: IntArray, rate: FloatArray, near: BoolArray
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Bytes are read from memory and written to it; between hosts they pass the host link as well."""
        chip = self.scenario.cluster.accelerator
        for rank in (source, target):
            yield self.memory(rank, "hbm"), rate / chip.hbm_bandwidth
        outside = np.where(near, 1e-12, rate / chip.host_link_bandwidth)
        yield self.memory(source, "device_to_host"), outside
        yield self.memory(target, "host_to_device"), outside


Leg = tuple[float, tuple[IntArray, IntArray, FloatArray] | None]  # seconds, then flows: from, to, bytes


def legs(world: World, work: Work) -> Iterator[Leg]:
    """What a collective does, with its true matrix: no busiest rank stands for the others."""
    if isinstance(work, InTurn):
        for part in work.parts:
            yield from legs(world, part)
    elif isinstance(work, AllToAllWork):
        yield world.scenario.costs.phases(work)[0].seconds, pairs(world, work)
    else:
        for phase in world.scenario.costs.phases(work):
            yield phase.seconds, ring(world, phase.flows[0]) if phase.flows else None


def pairs(world: World, work: AllToAllWork) -> tuple[IntArray, IntArray, FloatArray]:
    count = world.ranks
    sent = np.broadcast_to(np.asarray(work.bytes, dtype=float), (count,))
    received = (
        sent if work.received_bytes is None else np.broadcast_to(np.asarray(work.received_bytes), (count,))
    )
    source, target = np.divmod(np.arange(count * count), count)
    size = sent[source] * received[target] / received.sum()
    other = (source != target) & (size > 0)
    return source[other], target[other], size[other]


def ring(world: World, flow: Flows) -> tuple[IntArray, IntArray, FloatArray]:
    """Each rank to the next one of its domain, or to its likeness in the next domain."""
    rank, inside = np.arange(world.ranks), world.inside
    near = "near out" in flow.crossing
    to = rank - rank % inside + (rank + 1) % inside if near else (rank + inside) % world.ranks
    return rank, to, np.full(world.ranks, flow.bytes)


# ---------------------------------------------------------------- the run


class Joint:
    """Everything at once. Times are real ns; `end` has shape (nodes, cycles, ranks)."""

    def __init__(self, world: World, needs: Needs, duration_ns: IntArray) -> None:
        self.world, self.needs, self.duration_ns = world, needs, duration_ns
        by_host = duration_ns.reshape(*duration_ns.shape[:2], -1, world.scenario.cluster.per_host)
        self.unlike = (by_host != by_host[..., :1]).any(axis=(0, 1, 3))
        self.graph = world.scenario.graph
        self.nodes, self.cycles, _ = duration_ns.shape
        self.end = np.full((self.nodes, self.cycles, world.ranks), np.nan)
        self.capacity = world.capacity()
        self.blocks: list[Block] = []
        self.now = 0.0
        self.arrived: dict[tuple[int, int], int] = {}
        self.legs: dict[tuple[int, int], list[Leg]] = {}
        self.waits = np.zeros((self.nodes, self.cycles, world.ranks), dtype=int)
        for edge in self.graph.edges:
            for cycle in range(self.cycles):
                self.waits[edge.target, cycle] += 0 <= cycle - edge.lag < self.cycles

    def run(self) -> FloatArray:
        for node, cycle, rank in np.argwhere(self.waits == 0).tolist():
            self.start(node, cycle, rank)
        while self.blocks:
            self.step()
        assert not np.isnan(self.end).any()
        return self.end

    def step(self) -> None:
        """Let time pass until the next activity ends, and see what follows."""
        level = levels(self.blocks, self.capacity)
        left = np.concatenate([block.left for block in self.blocks])
        span = max(0.0, float((left / level).min()))
        self.now += span
        left -= level * span
        over = left <= 1e-6 * np.maximum(level, 1.0)
        parts = np.cumsum([len(block.left) for block in self.blocks])[:-1]
        split = zip(self.blocks, np.split(left, parts), np.split(over, parts), strict=True)
        self.blocks, ended = [], []
        for block, still, gone in split:
            if gone.all():
                ended.append(block)
            else:
                self.blocks.append(shortened(block, still, ~gone))
        for block in ended:
            self.finish(*block.what)

    def start(self, node: int, cycle: int, rank: int) -> None:
        if not self.graph.nodes[node].stage.work.rendezvous:
            self.blocks.append(self.stage(node, cycle, rank))
            return
        key = (node, cycle)
        self.arrived[key] = self.arrived.get(key, 0) + 1
        if self.arrived[key] == self.world.ranks:
            self.legs[key] = list(legs(self.world, self.graph.nodes[node].stage.work))
            self.next_leg(node, cycle)

    def stage(self, node: int, cycle: int, rank: int, place: int = 0) -> Block:
        """A part of a stage; where ranks of a host differ, it uses the host, otherwise its even part."""
        part = self.parts(node, rank)[place]
        needs = {name: share for name, share in part.need.items() if share > 0}
        res = np.array([self.memory_of(rank, name) for name in needs], dtype=int)
        load = np.array([share / self.parts_of(rank, name) for name, share in needs.items()])
        left = np.array([self.duration_ns[node, cycle, rank] * part.share])
        what = (f"{place}", node, cycle, rank)
        return Block(left, part.cap, np.zeros(len(needs), dtype=int), res, load, what)

    def parts(self, node: int, rank: int) -> tuple[Part, ...]:
        if self.unlike[rank // self.world.scenario.cluster.per_host]:
            return self.needs.parts[node]
        return (Part(1.0, self.needs.by_node[node]),)

    def next_leg(self, node: int, cycle: int) -> None:
        if self.legs[node, cycle]:
            self.blocks.append(self.before(node, cycle))
            return
        for rank in range(self.world.ranks):
            self.complete(node, cycle, rank)

    def before(self, node: int, cycle: int) -> Block:
        """What comes before the flows of a phase: local work on every rank, or a wait that needs nothing."""
        left, ranks = self.legs[node, cycle], np.arange(self.world.ranks)
        need = self.needs.ends[node][-len(left)]
        found = [(name, share) for name, share in need.items() if share > 0]
        res = [self.memory_of(rank, name) for name, _ in found for rank in ranks.tolist()]
        load = [share / self.parts_of(rank, name) for name, share in found for rank in ranks.tolist()]
        what = ("start-up", node, cycle, 0)
        span = np.full(len(ranks), left[0][0] * NS)
        act = np.tile(ranks, len(found))
        return Block(span, 1.0, act, np.array(res, dtype=int), np.array(load), what)

    def memory_of(self, rank: int, name: str) -> int:
        """Where a rank finds a resource: its own, or that of a host that it shares with unlike ranks."""
        own = self.parts_of(rank, name) == 1
        return int(self.world.memory(rank, name)) if own else self.world.host(rank, name)

    def parts_of(self, rank: int, name: str) -> int:
        per_host = self.world.scenario.cluster.per_host
        return per_host if self.unlike[rank // per_host] and name in OF_HOST else 1

    def finish(self, kind: str, node: int, cycle: int, rank: int) -> None:
        if kind.isdigit():
            following = int(kind) + 1
            if following < len(self.parts(node, rank)):
                self.blocks.append(self.stage(node, cycle, rank, following))
            else:
                self.complete(node, cycle, rank)
            return
        flows = self.legs[node, cycle][0][1]
        if kind == "start-up" and flows and len(flows[0]):
            self.blocks.append(self.world.flows(*flows, ("flows", node, cycle, 0)))
            return
        self.legs[node, cycle].pop(0)
        self.next_leg(node, cycle)

    def complete(self, node: int, cycle: int, rank: int) -> None:
        self.end[node, cycle, rank] = self.now
        for edge in self.graph.outgoing[node]:
            if 0 <= cycle + edge.lag < self.cycles:
                self.waits[edge.target, cycle + edge.lag, rank] -= 1
                if self.waits[edge.target, cycle + edge.lag, rank] == 0:
                    self.start(edge.target, cycle + edge.lag, rank)


def shortened(block: Block, left: FloatArray, keep: BoolArray) -> Block:
    """The block with so much left, without the activities that have ended."""
    if keep.all():
        block.left = left
        return block
    kept = keep[block.act]
    renumbered = np.cumsum(keep) - 1
    return Block(
        left[keep], block.cap, renumbered[block.act[kept]], block.res[kept], block.load[kept], block.what
    )


# ---------------------------------------------------------------- they agree

Rule = PerCollective | PerFlow
Case = tuple[str, int, str, tuple[str, ...]]
DRAWN, JITTER, SMALL = "sharding.owners=drawn", "run.jitter={compute: 10 %, input: 20 %}", "workload.batch=64"
CASES = [
    ("quickstart.yaml", 8, "serialized", ()),
    ("quickstart.yaml", 8, "stale_prefetch", ()),
    ("quickstart.yaml", 16, "frozen_window", ()),
    ("quickstart.yaml", 16, "dual_buffer", (JITTER,)),
    ("quickstart.yaml", 16, "stale_prefetch", (DRAWN,)),
    ("quickstart.yaml", 16, "stale_prefetch", (DRAWN, SMALL)),
    ("quickstart.yaml", 16, "nestpipe", (DRAWN,)),
    ("quickstart.yaml", 16, "nestpipe", (JITTER,)),
    ("quickstart.yaml", 64, "nestpipe", ()),
    ("nestpipe/npu.yaml", 16, "stale_prefetch", ()),
    ("nestpipe/npu.yaml", 16, "dual_buffer", (JITTER,)),
    ("nestpipe/npu.yaml", 16, "nestpipe", (DRAWN,)),
    ("nestpipe/npu.yaml", 64, "nestpipe", ()),
]
CYCLES = 10
PARTS = {"frozen_window": {"micro_batches": 4}, "nestpipe": {"micro_batches": 4}}


@dataclass(frozen=True)
class Compared:
    """Steps in ms of the engine, of the joint solver, and of both engines where nothing is shared."""

    engine: float
    joint: float
    alone: float
    worst_end_ms: float

    @property
    def difference(self) -> float:
        return abs(self.engine / self.joint - 1)


@cache
def compared(case: Case, rule: Rule, through_memory: bool) -> Compared:
    path, ranks, policy, settings = case
    scenario = load(shipped_folder() / path, list(settings)).with_workers(ranks)
    scenario = scenario.with_policy({"kind": policy, **PARTS.get(policy, {})})
    graph, durations = scenario.graph, tabulated(scenario, CYCLES)
    shared = Contention.of(graph, scenario.costs, rule)
    if not through_memory:
        shared = replace(shared, needs=replace(shared.needs, flows=[{}] * len(graph.nodes)))
    engine = run_events(graph, durations, contention=shared)
    ends = engine.end_ns[:, :, engine.column_of]
    world = World(scenario, rule, through_memory)
    joint = Joint(world, shared.needs, durations.ns[:, :, durations.column_of]).run()
    alone = run_recurrence(graph, durations).end_ns
    ours, theirs, apart = (step_ms(scenario, times) for times in (ends, joint, alone))
    return Compared(ours, theirs, apart, float(np.abs(ends - joint).max()) / 1e6)


def step_ms(scenario: Scenario, end: FloatArray | IntArray) -> float:
    """Mean time between updates from the fourth batch to the last but three."""
    done = np.max([end[node].max(axis=1) for node in scenario.graph.updates], axis=0)
    return float(done[-4] - done[3]) / (len(done) - 7) / 1e6


@pytest.mark.parametrize("rule", [PerCollective(), at_night(PerFlow())], ids=["per_collective", "per_flow"])
def test_the_step_is_that_of_the_joint_solver(rule: Rule, capsys: pytest.CaptureFixture[str]) -> None:
    found = {case: compared(case, rule, through_memory=False) for case in CASES}
    worst = max(found, key=lambda case: found[case].difference)
    middle = median(one.difference for one in found.values())
    with capsys.disabled():
        print(
            f"\n  {type(rule).__name__}: step off by {middle:.1e} in the median, at worst by "
            f"{found[worst].difference:.1e} ({worst}); single ends by at most "
            f"{max(one.worst_end_ms / one.joint for one in found.values()):.1e} of a step"
        )
    assert middle <= 1e-6
    assert found[worst].difference <= 5e-4
    assert all(one.worst_end_ms <= 5e-3 * one.joint for one in found.values())
    assert sum(one.joint > 1.001 * one.alone for one in found.values()) >= 8  # sharing is put to work


@pytest.mark.parametrize("case", [case for case in CASES if DRAWN not in case[3]])
def test_where_owners_are_alike_every_end_is_right_to_nanoseconds(case: Case) -> None:
    """Times of the reference are real, so whole nanoseconds add up along the run: stages x batches."""
    assert compared(case, PerCollective(), through_memory=False).worst_end_ms <= 100e-6


@pytest.mark.parametrize("rule", [PerCollective(), at_night(PerFlow())], ids=["per_collective", "per_flow"])
def test_flows_through_memories_and_host_links_leave_the_step_that_of_the_joint_solver(
    rule: Rule, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between hosts, flows pass the host link of both ends; what holds one up holds up its collective."""
    found = {case: compared(case, rule, through_memory=True) for case in CASES}
    worst = max(found, key=lambda case: found[case].difference)
    middle = median(one.difference for one in found.values())
    without = {case: compared(case, rule, through_memory=False) for case in CASES}
    costs = [one.joint / without[case].joint - 1 for case, one in found.items()]
    with capsys.disabled():
        print(
            f"\n  {type(rule).__name__}: flows through memory cost {median(costs):.2%} of a step in the "
            f"median, {max(costs):.2%} at worst; step off by {middle:.3%} in the median, at worst by "
            f"{found[worst].difference:.2%} ({worst})"
        )
    assert middle <= 0.002 and found[worst].difference <= (0.01 if rule == PerCollective() else 0.02)
    assert max(costs) > 0.005  # there is something to be found
