"""An execution trace in short: operators, products by shape, lookups, and collectives with their bytes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

from simulator.calibration.imports.execution_nodes import COLLECTIVES, WHAT, Node, read_nodes
from simulator.calibration.imports.kernel_classes import collective, kernel_class, width
from simulator.errors import InputError, Where

MOST_NAMES = 100_000
LISTED = 50
_PRODUCTS = {"aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::bmm": (0, 1), "aten::baddbmm": (1, 2)}
_COLLECTIVE_CALLS = ("c10d::", "nccl:", "hccl:", "record_param_comms")

Product = tuple[int, int, int, int, str]  # batch, m, n, k, type


@dataclass
class ExecutionTrace:
    """What a trace holds. `operators`, `products` and `collectives` count alike ones; durations are us."""

    file: str
    nodes: int = 0
    edges: int = 0
    by_type: Counter[str] = field(default_factory=Counter)
    duration_by_type: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    products: Counter[Product] = field(default_factory=Counter)
    collectives: Counter[tuple[str, float | None]] = field(default_factory=Counter)

    def data(self) -> dict[str, Any]:
        """Return everything as plain data, the most frequent operators only."""
        return {
            "kind": "execution_trace",
            "file": self.file,
            "nodes": self.nodes,
            "edges": self.edges,
            "types": [
                {"type": name, "nodes": count, "duration_us": self.duration_by_type[name]}
                for name, count in self.by_type.most_common()
            ],
            "collectives": [
                {"operation": name, "bytes": size, "count": count}
                for (name, size), count in self.collectives.most_common()
            ],
            "products": [
                {
                    "batch": b,
                    "m": m,
                    "n": n,
                    "k": k,
                    "type": dtype,
                    "count": count,
                    "flops": 2 * b * m * n * k,
                }
                for (b, m, n, k, dtype), count in self.products.most_common()
            ],
            "operators": [
                {"name": name, "class": kernel_class(name), "count": count}
                for name, count in self.operators.most_common(LISTED)
            ],
        }


def read_execution_trace(path: str) -> ExecutionTrace:
    """Return what a trace holds. Raises InputError for anything else, and for a trace without nodes."""
    trace = ExecutionTrace(path)
    for node in read_nodes(path):
        _add(trace, node)
    if not trace.nodes:
        raise InputError(f"has no nodes, so it is not {WHAT}", Where(path))
    return trace


def _add(trace: ExecutionTrace, node: Node) -> None:
    trace.nodes += 1
    trace.edges += len(node.parents)
    kind = node.type or ("collective" if is_collective_call(node) else "operator")
    trace.by_type[kind] += 1
    trace.duration_by_type[kind] += node.duration  # type: ignore[assignment]
    if node.name in trace.operators or len(trace.operators) < MOST_NAMES:
        trace.operators[node.name] += 1
    for product in products(node):
        trace.products[product] += 1
    if kind == "collective" and node.on_host is not True:
        trace.collectives[_collective(node)] += 1


def is_collective_call(node: Node) -> bool:
    """Whether a node is the call of a collective; calls around calls count once, by their inner name."""
    return node.name.startswith(("nccl:", "hccl:"))


def products(node: Node) -> Iterator[Product]:
    """Yield the matrix product that an operator is, as (batch, m, n, k, type)."""
    places = _PRODUCTS.get(node.name)
    try:
        if places is not None:
            left, right = (node.shapes[place] for place in places)
            batch = int(left[0]) if len(left) == 3 else 1
            yield batch, int(left[-2]), int(right[-1]), int(left[-1]), _dtype(node.dtypes[places[0]])
    except (IndexError, TypeError, ValueError):
        return


def _dtype(text: Any) -> str:
    """Return `float` of `Tensor(float)`."""
    return str(text).removeprefix("Tensor(").removesuffix(")")


def _collective(node: Node) -> tuple[str, float | None]:
    kind, size = node.attributes.get("comm_type"), node.attributes.get("comm_size")
    known = isinstance(kind, int) and 0 <= kind < len(COLLECTIVES)
    name = COLLECTIVES[kind] if known and isinstance(kind, int) else collective(node.name)
    return name, float(size) if isinstance(size, int | float) else _bytes(node)


def _bytes(node: Node) -> float | None:
    """Return the bytes of the first input, also where it stands in a list of tensors."""
    shape, dtype = node.shapes, node.dtypes
    try:
        shape, dtype = shape[0], str(dtype[0])
        if dtype.startswith("GenericList"):
            shape, dtype = shape[0], dtype.removeprefix("GenericList[").split(",")[0].rstrip("]")
        return float(prod(int(side) for side in shape) * width(_dtype(dtype)))
    except (IndexError, TypeError, ValueError):
        return None
