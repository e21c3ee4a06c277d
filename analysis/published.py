"""Published figures: one row of `published.csv` per number, with its role and how far it can be trusted."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from simulator.errors import InputError

ROLES = {
    "input": "typed into a scenario",
    "fit": "used, itself or through rows derived from it, to find or choose a number of a scenario",
    "predict": "neither",
}
CONFIDENCE = {
    "P": "read in the source itself",
    "S2": "reported alike by two or more separate summaries",
    "S1": "reported by one summary",
    "I": "computed by us from other rows",
}
_POLICY = re.compile(r"(?P<kind>[a-z_0-9]+?)(?:\((?P<parts>\d+)\))?")


@dataclass(frozen=True)
class Published:
    """One published number.

    `policy` is a policy's name, with its number of micro-batches in parentheses; it is empty, like
    `workers` (0), for an input, whose `quantity` is a path of the scenario and whose `value` is in SI
    units or per cent. `derived_from` names the rows that the number was computed from (of an input: or
    chosen on). `shares` names the rows used for a fit that a prediction contains or repeats.
    """

    id: str
    scenario: str
    policy: str
    workers: int
    quantity: str
    value: float
    unit: str
    role: str
    confidence: str
    derived_from: tuple[str, ...]
    shares: tuple[str, ...]
    source: str
    note: str

    def __post_init__(self) -> None:
        """Refuse roles and confidences that are not defined."""
        if self.role not in ROLES or self.confidence not in CONFIDENCE:
            raise InputError(f"{self.id}: unknown role {self.role!r} or confidence {self.confidence!r}")

    @property
    def policy_part(self) -> dict[str, Any]:
        """Return the policy as the part of a scenario that describes it."""
        return policy_part(self.policy)

    @property
    def is_clean(self) -> bool:
        """Whether it is a prediction that shares no number with a fit."""
        return self.role == "predict" and not self.shares

    @property
    def is_bound(self) -> bool:
        """Whether the number is an upper limit."""
        return self.quantity.endswith("_at_most")


def policy_part(text: str) -> dict[str, Any]:
    """Return `name(parts)` as the policy part of a scenario. Raises InputError on other text."""
    match = _POLICY.fullmatch(text)
    if not match:
        raise InputError(f'"{text}" is not a policy, or a policy(micro-batches)')
    return {"kind": match["kind"], **({"micro_batches": int(match["parts"])} if match["parts"] else {})}


def published() -> tuple[Published, ...]:
    """Return all rows in the order of the file. Raises InputError on double or unknown ids."""
    text = files("analysis").joinpath("published.csv").read_text(encoding="utf-8")
    rows = tuple(_row(record) for record in csv.DictReader(text.splitlines()))
    _check_ids(rows)
    return rows


def by_id() -> dict[str, Published]:
    """Return the rows by their id."""
    return {row.id: row for row in published()}


def ancestors(names: Iterable[str], rows: Mapping[str, Published]) -> set[str]:
    """Return the rows that rows called `names` were computed from or chosen on, directly or not."""
    nearest = {origin for name in names for origin in rows[name].derived_from}
    return nearest | ancestors(nearest, rows) if nearest else nearest


def _row(record: dict[str, str]) -> Published:
    numbers: dict[str, Any] = {
        "workers": int(record["workers"] or 0),
        "value": float(record["value"]),
        "derived_from": tuple(record["derived_from"].split()),
        "shares": tuple(record["shares"].split()),
    }
    return Published(**{**record, **numbers})


def _check_ids(rows: Sequence[Published]) -> None:
    ids = [row.id for row in rows]
    unknown = {origin for row in rows for origin in (*row.derived_from, *row.shares)} - set(ids)
    if len(set(ids)) < len(ids) or unknown:
        raise InputError(f"published.csv: ids must be unique and known: {sorted(unknown) or ids}")
