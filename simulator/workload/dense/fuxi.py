"""FuXi-alpha: multi-channel self-attention with a multi-stage feed-forward network."""

from dataclasses import dataclass, replace

from simulator.workload.dense.checks import require_counts, require_divides, require_zero_or_more
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

CHANNELS = 3  # semantic, temporal, positional


@dataclass(frozen=True)
class Fuxi:
    """FuXi-alpha (Ye et al., arXiv 2502.03036): `layers` layers over `sequence` positions of `dimension` d.

    Query, key and value are d wide; one value tensor serves three attention channels, so the joined
    output and its gate are 3 d wide. The gated feed-forward network is `hidden` f wide (0: as wide
    as d). Per layer 9 d^2 + 3 d f parameters, 12 d^2 when f = d (biases, norm weights and bucket
    tables, well under 1 %, are left out); per position 24 d^2 + 8 L d forward flops: one product of
    query and key, three with the values. `heads` cancels and is only checked. `causal`, `recompute`,
    `value_bytes` and errors are as in `Hstu`.
    """

    layers: int
    dimension: int
    sequence: int
    hidden: int = 0
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
        require_zero_or_more(hidden=self.hidden)
        require_divides(self.heads, self.dimension)
        recompute_named(self.recompute)

    def quantities(self) -> DenseQuantities:
        """Return what one sample costs (our derivation; see `attention_block` and `feed_forward`)."""
        block = attention_block(self.dimension, attended(self.sequence, self.causal))
        layer = block + feed_forward(self.dimension, self.hidden or self.dimension)
        stack = Stack(layer, self.layers, self.sequence, self.dimension)
        counted = recompute_named(self.recompute).quantities(stack, self.value_bytes)
        return replace(counted, notes=(attention_note(self.causal),))


def attention_block(dimension: int, keys: float) -> Operation:
    """Return the three-channel attention of one layer at one position, up to the first residual.

    Element-wise, in multiples of d, forward / backward: norm 2 / 3, SiLU over query, key, value and
    gate (6 d) 12 / 18, norm of the joined channels 6 / 9, gate 9 / 15, residual 3 / 3: 32 / 48.
    Kept, 23 d: input, its norm, projections before (6) and after SiLU (6), channels, their norm and
    the gated channels (3 each).
    """
    joined = CHANNELS * dimension
    return in_sequence(
        [
            norm(dimension),
            linear(dimension, 3 * dimension + joined),
            silu(3 * dimension + joined),
            attention(dimension, keys, value_channels=CHANNELS),
            norm(joined),
            gate(joined),
            linear(joined, dimension),
            residual(dimension),
        ]
    )


def feed_forward(dimension: int, hidden: int) -> Operation:
    """Return the gated feed-forward network (SwiGLU) of one layer at one position.

    Element-wise, forward / backward: norm 2 d / 3 d, SiLU and gate in one kernel 3 f / 5 f, residual
    3 d / 3 d. Kept: input and its norm (2 d), both branches and their product (3 f). The two
    branches are one product.
    """
    return in_sequence(
        [
            norm(dimension),
            linear(dimension, 2 * hidden),
            gate(hidden),
            linear(hidden, dimension),
            residual(dimension),
        ]
    )
