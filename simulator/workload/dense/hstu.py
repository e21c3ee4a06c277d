"""HSTU: hierarchical sequential transduction units."""

from dataclasses import dataclass, replace

from simulator.workload.dense.checks import require_counts, require_divides
from simulator.workload.dense.operations import (
    Operation,
    attention,
    gate,
    in_sequence,
    linear,
    norm,
    residual,
    silu,
)
from simulator.workload.dense.quantities import DenseQuantities
from simulator.workload.dense.stack import Stack, attended, attention_note, recompute_named


@dataclass(frozen=True)
class Hstu:
    """HSTU (Zhai et al., arXiv 2402.17152): `layers` layers over `sequence` positions of `dimension` d.

    Query, key, value and gate are d wide in all, whatever the number of `heads`, which therefore
    changes nothing here and is only checked. Per layer 5 d^2 parameters (biases and relative-position
    tables, well under 1 %, are left out); per position 10 d^2 + 4 L d forward flops, L = `sequence`.
    `causal=True` halves the attention term to 2 L d, what a causal kernel executes;
    `causal=False` counts it in full, as published flop counts and utilisations do: use the
    convention under which the efficiency that you combine it with was taken.
    `recompute` is `none` or `layer`; `value_bytes` is 2 for half precision, 4 for single.
    Sequences are taken as equally long. Raises `InputError` for an impossible shape.
    """

    layers: int
    dimension: int
    sequence: int
    heads: int = 1
    recompute: str = "none"
    causal: bool = True
    value_bytes: int = 2

    def __post_init__(self) -> None:
        """Refuse an impossible shape."""
        require_counts(
            layers=self.layers,
            dimension=self.dimension,
            sequence=self.sequence,
            heads=self.heads,
            value_bytes=self.value_bytes,
        )
        require_divides(self.heads, self.dimension)
        recompute_named(self.recompute)

    def quantities(self) -> DenseQuantities:
        """Return what one sample costs (our derivation; see `hstu_layer`)."""
        layer = hstu_layer(self.dimension, attended(self.sequence, self.causal))
        stack = Stack(layer, self.layers, self.sequence, self.dimension)
        counted = recompute_named(self.recompute).quantities(stack, self.value_bytes)
        return replace(counted, notes=(attention_note(self.causal),))


def hstu_layer(dimension: int, keys: float) -> Operation:
    """Return one layer at one position that attends to `keys` positions.

    Element-wise, in multiples of d, forward / backward: input norm 2 / 3, SiLU over the four
    projections 8 / 12, attention norm 2 / 3, gate 3 / 5, residual 3 / 3: 18 / 26. Kept, 13 d: input,
    its norm, the projections before (4) and after SiLU (4), attention output, its norm, gated output.
    """
    return in_sequence(
        [
            norm(dimension),
            linear(dimension, 4 * dimension),
            silu(4 * dimension),
            attention(dimension, keys),
            norm(dimension),
            gate(dimension),
            linear(dimension, dimension),
            residual(dimension),
        ]
    )
