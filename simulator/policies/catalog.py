"""Policies by name: the four cells of inter-batch times intra-batch, and packages from outside.

An outside package registers a policy class under the entry-point group `recscale.policies`; its
fields are the parameters that a scenario may set.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature
from typing import Any, Literal

from simulator.errors import InputError, did_you_mean
from simulator.policies.bagpipe import Bagpipe
from simulator.policies.base import InterBatch, IntraBatch, Policy
from simulator.policies.dual_buffer import Buffers, DualBuffer
from simulator.policies.fae import Fae
from simulator.policies.frozen_window import FrozenWindow, MicroBatches
from simulator.policies.gradient_accumulation import GradientAccumulation
from simulator.policies.het import Het
from simulator.policies.hugectr import HugeCtr
from simulator.policies.nested import Nested
from simulator.policies.no_cache import NoCache
from simulator.policies.parts import WholeBatch
from simulator.policies.rpc import RpcCoalesced, RpcPerTable
from simulator.policies.serialized import Serialized
from simulator.policies.sparse_core import SparseCore, SparseCorePipelined
from simulator.policies.stale_prefetch import StalePrefetch
from simulator.policies.torchrec import Base, Fused, Prefetch, SemiSync, SparseDist
from simulator.policies.two_d_sparse import TwoDSparse

ENTRY_POINTS = "recscale.policies"

ONE_COPY: Mapping[str, type[InterBatch]] = {
    "serialized": Serialized,
    "stale_prefetch": StalePrefetch,
    "dual_buffer": DualBuffer,
    "torchrec_base": Base,
    "torchrec_sparse_dist": SparseDist,
    "torchrec_prefetch": Prefetch,
    "torchrec_fused": Fused,
    "torchrec_semi_sync": SemiSync,
}
OneCopy = Literal[
    "serialized",
    "stale_prefetch",
    "dual_buffer",
    "torchrec_base",
    "torchrec_sparse_dist",
    "torchrec_prefetch",
    "torchrec_fused",
    "torchrec_semi_sync",
]


def two_d_sparse(inter_batch: OneCopy = "serialized") -> TwoDSparse:
    """Return two-dimensional sparse parallelism under `inter_batch`, as that is by default."""
    return TwoDSparse(ONE_COPY[inter_batch]())


INTER_BATCH: Mapping[str, Callable[..., InterBatch]] = {**ONE_COPY, "two_d_sparse": two_d_sparse}
INTRA_BATCH: Mapping[str, type[IntraBatch]] = {
    "whole_batch": WholeBatch,
    "frozen_window": FrozenWindow,
    "gradient_accumulation": GradientAccumulation,
}


def nestpipe(micro_batches: MicroBatches, buffers: Buffers = 2) -> Nested:
    """Return NestPipe: dual-buffer pipelining around frozen-window pipelining."""
    return Nested(DualBuffer(buffers), FrozenWindow(micro_batches))


BUILT_IN: Mapping[str, Callable[..., Policy]] = {
    **dict[str, Callable[..., Policy]](INTER_BATCH),
    "frozen_window": FrozenWindow,
    "gradient_accumulation": GradientAccumulation,
    "nestpipe": nestpipe,
    "rpc_per_table": RpcPerTable,
    "rpc_coalesced": RpcCoalesced,
    "no_cache": NoCache,
    "bagpipe": Bagpipe,
    "fae": Fae,
    "het": Het,
    "hugectr": HugeCtr,
    "sparse_core": SparseCore,
    "sparse_core_pipelined": SparseCorePipelined,
}


def why_not(kind: str, place: str) -> str:
    """Return why a policy of the catalog cannot be the `inter_batch` or `intra_batch` of others, or ""."""
    fitting = {"inter_batch": INTER_BATCH, "intra_batch": INTRA_BATCH}
    if kind in fitting[place] or kind not in {*BUILT_IN, *INTRA_BATCH}:
        return ""
    other = next((one for one, members in fitting.items() if kind in members), None)
    if other:
        return f'"{kind}" can be the {other} of nested policies, not the {place}'
    return (
        f'"{kind}" cannot be the {place} of nested policies: it arranges the whole life of a batch, '
        "exchanges included, so with another policy around or inside it the same rows would travel twice"
    )


def names() -> tuple[str, ...]:
    """Return the names of all policies, those of installed outside packages included."""
    outside = {point.name for point in _registered(tuple(sys.path))}
    return tuple(sorted(BUILT_IN.keys() | outside))


def parameters(maker: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return what a policy takes, by name, with types and defaults."""
    return signature(maker, eval_str=True).parameters


def taken_by(name: str) -> tuple[str, ...]:
    """Return the names of the parameters of a policy of this catalog; none for any other."""
    return tuple(parameters(BUILT_IN[name])) if name in BUILT_IN else ()


def build(name: str, **parameters: Any) -> Policy:
    """Return the policy called `name`.

    Raises InputError on unknown names and parameters, and where several packages claim the name.
    """
    maker = _only(name)
    _check_names(name, maker, parameters)
    try:
        return maker(**parameters)
    except TypeError as error:
        raise InputError(f'policy "{name}" does not take {_listed(parameters)}: {error}') from error


def _check_names(name: str, maker: Callable[..., Policy], parameters: Mapping[str, Any]) -> None:
    """Raise InputError for a parameter that `maker` does not have, or needs and is not given."""
    try:
        known = signature(maker).parameters
    except (TypeError, ValueError):  # made in C: it says itself what it takes
        return
    if any(one.kind is Parameter.VAR_KEYWORD for one in known.values()):
        return
    for given in parameters:
        if given not in known:
            hint = did_you_mean(given, known) or " (it has none)"
            raise InputError(f'policy "{name}" has no parameter "{given}"{hint}')
    needed = [one.name for one in known.values() if one.default is one.empty and one.kind in _BY_NAME]
    missing = [f'"{one}"' for one in needed if one not in parameters]
    if missing:
        raise InputError(f'policy "{name}" needs {" and ".join(missing)}')


_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def _only(name: str) -> Callable[..., Policy]:
    """Return what makes the policy called `name`, where exactly one package has one."""
    outside = {_package(point): point for point in _registered(tuple(sys.path)) if point.name == name}
    owners = [*(["recscale"] if name in BUILT_IN else []), *sorted(outside)]
    if not owners:
        raise InputError(f'no policy is called "{name}"{did_you_mean(name, names())}')
    if len(owners) > 1:
        raise InputError(f'"{name}" is a policy of {" and of ".join(owners)}: it can be of one only')
    return BUILT_IN[name] if name in BUILT_IN else _loaded(outside[owners[0]])


@cache
def _registered(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the policies of packages on the module search path; looking for them takes milliseconds."""
    return tuple(entry_points(group=ENTRY_POINTS))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an installed package"


def _loaded(point: EntryPoint) -> Callable[..., Policy]:
    try:
        maker: Callable[..., Policy] = point.load()
    except Exception as error:  # whatever goes wrong in somebody else's module
        raise InputError(f'policy "{point.name}" of {_package(point)} cannot be loaded: {error}') from error
    return maker


def _listed(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in parameters.items()) or "no parameters"
