"""One measured case and what was predicted of it, whatever was measured."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, TypeVar

Item = TypeVar("Item")
Watch = Callable[[int, int], None]


def unwatched(done: int, of: int) -> None:
    """Watch nothing: how far the work is interests nobody."""


def watched(items: Sequence[Item], watch: Watch) -> Iterator[Item]:
    """Yield `items`; `watch(done, of)` hears of each that is done."""
    for place, item in enumerate(items):
        yield item
        watch(place + 1, len(items))


@dataclass(frozen=True)
class Validated:
    """A measured time and its prediction, ms; None where nothing is said, with the reason in `note`.

    `kind` is `training`, `collective`, `gemm`, `trace` or `local`, `group` what it is scored with,
    `configuration` what tells repetitions from different experiments. `role` is `predict`, `fit` for what
    parameters were fitted on, or `none` for what is not predicted; a measured time that cannot be read is
    not a number. `low` and `high` enclose 80 % of such cases; `like` names the cases whose errors say how
    wide that is. `unlike` says in which ways the case lies outside of what was fitted. Cases of one `series`
    differ in `size` only: accelerators, hosts, samples of a step (or bytes of a collective).
    """

    case_id: str
    kind: str
    group: str
    configuration: str
    measured_ms: float
    role: str = "predict"
    predicted_ms: float | None = None
    low: float | None = None
    high: float | None = None
    plain_sum_ms: float | None = None
    peer_ms: float | None = None
    unlike: tuple[str, ...] = ()
    source: str = ""
    note: str = ""
    series: str = ""
    size: tuple[int, int, int] = (1, 1, 0)
    like: str = ""

    @property
    def error(self) -> float | None:
        """Predicted over measured, less one."""
        return None if self.predicted_ms is None else self.predicted_ms / self.measured_ms - 1

    @property
    def extrapolated(self) -> bool:
        """Whether the case lies outside of what was fitted or measured."""
        return bool(self.unlike)

    @property
    def covered(self) -> bool | None:
        """Whether the measured time lies in the printed band; None without one."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured_ms <= self.high

    def with_note(self, note: str) -> "Validated":
        """Return the case with one more thing said about it."""
        return replace(self, note="; ".join(filter(None, (self.note, note))))

    def not_predicted(self, reason: str) -> "Validated":
        """Return the case as one that nothing is said of, with the reason."""
        return replace(self, role="none").with_note(f"not predicted: {reason}")

    def with_prediction(
        self,
        predicted: float,
        band: tuple[float | None, float | None],
        unlike: Iterable[str] = (),
        plain: float | None = None,
        peer: float | None = None,
    ) -> "Validated":
        """Return the case with a prediction, its band, and what other models say."""
        known: dict[str, Any] = {"plain_sum_ms": plain, "peer_ms": peer, "unlike": tuple(unlike)}
        return replace(self, predicted_ms=predicted, low=band[0], high=band[1], **known)

    def record(self) -> dict[str, Any]:
        """Return the case as plain data; a measured time that cannot be read is None."""
        data = asdict(self)
        first = ("case_id", "kind", "group", "measured_ms", "predicted_ms")
        found = {name: data.pop(name) for name in first}
        found["measured_ms"] = self.measured_ms if isfinite(self.measured_ms) else None
        found["error"] = self.error
        found |= {name: data.pop(name) for name in ("low", "high", "role")}
        found["extrapolated"] = self.extrapolated
        return found | {**data, "unlike": list(self.unlike), "size": list(self.size)}
