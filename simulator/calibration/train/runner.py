"""One run on one rank: build everything from the settings, execute the pipeline, keep what came out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.calibration.measure.channel import Array, Channel
from simulator.calibration.measure.kernels import Mlp
from simulator.calibration.train.cached_trainer import CachedTrainer, bagpipe_of, used_rows
from simulator.calibration.train.executor import Execution, Executor
from simulator.calibration.train.oracle import Schedule
from simulator.calibration.train.plans import graph_of, needs_servers, parts_of
from simulator.calibration.train.row_client import RowClient
from simulator.calibration.train.samples import samples
from simulator.calibration.train.served_trainer import ServedTrainer, calls_of
from simulator.calibration.train.settings import Settings
from simulator.calibration.train.shards import Shard
from simulator.calibration.train.trainer import Trainer
from simulator.errors import InputError
from simulator.pipeline import MarkedGraph

MOST_COMPARED = 64_000_000  # values of a shard that are kept for comparison


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run left behind on one rank: loss by batch, rows and dense parameters, before and after."""

    loss: tuple[float, ...]
    rows: Array
    parameters: Array
    moved: float

    def against(self, other: "Outcome") -> dict[str, float]:
        """Return the largest differences to another run's outcome, of weights and of the loss.

        `moved` is how far the other run moved any weight: a difference means something beside it.
        """
        rows = _largest(self.rows, other.rows)
        dense = _largest(self.parameters, other.parameters)
        loss = _largest(np.array(self.loss), np.array(other.loss))
        return {"rows": rows, "parameters": dense, "loss": loss, "moved": other.moved}


def _largest(one: Array, other: Array) -> float:
    return float(np.max(np.abs(one - other))) if one.size else 0.0


@dataclass(eq=False)
class Runner:
    """Executes `settings` over `channels`, one for each stream with collectives.

    Policies with parameter servers find them at the addresses `servers`, one for each rank.
    """

    settings: Settings
    channels: Sequence[Channel]
    servers: Sequence[str] = ()
    graph: MarkedGraph = field(init=False)
    trainer: Trainer = field(init=False)

    def __post_init__(self) -> None:
        """Plan, draw samples, make weights. Raises InputError when there are too few channels."""
        rank, ranks = self.channels[0].rank, self.channels[0].size
        self.graph = graph_of(self.settings, ranks)
        streams = sorted({node.stream for node in self.graph.nodes if node.stage.work.rendezvous})
        if len(streams) > len(self.channels):
            raise InputError(f"this policy needs {len(streams)} channels; there are {len(self.channels)}")
        parts = (
            self.settings,
            samples(self.settings, rank, ranks),
            Shard.seeded(self.settings, rank, ranks),
            Mlp.seeded(self.settings.model.widths, self.settings.seed),
            dict(zip(streams, self.channels, strict=False)),
            parts_of(self.settings),
        )
        if not needs_servers(self.settings):
            self.trainer = Trainer(*parts)
            return
        client = self._client()
        if self.settings.policy == "bagpipe":
            self.trainer = CachedTrainer(*parts, client=client, schedule=self._schedule())
        else:
            self.trainer = ServedTrainer(*parts, client=client)

    def _client(self) -> RowClient:
        """Connect to the servers; the first rank makes them start anew."""
        channel = self.channels[0]
        if len(self.servers) != channel.size:
            raise InputError(f'the policy "{self.settings.policy}" needs a parameter server for each rank')
        client = RowClient(self.servers, self.settings, channel.rank, calls_of(self.settings))
        if channel.rank == 0:
            client.reset(channel.size)
        channel.barrier()
        return client

    def _schedule(self) -> Schedule:
        """Look at the samples of all ranks, as an oracle does."""
        ranks = self.channels[0].size
        used = used_rows([samples(self.settings, rank, ranks).keys for rank in range(ranks)])
        policy = bagpipe_of(self.settings)
        return Schedule.of(used, policy.lookahead, policy.period)

    def close(self) -> None:
        """Give back connections to servers."""
        if isinstance(self.trainer, ServedTrainer) and self.trainer.client is not None:
            self.trainer.client.close()

    def execute(self) -> Execution:
        """Run all batches."""
        operations = self.trainer.operations(self.graph)
        return Executor(self.graph, operations, self.settings.steps).run()

    def outcome(self) -> Outcome:
        """Return what is left of the run; the rows of large shards are not kept."""
        trainer, settings = self.trainer, self.settings
        loss = tuple(trainer.losses[number] for number in range(settings.steps))
        weights = trainer.final_rows()
        kept = weights if weights.size <= MOST_COMPARED else weights[:0]
        return Outcome(loss, kept, trainer.network.parameters, self._moved(kept))

    def _moved(self, kept: Array) -> float:
        channel, settings = self.channels[0], self.settings
        before = Shard.seeded(settings, channel.rank, channel.size).arrays[0][: len(kept)]
        dense = Mlp.seeded(settings.model.widths, settings.seed).parameters
        return max(_largest(kept, before), _largest(self.trainer.network.parameters, dense))
