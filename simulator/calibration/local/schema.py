"""The file that a measurement is kept in: what it holds, version by version, and how it is read.

`docs/guides/calibrate.md` describes every field. A reader refuses what it does not know, in one line.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simulator.errors import InputError, Where, regular_file

FORMAT, VERSION = "recscale.measurement", 1
MOST_BYTES = 64 << 20


class Part(BaseModel):
    """A part of the file; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LaunchPart(Part):
    """How the ranks were started."""

    substrate: str
    links: str
    link_bytes_per_s: float | None
    burst_bytes: float
    ranks: int = Field(ge=1)
    pinned: bool
    isolated: bool


class LoadPart(Part):
    """Shares of all cores that other work kept busy, before and after."""

    before: float | None
    after: float | None
    allowed: bool
    quiet: bool


class PointPart(Part):
    """One size."""

    size: float = Field(gt=0)
    seconds: float = Field(gt=0)
    p90_over_p50: float
    cpu_seconds: float = Field(ge=0)
    repeats: int = Field(ge=1)
    back_to_back: float | None
    stolen_seconds: float | None
    pace: float | None = None


class CurvePart(Part):
    """One operation by size."""

    operation: str
    unit: str
    context: float
    shape: tuple[int, ...]
    points: tuple[PointPart, ...] = Field(min_length=1)


class RpcPart(Part):
    """One way of asking parameter servers for rows."""

    mode: Literal["in_turn", "at_once", "coalesced"]
    tables: int = Field(ge=1)
    keys: int = Field(ge=0)
    servers: int = Field(ge=1)
    row_bytes: int
    bytes: float
    seconds: float = Field(gt=0)
    p90_over_p50: float
    repeats: int


class RunPart(Part):
    """One real run."""

    settings: dict[str, Any]
    step_s: tuple[float, ...]
    stage_s: dict[str, float]
    stage_cpu_s: dict[str, float]
    loss: tuple[float, ...]
    against_first: dict[str, float]
    pace: float | None = None


class NoisePart(Part):
    """The median p90 / p50 over all points of a kind; None where there are none."""

    local: float | None
    collective: float | None
    rpc: float | None


class MeasurementFile(Part):
    """The whole file."""

    format: Literal["recscale.measurement"]
    version: Literal[1]
    taken: str
    launch: LaunchPart
    load: LoadPart
    noise: NoisePart
    environment: dict[str, Any]
    primitives: tuple[CurvePart, ...]
    rpc: tuple[RpcPart, ...]
    software: tuple[RunPart, ...]
    runs: tuple[RunPart, ...]


def read_measurement(path: Path) -> dict[str, Any]:
    """Return the checked content of a measurement file as plain data.

    Raises InputError, naming the file and the place in it, for anything that is not one.
    """
    import orjson

    if regular_file(path).stat().st_size > MOST_BYTES:
        raise InputError(f"is larger than {MOST_BYTES >> 20} MiB; no measurement is", Where(str(path)))
    try:
        data = orjson.loads(path.read_bytes())
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", Where(str(path))) from None
    return checked(data, str(path))


def checked(data: Any, file: str) -> dict[str, Any]:
    """Return `data` if it is a measurement. Raises InputError naming the first field that is wrong."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError('is not a measurement (no "format": "recscale.measurement")', Where(file))
    if data.get("version") != VERSION:
        raise InputError(f"has version {data.get('version')!r}; this release reads {VERSION}", Where(file))
    try:
        MeasurementFile.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{first['msg'].lower()}", Where(file, path=place)) from None
    return data
