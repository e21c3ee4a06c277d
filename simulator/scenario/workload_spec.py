"""The `workload` part of a scenario."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from simulator.errors import InputError
from simulator.scenario.base import Spec
from simulator.scenario.fields import Bytes, Count, Number, PositiveFloat, Time
from simulator.scenario.histories_spec import Clustering, HistoriesSpec, sharing_tables
from simulator.scenario.keys_spec import KeysSpec
from simulator.scenario.model_spec import AnyModelSpec
from simulator.units import shown
from simulator.workload.job import OPTIMIZERS, InputPipeline, Workload
from simulator.workload.tables import EmbeddingTable

MOST_TABLES = 4096  # planners handle some 2,000


def _above_zero(size: float) -> float:
    if size <= 0:
        raise ValueError('a bucket must hold something, such as "25 MB"')
    return size


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
    copies: Annotated[int, Number(1, MOST_TABLES, whole=True)] = 1
    keys: KeysSpec | None = None

    @property
    def names(self) -> list[str]:
        """The names of the tables: numbered when there are several copies."""
        return [self.name] if self.copies == 1 else [f"{self.name}_{i}" for i in range(self.copies)]


class InputSpec(Spec):
    """What one sample costs the input pipeline: bytes read, and time of one core."""

    bytes: Bytes
    cpu_time: Time


class WorkloadSpec(Spec):
    """What one rank trains per step. `batch` is per worker."""

    model: AnyModelSpec
    tables: Annotated[tuple[TableSpec, ...], Field(min_length=1, max_length=MOST_TABLES)]
    batch: Count
    keys: KeysSpec | None = None
    histories: HistoriesSpec | None = None
    clustering: Clustering = "none"
    input: InputSpec | None = None
    optimizer: Literal["sgd", "adagrad", "adam_rowwise_adagrad"] = "adam_rowwise_adagrad"
    gradient_dtype: Literal["fp32", "fp16", "bf16"] = "fp32"
    bucket: Annotated[Bytes, AfterValidator(_above_zero)] = 25e6

    def build(self, folder: Path) -> Workload:
        """Return the workload; key logs are looked for in `folder`.

        Raises InputError on too many tables, or two of one name.
        """
        self._check_names()
        tables = [table for spec in self.tables for table in self._tables(spec, folder)]
        return Workload(
            self.model.build(),
            sharing_tables(tables, self.batch, self.histories, self.clustering),
            self.batch,
            self._input,
            OPTIMIZERS[self.optimizer],
            self.model.precision,
            gradient_bytes=4.0 if self.gradient_dtype == "fp32" else 2.0,
            bucket_bytes=self.bucket,
        )

    @property
    def _input(self) -> InputPipeline:
        clusters = self.clustering != "none"
        given = self.input
        return (
            InputPipeline(given.bytes, given.cpu_time, clusters)
            if given
            else InputPipeline(0.0, 0.0, clusters)
        )

    def disagreements(self) -> list[str]:
        """Return where model and tables speak of different shapes."""
        model, dimensions = self.model, sorted({spec.dimension for spec in self.tables})
        count, found = sum(spec.copies for spec in self.tables), []
        features = getattr(model, "embedding_features", None)
        if features is not None and features != count:
            found.append(f"the model has {features} embedding features, but there are {count} tables")
        width = getattr(model, "dimension", None)
        if width is not None and dimensions != [width]:
            widths = ", ".join(map(str, dimensions))
            found.append(f"the model's dimension is {width}, but rows have {widths} values")
        return found

    def _check_names(self) -> None:
        """Rules, placements and key logs find tables by their names."""
        if sum(spec.copies for spec in self.tables) > MOST_TABLES:
            raise InputError(f"there are more than {MOST_TABLES:,} tables, copies included")
        seen: set[str] = set()
        for name in (name for spec in self.tables for name in spec.names):
            if name in seen or not name:
                raise InputError(f"two tables are called {shown(name)}" if name else "a table needs a name")
            seen.add(name)

    def _tables(self, spec: TableSpec, folder: Path) -> list[EmbeddingTable]:
        keys = spec.keys or self.keys
        if keys is None:
            raise InputError(f'table "{spec.name}" needs keys, its own or the workload\'s')
        popularity = keys.popularity(spec.name, spec.rows, folder)
        pooling = self.model.keys_per_sample if spec.pooling is None else spec.pooling
        return [
            EmbeddingTable(name, spec.rows, spec.dimension, popularity, pooling, spec.dtype)
            for name in spec.names
        ]
