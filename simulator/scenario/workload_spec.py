"""The `workload` part of a scenario."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from simulator.errors import InputError
from simulator.scenario.base import Spec
from simulator.scenario.fields import Bytes, Count, PositiveFloat, Time
from simulator.scenario.keys_spec import KeysSpec
from simulator.scenario.model_spec import AnyModelSpec
from simulator.workload.job import OPTIMIZERS, InputPipeline, Workload
from simulator.workload.tables import EmbeddingTable


class TableSpec(Spec):
    """Embedding tables: `copies` of them alike (default 1).

    `pooling` is the mean number of keys per sample (default: 1, or the sequence's length in a
    sequence model); `keys` overrides the workload's.
    """

    name: str
    rows: Count
    dimension: Count
    dtype: Literal["fp32", "fp16", "bf16", "fp8", "int8"] = "fp32"
    pooling: PositiveFloat | None = None
    copies: Annotated[Count, Field(le=10_000)] = 1
    keys: KeysSpec | None = None


class InputSpec(Spec):
    """What one sample costs the input pipeline: bytes read, and time of one core."""

    bytes: Bytes
    cpu_time: Time


class WorkloadSpec(Spec):
    """What one rank trains per step. `batch` is per worker."""

    model: AnyModelSpec
    tables: Annotated[tuple[TableSpec, ...], Field(min_length=1, max_length=10_000)]
    batch: Count
    keys: KeysSpec | None = None
    input: InputSpec | None = None
    optimizer: Literal["sgd", "adagrad", "adam_rowwise_adagrad"] = "adam_rowwise_adagrad"
    gradient_dtype: Literal["fp32", "fp16", "bf16"] = "fp32"
    bucket: Bytes = 25e6

    def build(self, folder: Path) -> Workload:
        """Return the workload; key logs are looked for in `folder`."""
        given = self.input
        return Workload(
            self.model.build(),
            tuple(table for spec in self.tables for table in self._tables(spec, folder)),
            self.batch,
            InputPipeline(given.bytes, given.cpu_time) if given else InputPipeline(),
            OPTIMIZERS[self.optimizer],
            self.model.precision,
            gradient_bytes=4.0 if self.gradient_dtype == "fp32" else 2.0,
            bucket_bytes=self.bucket,
        )

    def _tables(self, spec: TableSpec, folder: Path) -> list[EmbeddingTable]:
        keys = spec.keys or self.keys
        if keys is None:
            raise InputError(f'table "{spec.name}" needs keys, its own or the workload\'s')
        popularity = keys.popularity(spec.name, spec.rows, folder)
        pooling = self.model.keys_per_sample if spec.pooling is None else spec.pooling
        names = [spec.name] if spec.copies == 1 else [f"{spec.name}_{i}" for i in range(spec.copies)]
        return [
            EmbeddingTable(name, spec.rows, spec.dimension, popularity, pooling, spec.dtype) for name in names
        ]
