"""Fetches and pushes of runs with parameter servers: measured for all workers at once, then work of a step.

Workers and servers share cores, so only what a fetch takes beside those of all others means something.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.calibration.measure.channel import Channel
from simulator.calibration.measure.clock import Stopwatch
from simulator.calibration.measure.kernels import distinct
from simulator.calibration.measure.primitives import Curve
from simulator.calibration.train.plans import needs_servers
from simulator.calibration.train.row_client import RowClient
from simulator.calibration.train.samples import samples
from simulator.calibration.train.served_trainer import calls_of
from simulator.calibration.train.settings import Settings
from simulator.calibration.train.shards import by_owner, codes, places
from simulator.calibration.train.step import VALUE_BYTES, LocalStep, Primitive
from simulator.quantities import AllToAllWork, IntArray, InTurn, Work

FETCH, PUSH = "fetch_", "push_"
BATCHES = (2, 64, 512, 2048)  # samples of a worker, whose distinct keys are asked for


def asks_servers(settings: Settings) -> bool:
    """Return whether every step of a run fetches its rows and pushes its gradients, and nothing else."""
    return needs_servers(settings) and settings.policy != "bagpipe"


def served_shape(settings: Settings) -> tuple[int, ...]:
    """Return what fetches must have in common: tables, rows of each, values of a row."""
    return (settings.model.tables, settings.model.rows, settings.model.dimension)


def served_works(settings: Settings, ranks: int) -> Mapping[str, Work]:
    """Return what stages that deal with servers do, in measured primitives; sizes are keys of a worker."""
    step, calls = LocalStep.of(settings, ranks), calls_of(settings)
    asked = float(np.mean(step.traffic.distinct))
    received = VALUE_BYTES * settings.model.dimension * asked
    return {
        "collect": Primitive("distinct", float(settings.batch * settings.model.tables)),
        "fetch": InTurn((Primitive(f"{FETCH}{calls}", asked), Primitive("copy", received))),
        "push": Primitive(f"{PUSH}{calls}", asked),
        "all_pushed": AllToAllWork(float(ranks)),
    }


@dataclass(frozen=True)
class ServedBench:
    """Measures fetches and pushes of `runs` from `servers`, one beside each rank of `channel`."""

    channel: Channel
    servers: Sequence[str]
    runs: Sequence[Settings]

    def curves(self, watch: Stopwatch) -> Iterator[Curve]:
        """Yield two curves for each way of asking and each shape of tables."""
        kinds = {(calls_of(run), served_shape(run)): run for run in self.runs if asks_servers(run)}
        for (calls, shape), run in kinds.items():
            client = RowClient(self.servers, run, self.channel.rank, calls)
            if self.channel.rank == 0:
                client.reset(self.channel.size)
            self.channel.barrier()
            asked = [self._asked(run, batch) for batch in BATCHES]
            for name, timed in ((FETCH, self._fetching(client)), (PUSH, self._pushing(client))):
                points = tuple(watch.together(size, timed(wanted)) for size, wanted in asked)
                yield Curve(f"{name}{calls}", "keys", points, 0.0, shape)
            client.close()

    def _asked(self, run: Settings, batch: int) -> tuple[int, list[IntArray]]:
        """Return the keys of the first rank's batch, and the places of this rank's by server."""
        return len(self._places(run, batch, 0)[0]), self._places(run, batch, self.channel.rank)[1]

    def _places(self, run: Settings, batch: int, rank: int) -> tuple[IntArray, list[IntArray]]:
        ranks = self.channel.size
        keys = samples(replace(run, batch=batch, steps=4), rank, ranks).keys[0]
        asked = distinct(codes(keys.astype(np.int64).reshape(-1), ranks)).values
        cuts, at = by_owner(asked, ranks), places(asked)
        return asked, [at[cuts[server] : cuts[server + 1]] for server in range(ranks)]

    @staticmethod
    def _fetching(client: RowClient) -> Callable[[list[IntArray]], Callable[[int], object]]:
        return lambda wanted: lambda turn: client.fetch(wanted)

    @staticmethod
    def _pushing(client: RowClient) -> Callable[[list[IntArray]], Callable[[int], object]]:
        width = client.settings.model.dimension

        def pushing(wanted: list[IntArray]) -> Callable[[int], object]:
            gradients = [np.zeros((len(part), width), dtype=np.float32) for part in wanted]
            return lambda turn: client.push(turn, wanted, gradients)

        return pushing
