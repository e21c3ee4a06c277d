"""A workload: what one rank trains per step, in amounts that no hardware has entered yet."""

from dataclasses import dataclass
from math import fsum

from simulator.errors import InputError
from simulator.workload.dense import DenseModel
from simulator.workload.tables import KEY_BYTES, EmbeddingTable


@dataclass(frozen=True)
class InputPipeline:
    """What preparing one sample costs: `bytes` read and copied, `cpu_time` in seconds of one core.

    With `clusters`, samples are regrouped by their keys before a batch is split into micro-batches.
    """

    bytes: float = 0.0
    cpu_time: float = 0.0
    clusters: bool = False


STATE_BYTES = 4.0


@dataclass(frozen=True)
class Optimizer:
    """How an optimizer touches memory, per value or row that it updates.

    `dense_passes` counts how often a 4-byte value crosses the memory bus per dense parameter (Adam
    reads parameter, gradient and two moments and writes three of them: 7). `row_passes` counts row
    widths per embedding row updated (read, gradient, write: 3). Extra 4-byte values are kept per dense
    parameter (`dense_state`), per embedding row (`row_state`) and per value of a row (`value_state`).
    """

    name: str
    dense_passes: float
    row_passes: float
    dense_state: float
    row_state: float
    value_state: float = 0.0

    def row_state_bytes(self, values: float) -> float:
        """Return the bytes of state kept beside a row of so many values."""
        return STATE_BYTES * (self.row_state + self.value_state * values)


OPTIMIZERS = {
    "sgd": Optimizer("sgd", dense_passes=3, row_passes=3, dense_state=0, row_state=0),
    "adam_rowwise_adagrad": Optimizer("adam_rowwise_adagrad", 7, row_passes=3, dense_state=2, row_state=1),
    "adagrad": Optimizer("adagrad", dense_passes=5, row_passes=5, dense_state=1, row_state=0, value_state=1),
}


@dataclass(frozen=True, eq=False)
class Workload:
    """Model, tables, and the batch of one rank.

    `batch` samples per rank and step; `precision` names the format of matrix products;
    `gradient_bytes` is the width of a dense gradient on the wire; `bucket_bytes` the size at which
    a bucket of dense gradients is sent off. Raises InputError on an empty workload.
    """

    model: DenseModel
    tables: tuple[EmbeddingTable, ...]
    batch: int
    input: InputPipeline = InputPipeline()
    optimizer: Optimizer = OPTIMIZERS["adam_rowwise_adagrad"]
    precision: str = "fp32"
    gradient_bytes: float = 4.0
    bucket_bytes: float = 25e6

    def __post_init__(self) -> None:
        """Refuse a workload without samples or tables."""
        if self.batch < 1 or not self.tables:
            raise InputError("a workload needs at least one table and a batch of at least one sample")

    @property
    def keys_per_sample(self) -> float:
        """Keys that one sample asks for, over all tables."""
        return fsum(table.pooling for table in self.tables)  # the order of tables changes nothing

    @property
    def input_bytes_per_sample(self) -> float:
        """Bytes copied to the device per sample: its keys and its other features."""
        return self.input.bytes + KEY_BYTES * self.keys_per_sample
