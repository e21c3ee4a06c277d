"""The `workload.model` part of a scenario: one class per kind of dense model."""

from typing import Annotated, Literal

from pydantic import Field

from simulator.quantities import value_bytes
from simulator.scenario.base import Spec
from simulator.scenario.fields import Bytes, Count, CountOrZero, Flag, Fraction, NonNegativeFloat, Number
from simulator.workload.dense import Dcnv2, DeepFm, DenseModel, Dlrm, Fuxi, Hstu, Mlp, Profile, WideAndDeep

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8"]
Layers = Annotated[int, Number(1, 1000, whole=True)]
Widths = Annotated[tuple[Count, ...], Field(min_length=1, max_length=64)]


class ModelSpec(Spec):
    """What all models share: the format of matrix products, which sets the width of activations."""

    precision: Precision = "fp32"

    @property
    def value_bytes(self) -> int:
        """Bytes of an activation."""
        return value_bytes(self.precision)

    @property
    def keys_per_sample(self) -> float:
        """Keys per sample of a table that does not say: one, or the sequence's length."""
        return 1.0

    def shape(self) -> dict[str, object]:
        """Return the model's own fields."""
        return {name: value for name, value in self if name not in ("kind", "precision")}


class SequenceSpec(ModelSpec):
    """What sequence models share."""

    layers: Layers
    dimension: Count
    sequence: Count
    heads: Count = 1
    recompute: Literal["none", "layer"] = "none"
    causal: Flag = True

    @property
    def keys_per_sample(self) -> float:
        """One key per position."""
        return float(self.sequence)


class HstuSpec(SequenceSpec):
    """HSTU: pointwise attention over a sequence of items."""

    kind: Literal["hstu"]

    def build(self) -> DenseModel:
        """Return the model."""
        return Hstu(value_bytes=self.value_bytes, **self.shape())  # type: ignore[arg-type]


class FuxiSpec(SequenceSpec):
    """FuXi-alpha-like: three attention channels and a gated feed-forward network per layer."""

    kind: Literal["fuxi"]
    hidden: CountOrZero = 0

    def build(self) -> DenseModel:
        """Return the model."""
        return Fuxi(value_bytes=self.value_bytes, **self.shape())  # type: ignore[arg-type]


class FeatureSpec(ModelSpec):
    """What models over pooled features share."""

    dense_features: CountOrZero
    embedding_features: Count
    dimension: Count


class DlrmSpec(FeatureSpec):
    """DLRM with pairwise dot products."""

    kind: Literal["dlrm"]
    bottom: Widths
    top: Widths

    def build(self) -> DenseModel:
        """Return the model."""
        return Dlrm(value_bytes=self.value_bytes, **self.shape())  # type: ignore[arg-type]


class Dcnv2Spec(FeatureSpec):
    """DLRM with low-rank cross layers (DCNv2)."""

    kind: Literal["dcnv2"]
    bottom: Widths
    top: Widths
    cross_layers: Layers
    rank: Count

    def build(self) -> DenseModel:
        """Return the model."""
        return Dcnv2(value_bytes=self.value_bytes, **self.shape())  # type: ignore[arg-type]


class WideAndDeepSpec(FeatureSpec):
    """Wide & Deep."""

    kind: Literal["wide_and_deep"]
    layers: Widths

    def build(self) -> DenseModel:
        """Return the model."""
        return WideAndDeep(value_bytes=self.value_bytes, **self.shape())  # type: ignore[arg-type]


class DeepFmSpec(FeatureSpec):
    """DeepFM."""

    kind: Literal["deep_fm"]
    layers: Widths

    def build(self) -> DenseModel:
        """Return the model."""
        return DeepFm(value_bytes=self.value_bytes, **self.shape())  # type: ignore[arg-type]


class MlpSpec(ModelSpec):
    """A plain multi-layer perceptron."""

    kind: Literal["mlp"]
    inputs: Count
    layers: Widths

    def build(self) -> DenseModel:
        """Return the model."""
        return Mlp(value_bytes=self.value_bytes, **self.shape())  # type: ignore[arg-type]


class ProfileSpec(ModelSpec):
    """Measured quantities per sample instead of a shape; `flops` and `memory_bytes` are forward."""

    kind: Literal["profile"]
    flops: NonNegativeFloat
    memory_bytes: Bytes
    parameters: NonNegativeFloat
    activation_bytes: Bytes
    backward_flops: NonNegativeFloat | None = None
    backward_memory_bytes: Bytes | None = None
    kernels: NonNegativeFloat = 0.0
    peak_layer_bytes: Bytes = 0.0
    bottom_share: Fraction = 0.0
    bottom_parameters: NonNegativeFloat = 0.0

    def build(self) -> DenseModel:
        """Return the model. Raises InputError when the bottom is more than the whole."""
        return Profile(**self.shape())  # type: ignore[arg-type]


AnyModelSpec = Annotated[
    HstuSpec | FuxiSpec | DlrmSpec | Dcnv2Spec | WideAndDeepSpec | DeepFmSpec | MlpSpec | ProfileSpec,
    Field(discriminator="kind"),
]
