"""What `gemm.yaml` says of devices that were not measured: computed from those that were."""

from collections.abc import Sequence
from math import sqrt

from simulator.calibration.gemm_devices import BOOK, UNITS, accelerators_of
from simulator.calibration.gemm_doubt import FittedGemm
from simulator.costs.gemm import TileLaw
from simulator.hardware import catalog

SOURCE = "matrix-product table in the PyPI package jax-cuda12-pjrt 0.12.0.1 (OpenXLA, Apache-2.0)"
FORMATS = "bf16xbf16->bf16"
MEAN = f"the {SOURCE}: mean of the laws of H100 and B200 in bf16, the range is that of the two"
VECTOR = "no measurement found: products outside of matrix engines; a library's best run near the peak"
SHARE = (
    f"the {SOURCE}: rate of the H100's law over its peak in bf16, the range with B200; taken for other GPUs"
)
ATTENTION = "FlashAttention-3 (arXiv 2407.08608), abstract: FlashAttention-2 reaches 35 % of an H100"

Number = tuple[float, str, str, tuple[float, ...]]  # value, source, confidence, range


def general(fits: Sequence[FittedGemm]) -> dict[str, Number]:
    """Return the numbers for other devices by name. Needs the laws of H100 and B200."""
    laws = [_law(fits, device) for device in ("H100-SXM", "B200")]
    quantised, sharp = ([float(getattr(law, name)) for law in laws] for name in ("quantisation", "sharpness"))
    shares = [
        law.rate / catalog.accelerator(accelerators_of(device)[0]).peak("bf16")
        for law, device in zip(laws, ("H100-SXM", "B200"), strict=True)
    ]
    return {
        "vector_share": (0.9, VECTOR, "assumed", ()),
        "matrix_share": (shares[0], SHARE, "inferred", _ends(shares)),
        "attention_share": (0.35, ATTENTION, "paper", ()),
        "quantisation": (sum(quantised) / 2, MEAN, "inferred", _ends(quantised)),
        "sharpness": (sqrt(sharp[0] * sharp[1]), MEAN, "inferred", _ends(sharp)),
    }


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _law(fits: Sequence[FittedGemm], device: str) -> TileLaw:
    return next(one.time.law for one in fits if (one.table.device, one.table.formats) == (device, FORMATS))


def general_text(fits: Sequence[FittedGemm]) -> str:
    """Return the lines of the section `general`."""
    return "".join(f"  {name}: {_number(*number)}\n" for name, number in general(fits).items())


def units_text() -> str:
    """Return the lines of the section `units`: multiprocessors of the accelerators of the catalog."""
    known = set(catalog.names("accelerator"))
    return "".join(
        f"  {name}: {_number(count, BOOK, 'secondary')}\n" for name, count in UNITS.items() if name in known
    )


def _number(value: float, source: str, confidence: str, ends: tuple[float, ...] = ()) -> str:
    told = f", range: [{', '.join(f'{end:.4g}' for end in ends)}]" if ends else ""
    return f'{{value: {value:.4g}{told}, source: "{source}", confidence: {confidence}}}'
