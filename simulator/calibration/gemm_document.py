"""Fitted laws of matrix products as the catalog file `gemm.yaml`.

`python -m simulator.calibration.gemm_document TABLE.csv` prints it.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.calibration.gemm_fit import REACH, Fitted, fit_tables, units_of
from simulator.calibration.gemm_table import read_gemm_tables
from simulator.costs.gemm import GemmTime, Residual
from simulator.units import format_time

SOURCE = "matrix-product table in the PyPI package jax-cuda12-pjrt 0.12.0.1 (OpenXLA, Apache-2.0)"
MAKER = "multiprocessors (compute units) as the maker counts them"
BOOK = "https://github.com/jax-ml/scaling-book gpus.md (revision 1a55377)"
BETWEEN = f"the {SOURCE}: between the two GPUs of NVIDIA"
HEADER = f"""\
# Laws of matrix products by device and number formats, and what was learned of single shapes beside them.
# Fitted to the {SOURCE};
# written by `python -m simulator.calibration.gemm_document TABLE.csv`, not edited by hand. The forms are
# those of simulator/costs/gemm.py. `weights` belong to the `shapes` (m, n, k, batch), in their order.
"""
# What holds for devices that were not measured: value, source, confidence.
GENERAL = {
    "vector_share": (
        0.9,
        "no measurement found: products outside of matrix engines; a library's best run near the peak",
        "assumed",
    ),
    "matrix_share": (
        0.83,
        f"the {SOURCE}: the rate of the H100's law over its peak, in bf16; taken for other GPUs of NVIDIA",
        "inferred",
    ),
    "attention_share": (
        0.35,
        "FlashAttention-3 (arXiv 2407.08608), abstract: FlashAttention-2 reaches 35 % of an H100",
        "paper",
    ),
    "quantisation": (0.22, BETWEEN, "inferred"),
    "sharpness": (1.8, f"{BETWEEN} in bf16", "inferred"),
}
UNITS = {"v100": 80, "a100_40": 108, "a100_80": 108, "h100": 132, "h200": 132, "b200": 148, "gb200": 148}
# Accelerators of the catalog that a device of the table is, the measured one first, and the formats that
# stand for a precision.
ACCELERATORS: Mapping[str, Sequence[str]] = {"H100-SXM": ("h100", "h200"), "B200": ("b200", "gb200")}
PRECISIONS = {"bf16": "bf16xbf16->bf16", "fp16": "f16xf16->f16", "tf32": "f32xf32->f32"}


def document(fitted: Mapping[str, Fitted]) -> str:
    """Return the text of the catalog file."""
    general = "".join(f"  {name}: {_number(*number)}\n" for name, number in GENERAL.items())
    units = "".join(f"  {name}: {_number(count, BOOK, 'secondary')}\n" for name, count in UNITS.items())
    entries = "".join(_entry(device, laws) for device, laws in sorted(fitted.items()))
    return f"{HEADER}\ngeneral:\n{general}\nunits:\n{units}\nentries:\n{entries}"


def _entry(device: str, laws: Fitted) -> str:
    first = next(iter(laws.values())).residual
    assert first is not None
    name = "gemm_" + device.lower().replace("-", "_")
    lines = [
        f"  {name}:",
        f"    device: {device}",
        f"    accelerators: [{', '.join(ACCELERATORS.get(device, ()))}]",
        f"    precisions: {_flow(_precisions(laws))}",
        f"    reach: {REACH}",
        f"    units: {_number(int(units_of(device)), MAKER, 'secondary')}",
        f"    shapes: {{value: {_shapes(first)}, source: {_quoted(SOURCE)}, confidence: measured}}",
        "    formats:",
    ]
    return "\n".join(lines) + "\n" + "".join(_law(formats, time) for formats, time in laws.items())


def _precisions(laws: Fitted) -> dict[str, str]:
    """Return which formats stand for a precision: half precision runs as bf16 where it was not measured."""
    found = {precision: formats for precision, formats in PRECISIONS.items() if formats in laws}
    return {"fp16": found["bf16"], **found} if "bf16" in found else found


def _law(formats: str, time: GemmTime) -> str:
    law, residual = time.law, time.residual
    assert residual is not None
    numbers: dict[str, Any] = {
        "rate": f"{law.rate / 1e12:.5g} TFLOP/s",
        "bandwidth": f"{law.bandwidth / 1e9:.5g} GB/s",
        "start_up": format_time(law.start_up),
        "quantisation": round(law.quantisation, 4),
        "sharpness": round(law.sharpness, 4),
    }
    lines = [f"      {_quoted(formats)}:"]
    lines += [f"        {name}: {_number(value, SOURCE, 'inferred')}" for name, value in numbers.items()]
    weights = ", ".join(f"{weight:.4g}" for weight in residual.weights)
    return "\n".join([*lines, f"        weights: [{weights}]"]) + "\n"


def _shapes(residual: Residual) -> str:
    rows = [[round(2**part) for part in point] for point in residual.points.tolist()]
    return "[" + ", ".join(f"[{', '.join(map(str, row))}]" for row in rows) + "]"


def _number(value: Any, source: str, confidence: str) -> str:
    shown = _quoted(value) if isinstance(value, str) else value
    return f"{{value: {shown}, source: {_quoted(source)}, confidence: {confidence}}}"


def _flow(mapping: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {_quoted(value)}" for key, value in mapping.items()) + "}"


def _quoted(text: str) -> str:
    return f'"{text}"'


if __name__ == "__main__":
    sys.stdout.write(document(fit_tables(read_gemm_tables(Path(sys.argv[1])))))
