"""The quantities of a real run's step, in the primitives that are measured: what policies plan with.

How many keys are distinct, shared or owned follows from the same formulas as in every scenario
(`simulator.sharding.traffic`); only the local work is counted in measured operations, not in bytes and flops.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from simulator.calibration.train.settings import Settings
from simulator.quantities import AllReduceWork, AllToAllWork, Amount, InTurn, Work
from simulator.sharding import TrainStep
from simulator.sharding.kinds import RowWise
from simulator.sharding.micro import MicroStep
from simulator.sharding.tiers import Remote
from simulator.workload.dense.mlp import Mlp
from simulator.workload.job import OPTIMIZERS, Workload
from simulator.workload.keys.popularity import Popularity
from simulator.workload.keys.zipf import BoundedZipf
from simulator.workload.tables import KEY_BYTES, EmbeddingTable

VALUE_BYTES = 4


@dataclass(frozen=True, eq=False)
class Primitive(Work):
    """`size` of a measured operation; `context` is its second measure, such as the rows of a table."""

    name: str
    size: float
    context: float = 0.0


@dataclass(frozen=True, eq=False)
class LocalMicro(MicroStep):
    """One of `parts` micro-batches of a real run."""

    settings: Settings = field(default_factory=Settings)

    @property
    def _lookups(self) -> float:
        return self.traffic.lookups

    @property
    def _asked(self) -> float:
        return self.traffic.distinct

    @property
    def _row_bytes(self) -> float:
        return VALUE_BYTES * self.settings.model.dimension

    @property
    def _sample_bytes(self) -> float:
        return VALUE_BYTES * self.settings.model.widths[0]

    @property
    def exchange_rows(self) -> Work:
        """Owners gather from the buffer, send; sources put what came below each other."""
        requests, received = _mean(self.traffic.requests), self._asked * self._row_bytes
        rows = Primitive("gather", requests, _mean(self.traffic.rows_owned))
        return InTurn((rows, AllToAllWork(received), Primitive("copy", received)))

    @property
    def forward(self) -> Work:
        """One row per lookup, beside the features, through the network."""
        expand = Primitive("gather", self._lookups, self._asked)
        samples = self.traffic.samples
        return InTurn(
            (expand, Primitive("copy", samples * self._sample_bytes), Primitive("mlp_forward", samples))
        )

    @property
    def backward(self) -> Work:
        """Gradients of the network, and one per distinct row."""
        samples = self.traffic.samples
        cut = Primitive("copy", self._lookups * self._row_bytes)
        add_up = Primitive("segment_sum", self._lookups, self._lookups / self._asked)
        return InTurn((Primitive("mlp_backward", samples), cut, add_up))

    @property
    def backward_buckets(self) -> tuple[Work, ...]:
        """One bucket: the network is small."""
        return (self.backward,)

    def adding(self, passes: Work, parts: int = 1, share: float = 1.0) -> Work:
        """Gradients are always added to what is there."""
        return passes

    @property
    def all_reduce_bucket(self) -> Work:
        """The all-reduce of all dense gradients."""
        return AllReduceWork(VALUE_BYTES * self.settings.model.parameters)

    @property
    def send_gradients(self) -> Work:
        """One gradient per distinct row goes to its owner."""
        return AllToAllWork(self._asked * self._row_bytes)


@dataclass(frozen=True, eq=False)
class LocalStep(TrainStep):
    """One rank's step of a real run, routed in `parts` micro-batches."""

    settings: Settings = field(default_factory=Settings)
    parts: int = 1

    @classmethod
    def of(cls, settings: Settings, ranks: int, parts: int = 1, served: bool = False) -> "LocalStep":
        """Return the step of a run on `ranks` ranks: every table spread by row over all, or over servers."""
        workload = Workload(
            Mlp(settings.model.widths[0], settings.model.widths[1:], VALUE_BYTES),
            tuple(_tables(settings)),
            settings.batch,
            optimizer=OPTIMIZERS[settings.optimizer],
        )
        tier = Remote(ranks) if served else "dram"
        return cls(workload, RowWise(tier), ranks, settings.seed, settings=settings, parts=parts)

    @cached_property
    def _micro(self) -> LocalMicro:
        return self.micro_batch(self.parts)

    @property
    def _copies(self) -> int:
        """A row and, with adagrad, as much state."""
        return 2 if self.settings.optimizer == "adagrad" else 1

    @property
    def _table_rows(self) -> float:
        model = self.settings.model
        return model.tables * model.rows / self.ranks

    @property
    def _requests(self) -> float:
        """Keys that an owner receives for all micro-batches."""
        return self.parts * _mean(self._micro.traffic.requests)

    @property
    def _owned(self) -> float:
        return _mean(self.traffic.rows_owned)

    def micro_batch(self, parts: int) -> LocalMicro:
        """Return the quantities of one of `parts` equal micro-batches."""
        return LocalMicro(self.workload, self._traffic(self.workload.batch / parts), self.settings)

    @property
    def read(self) -> Work:
        """Keys and features are copied out of what was prepared."""
        return Primitive("copy", self._input_bytes)

    @property
    def copy_inputs(self) -> Work:
        """They are copied once more, as to a device."""
        return Primitive("copy", self._input_bytes)

    @property
    def _input_bytes(self) -> float:
        model = self.settings.model
        return self.settings.batch * (KEY_BYTES * model.tables + VALUE_BYTES * model.features)

    @property
    def route_keys(self) -> Work:
        """Duplicates are removed in each micro-batch; owners get their keys."""
        micro = self._micro.traffic
        sort = Primitive("distinct", micro.lookups)
        sent = KEY_BYTES * self.parts * (micro.distinct + self.ranks)
        return InTurn((*([sort] * self.parts), AllToAllWork(sent)))

    @property
    def retrieve_rows(self) -> Work:
        """Duplicates among all requests are removed; each row is read once, with its state."""
        rows = Primitive("gather", self._owned, self._table_rows)
        return InTurn((Primitive("distinct", self._requests), *([rows] * self._copies)))

    @property
    def refresh_rows(self) -> Work:
        """Rows of two batches are matched; the shared ones are copied from buffer to buffer."""
        common = _mean(self.traffic.bytes_shared) / (VALUE_BYTES * self.settings.model.dimension)
        copy = (Primitive("gather", common, self._owned), Primitive("scatter", common, self._owned))
        return InTurn((Primitive("shared", self._owned), *(copy * self._copies)))

    def sparse_update(self, parts: int = 1) -> Work:
        """Gradients are put below each other, added up by row, and each row is updated once."""
        size = VALUE_BYTES * self.settings.model.dimension * self._requests
        add_up = Primitive("segment_sum", self._requests, self._requests / self._owned)
        values = self._owned * self.settings.model.dimension
        return InTurn((Primitive("copy", size), add_up, Primitive(self.settings.optimizer, values)))

    @property
    def optimizer(self) -> Work:
        """The dense optimizer."""
        return Primitive(self.settings.optimizer, self.settings.model.parameters)

    @property
    def write_back(self) -> Work:
        """Rows return to their table, with their state."""
        return InTurn((Primitive("scatter", self._owned, self._table_rows),) * self._copies)

    @property
    def add_back(self) -> Work:
        """Rows are read from their table, their updates added, and the sums put back, with their state."""
        rows = Primitive("gather", self._owned, self._table_rows)
        return InTurn((*((rows,) * self._copies), self.write_back))

    @property
    def lookup_kind(self) -> str:
        """Rows come from the owner's own memory."""
        return "lookup"


def _mean(amount: Amount) -> float:
    return float(np.mean(amount))


def _tables(settings: Settings) -> list[EmbeddingTable]:
    model = settings.model
    return [
        EmbeddingTable(f"t{index}", model.rows, model.dimension, popularity)
        for index, popularity in enumerate(_popularity(settings))
    ]


def _popularity(settings: Settings) -> list[Popularity]:
    """Return the law of each table's keys: the Zipf law that they are drawn from, or the log's statistics."""
    model = settings.model
    if settings.keys is None:
        return [BoundedZipf(model.rows, model.exponent)] * model.tables
    from simulator.calibration.train.key_columns import popularity_of_log

    return popularity_of_log(settings.keys, model.tables, model.rows)
