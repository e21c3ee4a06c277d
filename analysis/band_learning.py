"""Half widths of bands from reference measurements, written to `bands.yaml` and checked on what is left out.

`python -m analysis.band_learning FOLDER RECORDINGS` (in the checkout) learns them from a folder of measured
collectives, products and training steps, and from a folder that has `local_runs`.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path

from analysis.bands import FILE, HalfWidth, banded, half_width, log_error, names
from analysis.validated import Validated
from simulator.quantities.statistics import COVERAGE

SOURCES = {
    "collective": "tables of nccl-tests by others (docs/collectives.md names them), each row from the rest",
    "gemm": "table of products in the PyPI package jax-cuda12-pjrt (OpenXLA, Apache-2.0), half from half",
    "local": "tests/data/local_runs, recorded with recscale calibrate measure, from their own primitives",
    "trace": "published training steps: a single profiled job does not tell how far off such jobs are",
}
HEADER = """\
# Half widths of printed bands by kind of case: the share of a prediction by which the measured time is
# larger, or smaller the same way, in {share:.0%} of reference cases, predicted without their own measurement.
# Written by `python -m analysis.band_learning FOLDER RECORDINGS`; not edited by hand.

"""


def reference(folder: Path, recordings: Path) -> list[Validated]:
    """Return the reference cases that are predicted and were not fitted on, without bands."""
    from analysis.validating_collectives import collectives
    from analysis.validating_products import largest_products, products
    from analysis.validating_recorded import local_runs

    found = [*collectives(folder), *products(folder), *largest_products(folder), *local_runs(recordings)]
    return [case for case in found if case.role == "predict" and case.predicted_ms is not None]


def learned(cases: Iterable[Validated]) -> dict[str, HalfWidth]:
    """Return a half width for every name that enough of `cases` share."""
    together: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        for name in names(case):
            together[name].append(log_error(case))
    widths = {name: half_width(errors) for name, errors in sorted(together.items())}
    return {
        name: HalfWidth(round(width, 4), len(together[name]))
        for name, width in widths.items()
        if width is not None
    }


def of_steps(folder: Path) -> HalfWidth:
    """Return the half width of published training steps, by configuration, for kinds with one case only."""
    from math import log

    from analysis.scores import configurations
    from analysis.training.predictions import predict_folder

    shares = [error for one in configurations(predict_folder(folder)) if (error := one.error()) is not None]
    width = half_width([log(1 + share) for share in shares])
    assert width is not None
    return HalfWidth(round(width, 4), len(shares))


def left_out(cases: Sequence[Validated]) -> list[Validated]:
    """Return the cases with bands learned without their origin: its table's source, device or recording."""
    found: list[Validated] = []
    for place in sorted({origin(case) for case in cases}):
        rest = learned(case for case in cases if origin(case) != place)
        found += [banded(case, rest) for case in cases if origin(case) == place]
    return found


def origin(case: Validated) -> tuple[str, str]:
    """Return where a case was measured: what may share a reason for being off."""
    return case.kind, case.source


def text(widths: Mapping[str, HalfWidth], on: date) -> str:
    """Return the text of the file, written `on` that day."""
    import yaml

    data = {"date": on, "sources": SOURCES, "half_widths": {name: vars(one) for name, one in widths.items()}}
    body = yaml.safe_dump(data, sort_keys=False, width=10_000, default_flow_style=None)
    return HEADER.format(share=COVERAGE) + body


def write(folder: Path, recordings: Path, target: Path = Path("analysis") / FILE) -> Path:
    """Write the file and return where it is."""
    widths = learned(reference(folder, recordings)) | {"trace": of_steps(folder)}
    target.write_text(text(widths, date.today()), encoding="utf-8")
    return target


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), Path(sys.argv[2])))
