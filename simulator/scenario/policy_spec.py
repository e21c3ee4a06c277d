"""The `policy` part of a scenario, and the two parts of a nested one."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidatorFunctionWrapHandler, WrapValidator

from simulator.policies import catalog
from simulator.policies.base import InterBatch, IntraBatch, Policy
from simulator.policies.nested import Nested
from simulator.scenario.base import Spec
from simulator.scenario.fields import Count


class NamedPolicySpec(Spec):
    """A policy of the catalog with its parameters."""

    kind: str

    def build(self) -> Policy:
        """Return the policy. Raises InputError on parameters that it does not take."""
        return catalog.build(self.kind, **{name: value for name, value in self if name != "kind"})


class SerializedSpec(NamedPolicySpec):
    """One batch in flight."""

    kind: Literal["serialized"]


class StalePrefetchSpec(NamedPolicySpec):
    """Asynchronous prefetch, one step stale."""

    kind: Literal["stale_prefetch"]


class DualBufferSpec(NamedPolicySpec):
    """Dual-buffer pipelining over batches."""

    kind: Literal["dual_buffer"]
    buffers: Literal[1, 2] = 2


class WholeBatchSpec(NamedPolicySpec):
    """The batch handled whole."""

    kind: Literal["whole_batch"]


class FrozenWindowSpec(NamedPolicySpec):
    """Micro-batches within a frozen window."""

    kind: Literal["frozen_window"]
    micro_batches: Annotated[Count, Field(le=1024)]


class NestPipeSpec(NamedPolicySpec):
    """dual_buffer around frozen_window."""

    kind: Literal["nestpipe"]
    buffers: Literal[1, 2] = 2
    micro_batches: Annotated[Count, Field(le=1024)]


class NestedSpec(Spec):
    """Any inter-batch policy around any intra-batch policy."""

    kind: Literal["nested"]
    inter_batch: Annotated[SerializedSpec | StalePrefetchSpec | DualBufferSpec, Field(discriminator="kind")]
    intra_batch: Annotated[WholeBatchSpec | FrozenWindowSpec, Field(discriminator="kind")]

    def build(self) -> Policy:
        """Return the nested policy."""
        inter, intra = self.inter_batch, self.intra_batch
        outer: InterBatch = catalog.INTER_BATCH[inter.kind](**_parameters(inter))
        inner: IntraBatch = catalog.INTRA_BATCH[intra.kind](**_parameters(intra))
        return Nested(outer, inner)


def _parameters(spec: NamedPolicySpec) -> dict[str, Any]:
    return {name: value for name, value in spec if name != "kind"}


class OutsidePolicySpec(NamedPolicySpec):
    """A policy that an installed package brings; the package checks its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True)

    def build(self) -> Policy:
        """Return the policy."""
        return catalog.build(self.kind, **(self.model_extra or {}))


BUILT_IN_KINDS = ("serialized", "stale_prefetch", "dual_buffer", "frozen_window", "nestpipe", "nested")


def _outside_first(value: Any, built_in: ValidatorFunctionWrapHandler) -> Any:
    """Let a policy that only an installed package knows be checked by that package."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind not in BUILT_IN_KINDS and kind in catalog.names():
        return OutsidePolicySpec.model_validate(value)
    return built_in(value)


BuiltInPolicySpec = Annotated[
    SerializedSpec | StalePrefetchSpec | DualBufferSpec | FrozenWindowSpec | NestPipeSpec | NestedSpec,
    Field(discriminator="kind"),
]
PolicySpec = Annotated[BuiltInPolicySpec, WrapValidator(_outside_first)]
