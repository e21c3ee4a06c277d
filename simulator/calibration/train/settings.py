"""What one real run trains, how, and for how long."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import Any

from simulator.errors import InputError, did_you_mean

OPTIMIZERS = ("sgd", "adagrad")
MOST_ROWS = 200_000_000  # values of all tables together
MOST_EXPONENT, MOST_RATE = 20.0, 1e3


@dataclass(frozen=True)
class Model:
    """Tables with one key per sample each, and the dense layers behind them.

    `tables` tables of `rows` rows of `dimension` values; `features` dense inputs; `hidden` widths.
    Keys are Zipf with `exponent`. Raises InputError on impossible values.
    """

    tables: int = 8
    rows: int = 20_000
    dimension: int = 32
    features: int = 13
    hidden: tuple[int, ...] = (128, 64)
    exponent: float = 1.05

    def __post_init__(self) -> None:
        """Refuse impossible shapes."""
        least = min(self.tables, self.rows, self.dimension, self.features, *self.hidden, 1)
        if least < 1:
            raise InputError("tables, rows, dimension, features and hidden widths must be at least 1")
        if not 0.0 <= self.exponent <= MOST_EXPONENT:
            raise InputError(
                f"the exponent of the keys is between 0 and {MOST_EXPONENT:g}, not {self.exponent}"
            )
        if self.tables * self.rows * self.dimension > MOST_ROWS:
            raise InputError(
                f"tables hold more than {MOST_ROWS:,} values together: take fewer or smaller ones"
            )

    @property
    def widths(self) -> tuple[int, ...]:
        """The dense network: inputs, hidden layers, one output."""
        return (self.tables * self.dimension + self.features, *self.hidden, 1)

    @property
    def parameters(self) -> int:
        """How many dense parameters there are."""
        return sum(i * o + o for i, o in pairwise(self.widths))


@dataclass(frozen=True)
class Settings:
    """One run: `steps` batches of `batch` samples a rank under `policy` (name and parameters)."""

    policy: str = "serialized"
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    model: Model = Model()
    batch: int = 256
    steps: int = 24
    optimizer: str = "sgd"
    rate: float = 0.05
    seed: int = 0
    keys: str | None = None

    def __post_init__(self) -> None:
        """Refuse an impossible run. Raises InputError."""
        if self.batch < 1 or self.steps < 4:
            raise InputError("a run needs a batch of at least 1 sample and at least 4 steps")
        if not 0.0 < self.rate <= MOST_RATE:
            raise InputError(f"the learning rate is above 0 and at most {MOST_RATE:g}, not {self.rate}")
        parts = self.parameters.get("micro_batches", 1)
        if not 1 <= parts <= self.batch:
            raise InputError(f"a batch of {self.batch} cannot be computed in {parts} micro-batches")
        if self.optimizer not in OPTIMIZERS:
            raise InputError(f'no optimizer "{self.optimizer}"{did_you_mean(self.optimizer, OPTIMIZERS)}')

    @property
    def title(self) -> str:
        """The policy with its parameters, in one word."""
        return "-".join([self.policy, *(str(value) for value in self.parameters.values())])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Settings":
        """Return the settings in plain data. Raises InputError on unknown names and wrong values."""
        _known(data, cls)
        shape = dict(data.get("model", {}))
        _known(shape, Model)
        if "hidden" in shape:
            shape["hidden"] = tuple(shape["hidden"])
        try:
            return cls(**{**data, "model": Model(**shape)})
        except TypeError as error:
            raise InputError(f"a run cannot be read: {error}") from None


def _known(data: Mapping[str, Any], kind: Any) -> None:
    names = {one.name for one in fields(kind)}
    for name in data:
        if name not in names:
            raise InputError(f'a run has no setting "{name}"{did_you_mean(name, names)}')
