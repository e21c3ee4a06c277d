"""A DLRM step that was profiled, predicted from its shapes: operators and tensors in, no time of it.

The execution traces of a job say its layers, tables, batch and which operators launch kernels. The one
time that is needed, what the host takes per launch, comes from the profile of another job. Small batches
leave the device idle, so the host's launches are the step, and collectives come on top.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from simulator.calibration.imports.execution_nodes import Node, read_nodes
from simulator.calibration.imports.kineto import Traces
from simulator.calibration.imports.kineto_steps import mean_times
from simulator.errors import InputError, Where
from simulator.scenario import Scenario
from simulator.scenario.source import parse_document

# Operators that only look at a tensor anew, or make room for one.
VIEWS = frozenset(
    f"aten::{name}"
    for name in (
        *(
            "view",
            "as_strided",
            "slice",
            "select",
            "t",
            "transpose",
            "expand",
            "detach",
            "reshape",
            "permute",
        ),
        *("unsqueeze", "squeeze", "narrow", "split", "split_with_sizes", "_reshape_alias", "alias", "unbind"),
        *("empty", "empty_like", "empty_strided", "flatten", "resize_", "result_type", "is_pinned", "to"),
        *(
            "pin_memory",
            "set_",
            "record_stream",
            "lift_fresh",
            "item",
            "numel",
            "resolve_conj",
            "resolve_neg",
        ),
    )
) | {"detach", "detach_"}
# Launches of operators that are one call with several kernels inside (our count, in PyTorch and FBGEMM);
# of a lookup, the sort and the update of its backward pass.
LAUNCHES = {
    "aten::addmm": 1,
    "fbgemm::permute_2D_sparse_data": 6,
    "fbgemm::asynchronous_complete_cumsum": 2,
    "fbgemm::bounds_check_indices": 1,
}
LOOKUP, LOOKUP_LAUNCHES = "embedding_codegen_lookup", 7
SHARDED = "fbgemm::split_embedding_codegen_lookup"


@dataclass(frozen=True)
class RankShapes:
    """What one rank's execution trace says: `keys` looked up for `tables` with `values` in all."""

    batch: int
    layers: tuple[tuple[int, int], ...]
    launches: int
    tables: int
    values: int
    keys: int
    dimension: int


def read_shapes(path: str) -> RankShapes:
    """Return the shapes in an execution trace. Raises InputError when it is not that of a DLRM."""
    nodes = sorted(read_nodes(path), key=lambda node: node.id)
    products = [node for node in nodes if node.name == "aten::addmm"]
    lookups = [node for node in nodes if node.name.startswith(SHARDED)]
    try:
        batch = int(products[0].shapes[1][0])
        layers = tuple((int(node.shapes[2][0]), int(node.shapes[2][1])) for node in products)
        weights = [_tensors(node) for node in lookups]
        tables = sum(shapes[4][0] for shapes in weights)
        values, keys = (sum(prod(shapes[place]) for shapes in weights) for place in (1, 8))
        return RankShapes(batch, layers, _launches(nodes), tables, values, keys, _dimension(layers))
    except (IndexError, TypeError, ValueError, KeyError, StopIteration):
        raise InputError("holds no layers and lookups of a DLRM", Where(path)) from None


def _tensors(node: Node) -> list[Any]:
    """Return the shapes of the inputs that are tensors."""
    return [shape for shape, dtype in zip(node.shapes, node.dtypes, strict=True) if "Tensor" in str(dtype)]


def _dimension(layers: Sequence[tuple[int, int]]) -> int:
    """Return the width at which the bottom network ends: the next layer does not go on from there."""
    return next(before[1] for before, after in pairwise(layers) if before[1] != after[0])


def _launches(nodes: Sequence[Node]) -> int:
    """Return how many kernels the operators launch: one for each without inner ones, views apart."""
    inside = {parent for node in nodes for parent in node.parents}
    return sum(_launched(node, node.id in inside) for node in nodes)


def _launched(node: Node, has_parts: bool) -> int:
    if node.name in LAUNCHES:
        return LAUNCHES[node.name]
    if LOOKUP in node.name:
        return LOOKUP_LAUNCHES
    return int(not has_parts and node.name not in VIEWS and node.on_device)


def per_launch(traces: Traces) -> float:
    """Return the seconds of a step per launch, over all steps of a profiled job.

    Where the device is busy at times, the host would have been a little faster: an upper end.
    """
    mean = mean_times([step for rank in traces.ranks for step in rank.table.steps])
    return mean["step"] / 1e3 / mean["launches"]


@dataclass(frozen=True)
class TracedStep:
    """A job's shapes, by rank."""

    ranks: tuple[RankShapes, ...]

    @classmethod
    def of(cls, paths: Iterable[str]) -> "TracedStep":
        """Read one execution trace per rank. Raises InputError for none, or one of something else."""
        ranks = tuple(read_shapes(path) for path in paths)
        if not ranks:
            raise InputError("there is no execution trace")
        if any(rank.layers != ranks[0].layers for rank in ranks):
            raise InputError("the execution traces are not of one model: their layers differ")
        if not any(rank.tables for rank in ranks):
            raise InputError("the execution traces hold no lookups of embedding tables")
        return cls(ranks)

    def scenario(self, seconds_per_launch: float, accelerator: str) -> Scenario:
        """Return the job as a scenario: one server, tables whole on one rank, sums of rows exchanged."""
        import yaml

        text = yaml.safe_dump(self._data(seconds_per_launch, accelerator), sort_keys=False)
        return Scenario.of(parse_document(text, "execution traces"))

    def _data(self, seconds_per_launch: float, accelerator: str) -> Mapping[str, Any]:
        host = max(rank.launches for rank in self.ranks) * seconds_per_launch
        return {
            "name": "traced step",
            "cluster": {"accelerator": accelerator, "per_host": len(self.ranks), "hosts": 1},
            "workload": self._workload(),
            "sharding": {"kind": "table_wise", "tier": "hbm", "exchange": "pooled"},
            "policy": {"kind": "serialized"},
            "software": {"family": "eager framework", "fixed_cost_per_step": f"{host * 1e6:.6f} us"},
        }

    def _workload(self) -> Mapping[str, Any]:
        first, count = self.ranks[0], sum(rank.tables for rank in self.ranks)
        samples = first.batch * len(self.ranks)
        bottom = [out for _, out in first.layers[: self._bottom]]
        interaction = first.layers[self._bottom][0] - first.dimension  # n(n-1)/2 pairs of n vectors
        if interaction < 1:
            raise InputError("the top layers have fewer inputs than a DLRM's: no pairs of vectors")
        vectors = round((1 + (1 + 8 * interaction) ** 0.5) / 2)
        table = {
            "name": "table",
            "rows": round(sum(rank.values for rank in self.ranks) / first.dimension / count),
            "dimension": first.dimension,
            "pooling": sum(rank.keys for rank in self.ranks) / samples / count,
            "copies": count,
        }
        model = {
            "kind": "dlrm",
            "dense_features": first.layers[0][0],
            "embedding_features": vectors - 1,
            "dimension": first.dimension,
            "bottom": bottom,
            "top": [out for _, out in first.layers[self._bottom :]],
            "precision": "fp32",
        }
        small = {"name": "small", "rows": 4, "dimension": first.dimension, "copies": vectors - 1 - count}
        tables = [table, small] if vectors - 1 > count else [table]
        return {"model": model, "tables": tables, "keys": {"kind": "uniform"}, "batch": first.batch}

    @property
    def _bottom(self) -> int:
        """The number of bottom layers."""
        pairs = enumerate(pairwise(self.ranks[0].layers))
        return 1 + next(place for place, (before, after) in pairs if before[1] != after[0])
