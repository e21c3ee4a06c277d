"""The `cluster.compute` part of a scenario: how fast dense work goes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from simulator.costs import DenseSpeed, Roofline, Utilization
from simulator.costs.gemm import Shapes
from simulator.costs.gemm_laws import Laws, laws_of
from simulator.errors import InputError, Where, did_you_mean
from simulator.quantities import DenseWork, value_bytes
from simulator.scenario.base import Spec
from simulator.scenario.fields import Fraction
from simulator.scenario.places import inside
from simulator.scenario.source import read_document


class RooflineSpec(Spec):
    """Dense work by matrix rate, memory passes and launches."""

    kind: Literal["roofline"]

    def build(self, folder: Path) -> DenseSpeed:
        """Return the roofline."""
        return Roofline()


class KernelsSpec(Spec):
    """Dense work kernel by kernel: each matrix product by its shape, as measured where it was measured.

    With `file`, products follow the `law` of that name in a file that `recscale calibrate fit --out` wrote,
    in the scenario's folder, on every accelerator of the cluster.
    """

    kind: Literal["kernels"]
    file: str | None = None
    law: str | None = None

    @model_validator(mode="after")
    def _both_or_none(self) -> "KernelsSpec":
        """Refuse a file without a law, and a law without a file."""
        if (self.file is None) != (self.law is None):
            missing = "law" if self.law is None else "file"
            raise ValueError(f"{missing} is missing: a fitted law is named by its file and its name")
        return self

    def build(self, folder: Path) -> DenseSpeed:
        """Return the speed of kernels. Raises InputError for whatever is wrong with the file."""
        from simulator.costs.kernels import Kernels

        return Kernels(self.laws(folder))

    def laws(self, folder: Path) -> Laws:
        """Return the named law by precision; nothing where none is named."""
        if self.file is None or self.law is None:
            return {}
        path = inside(folder, self.file)
        known = laws_of(read_document(path).data, str(path))
        if self.law not in known:
            problem = f'no law of matrix products is called "{self.law}"{did_you_mean(self.law, known)}'
            raise InputError(problem, Where(str(path)))
        return known[self.law]

    def outside(self, works: Sequence[DenseWork], folder: Path) -> list[str]:
        """Return whether some products of `works` lie outside of what the named law was measured on."""
        laws = self.laws(folder)
        for work in works:
            if work.products is None or work.precision not in laws:
                continue
            width = float(value_bytes(work.precision))
            if np.any(laws[work.precision].extrapolates(Shapes.of(work.products, width, width))):
                return [f"matrix products of other sizes than {self.law} was measured on"]
        return []


class UtilizationSpec(Spec):
    """Dense work by a measured share of the peak for the whole model."""

    kind: Literal["utilization"]
    share: Fraction
    source: str

    def build(self, folder: Path) -> DenseSpeed:
        """Return the utilization. Raises InputError for a share of nothing."""
        if self.share <= 0:
            raise InputError("compute.share must be above 0")
        return Utilization(self.share)


ComputeSpec = Annotated[RooflineSpec | KernelsSpec | UtilizationSpec, Field(discriminator="kind")]
