"""At which sizes primitives are measured: a grid in which runs are then interpolated."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

KB, MB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Grid:
    """Sizes by kind of primitive, and the shapes that they are measured for.

    `bytes_`: collectives; `copies`: memory copies, bytes; `keys`: sorting and adding up; `rows`: rows read
    or written; `tables`: rows of the table that they lie in; `samples`: batches of the dense networks;
    `values`: element-wise passes; `networks`: widths of dense networks; `dimension`: values of a row;
    `repetition`: how often a row occurs among those that are added up; `matrices`: (m, n, k) of products;
    `budget`: seconds for each size in each round.
    """

    bytes_: tuple[int, ...] = (KB, 16 * KB, 64 * KB, 192 * KB, 512 * KB, MB, 2 * MB, 4 * MB)
    copies: tuple[int, ...] = (256, 4 * KB, 64 * KB, 512 * KB, 4 * MB, 16 * MB)
    keys: tuple[int, ...] = (16, 512, 2048, 8192, 65536)
    rows: tuple[int, ...] = (16, 256, 1024, 4096, 16384, 65536)
    tables: tuple[int, ...] = (2_000, 20_000, 150_000, 800_000)
    samples: tuple[int, ...] = (2, 64, 512, 2048)
    values: tuple[int, ...] = (64, 4096, 65536, 524288, 2 * MB)
    networks: tuple[tuple[int, ...], ...] = ((525, 256, 128, 1),)
    dimension: int = 32
    repetition: tuple[float, ...] = (1.2, 3.0)
    matrices: tuple[tuple[int, int, int], ...] = (
        (64, 64, 64),
        (256, 256, 256),
        (512, 512, 512),
        (16, 256, 512),
        (64, 1024, 128),
        (256, 64, 1024),
        (512, 128, 64),
        (1024, 512, 256),
    )
    collectives: tuple[str, ...] = ("all_to_all", "all_reduce", "all_gather", "reduce_scatter", "broadcast")
    budget: float = 0.03

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Grid":
        """Return the grid in plain data (lists become tuples)."""
        return cls(**{name: tupled(value) for name, value in data.items()})


def tupled(value: Any) -> Any:
    """Return lists within lists as tuples."""
    return tuple(tupled(one) for one in value) if isinstance(value, list) else value


QUICK = Grid(
    bytes_=(KB, 64 * KB, MB),
    copies=(256, 4 * KB, 64 * KB, 4 * MB),
    keys=(16, 1024, 8192),
    rows=(16, 1024, 8192),
    tables=(10_000, 100_000),
    samples=(2, 64, 512),
    values=(64, 65536, MB),
    budget=0.02,
)
