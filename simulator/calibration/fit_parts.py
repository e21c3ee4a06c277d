"""What a file of `calibrate measure` holds beside primitives by size: products by shape, collectives."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.calibration.collective_tables import Setting, Table
from simulator.calibration.fit_table import date_of
from simulator.calibration.gemm_table import GemmTable, Product, tables_of
from simulator.costs.curves import BUS_FACTORS, Scale
from simulator.errors import InputError, Where

PRODUCTS = ("gemm", "device_gemm", "torch_gemm")  # operations of shape (m, n, k), in single precision
LIBRARIES = ("nccl", "hccl", "gloo")  # whose collectives alone are called after them
FORMATS = "f32xf32->f32"


def gemm_tables(data: Mapping[str, Any], path: Path) -> tuple[GemmTable, ...]:
    """Return the matrix products of a measurement, a table for the host's and one for the device's.

    Raises InputError for a product without its three sizes.
    """
    return tables_of(_products(data, path))


def _products(data: Mapping[str, Any], path: Path) -> Iterator[Product]:
    for place, curve in enumerate(data.get("primitives") or ()):
        if curve["operation"] not in PRODUCTS:
            continue
        sizes = [float(size) for size in curve.get("shape") or ()]
        if len(sizes) != 3 or min(sizes) < 1:
            problem = "a matrix product needs a shape (m, n, k) of sizes from 1"
            raise InputError(problem, Where(str(path), path=f"primitives[{place}]"))
        for point in curve["points"]:
            yield str(curve["operation"]), FORMATS, (*sizes, 1.0), float(point["seconds"])


def collective_tables(data: Mapping[str, Any], path: Path) -> tuple[Table, ...]:
    """Return the collectives of a measurement that have two sizes or more, as tables of nccl-tests are read.

    Ranks on links with a rate of their own stand for hosts of one rank; others share one host. A file that
    does not say how it was launched has none.
    """
    launch = data.get("launch")
    if isinstance(launch, Mapping) and isinstance(launch.get("ranks"), float):
        raise InputError("launch.ranks: a whole number is needed", Where(str(path)))
    if not isinstance(launch, Mapping) or not isinstance(launch.get("ranks"), int) or launch["ranks"] < 2:
        return ()
    curves = [(_operation(str(one["operation"])), one) for one in data.get("primitives") or ()]
    found = [(name, one) for name, one in curves if name[1] in BUS_FACTORS and len(one["points"]) > 1]
    return tuple(_table(name, one["points"], data, path) for name, one in found)


def _operation(curve: str) -> tuple[str, str]:
    """Return the library that a curve is called after, if it is, and the operation."""
    library, _, rest = curve.partition("_")
    return (library, rest) if library in LIBRARIES else ("", curve)


def _table(
    name: tuple[str, str], points: Sequence[Mapping[str, Any]], data: Mapping[str, Any], path: Path
) -> Table:
    launch, (library, operation) = data["launch"], name
    ranks, links = int(launch["ranks"]), str(launch.get("links", ""))
    measured = sorted((float(point["size"]), float(point["seconds"])) for point in points)
    return Table(
        name=f"{path.name} {library} {operation}",
        cluster="measured",
        setting=Setting(library or str(launch.get("substrate", "")), links),
        operation=operation,
        scale=Scale(ranks, ranks if launch.get("link_bytes_per_s") else 1),
        sizes=tuple(size for size, _ in measured),
        times=tuple(seconds for _, seconds in measured),
        accelerator="the processors of the measured machine",
        network=links,
        source=f"own measurement, {path.name}",
        date=date_of(data),
    )
