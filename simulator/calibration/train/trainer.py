"""What each stage of a policy does to a batch, on one rank: the operations that an executor calls."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from simulator.calibration.measure.channel import Array, Channel, slices
from simulator.calibration.measure.kernels import (
    Distinct,
    Mlp,
    adagrad,
    distinct,
    gather,
    logistic,
    scatter,
    segment_sum,
    sgd,
    shared,
)
from simulator.calibration.train.executor import Operation
from simulator.calibration.train.samples import Samples
from simulator.calibration.train.settings import Settings
from simulator.calibration.train.shards import Shard, by_owner, codes, places
from simulator.pipeline import MarkedGraph
from simulator.quantities import IntArray

KEPT = 8  # more batches than a policy without lookahead has in flight


@dataclass(eq=False)
class Micro:
    """One micro-batch on its way: what this source asked for, and what came back."""

    samples: slice
    asked: Distinct
    cuts: IntArray
    rows: Array | None = None
    values: list[Array] = field(default_factory=list)
    slope: Array | None = None
    gradient: Array | None = None
    received: list[Array] = field(default_factory=list)


@dataclass(eq=False)
class Batch:
    """One batch on its way. As an owner: rows asked for by each source and micro-batch, and their buffer.

    `updates` are what the row update has changed in the buffer, where that is what is written back.
    """

    keys: Array
    features: Array
    labels: Array
    micros: list[Micro] = field(default_factory=list)
    lengths: list[IntArray] = field(default_factory=list)
    requests: list[Array] = field(default_factory=list)
    wanted: Distinct | None = None
    buffer: tuple[Array, ...] = ()
    updates: tuple[Array, ...] = ()
    reduced: Array | None = None

    @property
    def union(self) -> Distinct:
        """The distinct rows that an owner was asked for."""
        assert self.wanted is not None
        return self.wanted


@dataclass(eq=False)
class Trainer:
    """One rank of a run: its samples, rows, dense network, and a channel per network stream."""

    settings: Settings
    samples: Samples
    shard: Shard
    network: Mlp
    channels: dict[str, Channel]
    parts: int
    batches: dict[int, Batch] = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start with zero gradients."""
        self.gradient = np.zeros_like(self.network.parameters)
        self.state = np.full_like(self.network.parameters, 0.1)
        self.ranks = next(iter(self.channels.values())).size
        self.scale = np.float32(1.0 / (self.settings.batch * self.ranks))
        self.adds = False

    @property
    def kept(self) -> int:
        """Batches whose state is kept."""
        return KEPT

    def operations(self, graph: MarkedGraph) -> dict[str, Operation]:
        """Return what each stage of `graph` does; `forward.2` is `forward` of micro-batch 2."""
        self.adds = any(write.adds for n in graph.nodes if n.name == "write_back" for write in n.stage.writes)
        return {node.name: self._operation(node.name, node.stream) for node in graph.nodes}

    def _operation(self, name: str, stream: str) -> Operation:
        kind, *numbers = name.split(".")
        channel, part = self.channels.get(stream), int(numbers[0]) if numbers else 0
        whole: dict[str, Operation] = {
            "read": self.read, "inputs": self.copy_inputs, "retrieve": self.retrieve, "refresh": self.refresh,
            "sparse_update": self.sparse_update, "optimizer": self.optimizer, "write_back": self.write_back,
        }  # fmt: skip
        if kind in whole:
            return whole[kind]
        local: dict[str, Callable[[int, int], None]] = {"forward": self.forward, "backward": self.backward}
        if kind in local:
            return lambda batch: local[kind](batch, part)
        assert channel is not None, stream
        travelling: dict[str, Operation] = {
            "route": lambda batch: self.route(batch, channel),
            "reduce": lambda batch: self.reduce(batch, channel),
            "exchange": lambda batch: self.exchange(batch, part, channel),
            "send": lambda batch: self.send(batch, part, channel),
        }
        return travelling[kind]

    def read(self, number: int) -> None:
        """Take a batch out of the samples: narrow keys become wide ones."""
        self.batches.pop(number - self.kept, None)
        given = self.samples
        keys = given.keys[number].astype(np.int64)
        self.batches[number] = Batch(keys, given.features[number].copy(), given.labels[number].copy())

    def copy_inputs(self, number: int) -> None:
        """Copy the batch once, as to a device."""
        batch = self.batches[number]
        batch.keys, batch.features = batch.keys.copy(), batch.features.copy()

    def route(self, number: int, channel: Channel) -> None:
        """Remove duplicates within each micro-batch and send each owner its keys, how many first."""
        batch = self.batches[number]
        for part in slices(len(batch.keys), self.parts):
            asked = distinct(codes(batch.keys[part].reshape(-1), self.ranks))
            batch.micros.append(Micro(part, asked, by_owner(asked.values, self.ranks)))
        received = channel.all_to_all([self._keys_for(batch, owner) for owner in range(self.ranks)])
        batch.lengths = [message[: self.parts] for message in received]
        batch.requests = [message[self.parts :] for message in received]

    def _keys_for(self, batch: Batch, owner: int) -> IntArray:
        keys = [places(m.asked.values[m.cuts[owner] : m.cuts[owner + 1]]) for m in batch.micros]
        return np.concatenate([np.array([len(part) for part in keys], dtype=np.int64), *keys])

    def retrieve(self, number: int) -> None:
        """Read each row that anybody asked for once, into a buffer."""
        batch = self.batches[number]
        batch.wanted = distinct(np.concatenate(batch.requests))
        batch.buffer = tuple(gather(array, batch.wanted.values) for array in self.shard.arrays)

    def refresh(self, number: int) -> None:
        """Copy the rows that the batch before has updated meanwhile from its buffer."""
        before = self.batches.get(number - 1)
        if before is None or before.wanted is None:
            return
        batch = self.batches[number]
        here, there = shared(batch.union.values, before.union.values)
        for array, old in zip(batch.buffer, before.buffer, strict=True):
            scatter(array, here, gather(old, there))

    def exchange(self, number: int, part: int, channel: Channel) -> None:
        """Owners send the rows of a micro-batch; sources put them below each other, by owner."""
        batch = self.batches[number]
        sent = [gather(batch.buffer[0], place) for place in self._places(batch, part)]
        received = channel.all_to_all(sent)
        rows = np.concatenate([message.reshape(-1, sent[0].shape[1]) for message in received])
        batch.micros[part].rows = rows

    def _places(self, batch: Batch, part: int) -> list[IntArray]:
        """Return, by source, where in the buffer the rows of a micro-batch lie."""
        found, begin = [], 0
        for lengths in batch.lengths:
            at = begin + int(lengths[:part].sum())
            found.append(batch.union.place[at : at + int(lengths[part])])
            begin += int(lengths.sum())
        return found

    def forward(self, number: int, part: int) -> None:
        """One row per lookup, beside the dense features, through the network; loss and its slope."""
        batch = self.batches[number]
        micro = batch.micros[part]
        assert micro.rows is not None
        lookups = gather(micro.rows, micro.asked.place).reshape(len(batch.keys[micro.samples]), -1)
        inputs = np.concatenate([lookups, batch.features[micro.samples]], axis=1)
        micro.values = self.network.forward(inputs)
        loss, micro.slope = logistic(micro.values[-1], batch.labels[micro.samples])
        share = len(lookups) / len(batch.keys)
        self.losses[number] = self.losses.get(number, 0.0) + share * loss

    def backward(self, number: int, part: int) -> None:
        """Gradients of the network, and one per distinct row."""
        micro, model = self.batches[number].micros[part], self.settings.model
        assert micro.slope is not None
        slope = self.network.backward(micro.values, micro.slope * self.scale, self.gradient)
        lookups = slope[:, : model.tables * model.dimension].reshape(-1, model.dimension)
        micro.gradient = segment_sum(lookups, micro.asked)
        micro.values = []

    def reduce(self, number: int, channel: Channel) -> None:
        """Add up the dense gradients of all ranks."""
        self.batches[number].reduced = channel.all_reduce(self.gradient)

    def send(self, number: int, part: int, channel: Channel) -> None:
        """Each owner gets the gradients of the rows that it sent."""
        micro = self.batches[number].micros[part]
        assert micro.gradient is not None
        cuts = micro.cuts
        parts = [micro.gradient[cuts[owner] : cuts[owner + 1]] for owner in range(self.ranks)]
        micro.received = channel.all_to_all(parts)

    def sparse_update(self, number: int) -> None:
        """Add up what all sources and micro-batches sent for a row, and update each row once."""
        batch, dimension = self.batches[number], self.settings.model.dimension
        messages = [m.received[s] for s in range(self.ranks) for m in batch.micros]
        gradients = np.concatenate(messages).reshape(-1, dimension)
        before = tuple(array.copy() for array in batch.buffer) if self.adds else ()
        self.shard.update(batch.buffer, segment_sum(gradients, batch.union))
        batch.updates = tuple(batch.buffer[i] - old for i, old in enumerate(before))

    def optimizer(self, number: int) -> None:
        """Update the dense parameters with the gradient of all ranks."""
        reduced = self.batches[number].reduced
        assert reduced is not None
        if self.settings.optimizer == "adagrad":
            adagrad(self.network.parameters, self.state, reduced, self.settings.rate)
        else:
            sgd(self.network.parameters, reduced, self.settings.rate)
        self.gradient[:] = 0.0

    def write_back(self, number: int) -> None:
        """Updated rows return to the tables; where the policy adds, their updates do, to what is there."""
        batch, values = self.batches[number], self.batches[number].buffer
        if self.adds:
            there = (gather(array, batch.union.values) for array in self.shard.arrays)
            values = tuple(row + change for row, change in zip(there, batch.updates, strict=True))
        for array, rows in zip(self.shard.arrays, values, strict=True):
            scatter(array, batch.union.values, rows)

    def final_rows(self) -> Array:
        """Return this rank's share of the tables."""
        return self.shard.arrays[0]
