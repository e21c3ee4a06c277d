"""A model known by its measured quantities instead of its shape."""

from dataclasses import dataclass, replace

from simulator.errors import InputError
from simulator.workload.dense.checks import require_amounts
from simulator.workload.dense.quantities import DenseQuantities


@dataclass(frozen=True)
class Profile:
    """Quantities as given, per sample: forward `flops` and element-wise `memory_bytes`, `activation_bytes`.

    `parameters` and `kernels` (of one forward pass) are per model. Backward amounts that are not
    given are twice the forward ones. `bottom_share` of all passes and `bottom_parameters` of the
    parameters belong to the part that reads no rows. Raises `InputError` for a negative or infinite
    amount, and for a part larger than the whole.
    """

    flops: float
    memory_bytes: float
    parameters: float
    activation_bytes: float
    backward_flops: float | None = None
    backward_memory_bytes: float | None = None
    kernels: float = 0.0
    peak_layer_bytes: float = 0.0
    bottom_share: float = 0.0
    bottom_parameters: float = 0.0

    def __post_init__(self) -> None:
        """Refuse an impossible amount."""
        require_amounts(**{name: value for name, value in vars(self).items() if value is not None})
        if self.bottom_share > 1 or self.bottom_parameters > self.parameters:
            raise InputError("the bottom of a model cannot be more than all of it")

    def quantities(self) -> DenseQuantities:
        """Return the given quantities, with the backward pass filled in."""
        whole = self._whole()
        return replace(whole, bottom=self._bottom(whole) if self.bottom_share else None)

    def _bottom(self, whole: DenseQuantities) -> DenseQuantities:
        share = self.bottom_share
        return DenseQuantities(
            share * whole.forward_flops,
            share * whole.backward_flops,
            share * whole.forward_memory_bytes,
            share * whole.backward_memory_bytes,
            share * whole.activation_bytes,
            self.bottom_parameters,
            share * whole.kernels,
        )

    def _whole(self) -> DenseQuantities:
        return DenseQuantities(
            forward_flops=self.flops,
            backward_flops=_or_twice(self.backward_flops, self.flops),
            forward_memory_bytes=self.memory_bytes,
            backward_memory_bytes=_or_twice(self.backward_memory_bytes, self.memory_bytes),
            activation_bytes=self.activation_bytes,
            parameters=self.parameters,
            kernels=self.kernels,
            peak_layer_bytes=self.peak_layer_bytes,
            notes=("quantities given by the user, not derived from a shape",),
        )


def _or_twice(given: float | None, forward: float) -> float:
    return 2 * forward if given is None else given
