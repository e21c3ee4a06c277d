"""Nodes of execution traces: Chakra's protobuf and JSON, and PyTorch's own JSON, in one form."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.calibration.imports.opening import opened
from simulator.calibration.imports.protobuf import WireError, fields, messages, packed
from simulator.calibration.imports.streaming import elements
from simulator.errors import InputError, Where

WHAT = "an execution trace (Chakra or PyTorch)"
LISTS = ("nodes", "workload_graph")
# Numbers of the enumerations NodeType and CollectiveCommType in Chakra's et_def.proto.
TYPES = ("invalid", "metadata", "memory_load", "memory_store", "compute", "send", "receive", "collective")
COLLECTIVES = (
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "broadcast",
    "all_to_all",
    "reduce_scatter",
    "reduce_scatter_block",
    "barrier",
)
_VALUE_FIELDS = frozenset((7, 9, 11, 13, 27))  # integers of an attribute; 29 is its text
_TEXT, _NAME = 29, 1


@dataclass(frozen=True)
class Node:
    """One node: `type` is one of `TYPES`, or empty where the format knows none; `duration` is in us.

    `shapes` and `dtypes` are those of the inputs, nested as recorded; `attributes` hold what else
    was said. `on_host` is None where the trace does not say.
    """

    id: int
    name: str
    type: str = ""
    duration: float = 0.0
    parents: tuple[int, ...] = ()
    shapes: Any = ()
    dtypes: Any = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    on_device: bool = False  # whether an input or output is said to lie on a CUDA or NPU device

    @property
    def on_host(self) -> bool | None:
        """Whether the node is an operator of the host (and not a kernel)."""
        said = self.attributes.get("is_cpu_op")
        return None if said is None else bool(said)


def read_nodes(path: str) -> Iterator[Node]:
    """Yield the nodes of a trace, one at a time. Raises InputError for anything else."""
    with opened(Path(path)) as file:
        text = file.read(64).lstrip()[:1] in (b"{", b"[")
    return _from_json(path) if text else _from_protobuf(path)


def _from_json(path: str) -> Iterator[Node]:
    for number, element in enumerate(elements(Path(path), LISTS, WHAT)):
        try:
            yield _json_node(element)
        except (KeyError, TypeError, ValueError, AttributeError):
            problem = f"is not {WHAT}: node {number} has no id or name"
            raise InputError(problem, Where(path)) from None


def _json_node(one: Mapping[str, Any]) -> Node:
    lower = {str(key).lower(): value for key, value in one.items()}
    inputs = lower.get("inputs")
    inside: Mapping[str, Any] = inputs if isinstance(inputs, dict) else {}
    attributes = {one["name"]: one.get("value") for one in lower.get("attrs", [])}
    attributes |= {name: lower[name] for name in ("is_cpu_op", "comm_type", "comm_size") if name in lower}
    return Node(
        id=int(lower["id"]),
        name=str(lower["name"]),
        type=_type(lower.get("nodetype", lower.get("type"))),
        duration=float(lower.get("runtime", lower.get("duration_micros", lower.get("dur", 0.0)))),
        parents=_parents(lower),
        shapes=inside.get("shapes", lower.get("input_shapes", ())),
        dtypes=inside.get("types", lower.get("input_types", ())),
        attributes=attributes,
        on_device=_on_device(inputs) or _on_device(lower.get("outputs")),
    )


def _on_device(values: Any) -> bool:
    """Look for the names of devices among recorded tensors, three lists deep: a list of tensors is one."""
    listed = values.get("values", ()) if isinstance(values, dict) else values
    for _ in range(3):
        flat = listed if isinstance(listed, list) else ()
        if any(isinstance(one, str) and one.startswith(("cuda:", "npu:")) for one in flat):
            return True
        listed = [inner for one in flat if isinstance(one, list) for inner in one]
    return False


def _type(value: Any) -> str:
    if isinstance(value, str):
        return {"comm_coll_node": "collective", "comp_node": "compute"}.get(value.lower(), value.lower())
    return TYPES[value] if isinstance(value, int) and 0 <= value < len(TYPES) else ""


def _parents(one: Mapping[str, Any]) -> tuple[int, ...]:
    found: list[int] = []
    for name in ("ctrl_deps", "ctrldeps", "data_deps", "parent"):
        value = one.get(name, [])
        found += value if isinstance(value, list) else [value]
    return tuple(int(parent) for parent in found)


def _from_protobuf(path: str) -> Iterator[Node]:
    """The first message is the metadata, all others are nodes."""
    found = iter(messages(Path(path), WHAT))
    try:
        _ = list(fields(next(found)))
        for message in found:
            yield _protobuf_node(message)
    except StopIteration:
        raise InputError("is empty", Where(path)) from None
    except (WireError, UnicodeDecodeError, json.JSONDecodeError):
        raise InputError(f"is not {WHAT}", Where(path)) from None


def _protobuf_node(message: bytes) -> Node:
    values: dict[int, int | bytes] = {}
    parents: list[int] = []
    attributes: dict[str, Any] = {}
    for number, value in fields(message):
        if number in (4, 5):
            parents += packed(value)
        elif number == 10 and isinstance(value, bytes):
            attributes |= [_attribute(value)]
        else:
            values[number] = value
    if 2 not in values:
        raise WireError  # every node has a name
    return Node(
        id=_integer(values.get(1, 0)),
        name=_text(values[2]),
        type=_type(values.get(3, 0)),
        duration=float(_integer(values.get(7, 0))),
        parents=tuple(parents),
        attributes=attributes,
    )


def _attribute(message: bytes) -> tuple[str, Any]:
    name = ""
    found: int | str | None = None
    for number, value in fields(message):
        if number == _NAME:
            name = _text(value)
        elif number in _VALUE_FIELDS:
            found = _integer(value)
        elif number == _TEXT:
            found = _text(value)
    return name, found


def _integer(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise WireError
    return value


def _text(value: int | bytes) -> str:
    if isinstance(value, int):
        raise WireError
    return value.decode("utf-8")
