"""The `policy` part of a scenario: one specification per policy, read off what the policy takes.

A policy of the catalog is registered in one place, `simulator.policies.catalog`; the fields that a
scenario may set are the parameters of its class, whole numbers from 1 up unless the class says more
(`Annotated[int, Le(1024)]`).
"""

from collections.abc import Callable, Mapping
from functools import partial, reduce
from inspect import Parameter, getdoc
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_validator,
)

from simulator.policies import catalog
from simulator.policies.base import Policy
from simulator.policies.nested import Nested, refuse_two_exchanges
from simulator.scenario.base import Spec
from simulator.scenario.fields import MOST, Count, Flag, Number
from simulator.units import shown


class NamedPolicySpec(Spec):
    """A policy of the catalog with its parameters."""

    kind: str

    def build(self) -> Policy:
        """Return the policy. Raises InputError on parameters that it does not take."""
        return catalog.build(self.kind, **self.parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """What the file says beside the kind."""
        return {name: value for name, value in self if name != "kind"}


def spec_of(name: str, maker: Callable[..., Any]) -> type[NamedPolicySpec]:
    """Return the specification of the policy `name`, with one field per parameter of `maker`."""
    fields: dict[str, Any] = {one.name: _field(one) for one in catalog.parameters(maker).values()}
    title = "".join(word.capitalize() for word in name.split("_")) + "Spec"
    summary = (getdoc(maker) or name).splitlines()[0]
    fields["kind"] = (Literal[name], ...)
    return create_model(title, __base__=NamedPolicySpec, __doc__=summary, **fields)


def _field(parameter: Parameter) -> tuple[Any, Any]:
    default = ... if parameter.default is parameter.empty else parameter.default
    return _checked(parameter.annotation), default


def _checked(annotation: Any) -> Any:
    """Return what a scenario may hold for a parameter of this type."""
    if get_origin(annotation) is Annotated:
        kind, *limits = get_args(annotation)
        return _number(kind, limits) if kind in (int, float) else Annotated[(_checked(kind), *limits)]
    if get_origin(annotation) is Literal and all(isinstance(one, int) for one in get_args(annotation)):
        return Annotated[annotation, BeforeValidator(partial(_counted, allowed=get_args(annotation)))]
    simple = {int: Count, bool: Flag, float: _number(float, [])}
    return simple.get(annotation, annotation)


def _number(kind: type, limits: list[Any]) -> Any:
    """Return a number within `limits`; unlike one of Python it cannot be `true`. Whole ones begin at 1."""
    least, most = (1, MOST) if kind is int else (-1e30, 1e30)
    low = max((getattr(one, "ge", least) for one in limits), default=least)
    high = min((getattr(one, "le", most) for one in limits), default=most)
    return Annotated[kind, Number(low, high, whole=kind is int)]


def _counted(value: object, allowed: tuple[int, ...]) -> object:
    """Refuse `true`, which Python takes for 1, as one of several numbers."""
    if isinstance(value, bool):
        raise ValueError(f"must be {' or '.join(map(str, allowed))}, not {shown(value)}")
    return value


def _specs(makers: Mapping[str, Callable[..., Any]]) -> Any:
    """Return the union of the specifications of `makers`, told apart by `kind`."""
    return Annotated[reduce(or_, _members(makers)), Field(discriminator="kind")]


def _members(makers: Mapping[str, Callable[..., Any]]) -> list[Any]:
    return [spec_of(*one) for one in makers.items()]


if TYPE_CHECKING:  # the members are made from the catalog, which a type checker cannot follow
    InterBatchSpec = NamedPolicySpec
    IntraBatchSpec = NamedPolicySpec
else:
    InterBatchSpec = _specs(catalog.INTER_BATCH)
    IntraBatchSpec = _specs(catalog.INTRA_BATCH)


class NestedSpec(Spec):
    """Any inter-batch policy around any intra-batch policy."""

    kind: Literal["nested"]
    inter_batch: InterBatchSpec
    intra_batch: IntraBatchSpec

    @model_validator(mode="before")
    @classmethod
    def _say_why_not(cls, value: Any) -> Any:
        """Say of a policy that cannot stand in its place why, before it is taken for a misspelling."""
        for place in ("inter_batch", "intra_batch") if isinstance(value, dict) else ():
            part = value.get(place)
            kind = part.get("kind") if isinstance(part, dict) else None
            if isinstance(kind, str) and (reason := catalog.why_not(kind, place)):
                raise ValueError(reason)
        return value

    def build(self) -> Policy:
        """Return the nested policy. Raises InputError where the two cannot be combined."""
        inter, intra = self.inter_batch, self.intra_batch
        outer = catalog.INTER_BATCH[inter.kind](**inter.parameters)
        inner = catalog.INTRA_BATCH[intra.kind](**intra.parameters)
        refuse_two_exchanges(outer, inner, (inter.kind, intra.kind))
        return Nested(outer, inner)


class OutsidePolicySpec(NamedPolicySpec):
    """A policy that an installed package brings; the package checks its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def parameters(self) -> dict[str, Any]:
        """What the file says beside the kind."""
        return dict(self.model_extra or {})


def _outside_first(value: Any, built_in: ValidatorFunctionWrapHandler) -> Any:
    """Let a policy that only an installed package knows be checked by that package."""
    kind = value.get("kind") if isinstance(value, dict) else None
    known = {*catalog.BUILT_IN, "nested"}
    if isinstance(kind, str) and kind not in known and kind in catalog.names():
        return OutsidePolicySpec.model_validate(value)
    return built_in(value)


if TYPE_CHECKING:
    BuiltInPolicySpec = NamedPolicySpec | NestedSpec
else:
    BuiltInPolicySpec = Annotated[
        reduce(or_, [*_members(catalog.BUILT_IN), NestedSpec]), Field(discriminator="kind")
    ]
PolicySpec = Annotated[BuiltInPolicySpec, WrapValidator(_outside_first)]
