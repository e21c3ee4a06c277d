"""The `cluster.collectives` part of a scenario: measured curves, algorithms, what messages cost."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from simulator.costs.algorithms import Choice, Overheads
from simulator.costs.curves import Curve
from simulator.errors import InputError, Where, did_you_mean
from simulator.scenario.base import Spec
from simulator.scenario.fields import Time
from simulator.scenario.places import inside
from simulator.scenario.source import read_document

MEASURED = ("all_to_all", "all_reduce", "all_gather", "reduce_scatter")
Reduction = Literal["auto", "hierarchical", "ring"]


class AlgorithmsSpec(Spec):
    """The algorithm of each operation; `auto` takes the fastest for the size and the ranks at hand."""

    all_to_all: Literal["auto", "direct", "pairwise", "hierarchical"] = "direct"
    all_reduce: Literal["auto", "hierarchical", "ring", "tree"] = "hierarchical"
    all_gather: Reduction = "hierarchical"
    reduce_scatter: Reduction = "hierarchical"
    broadcast: Literal["auto", "ring", "tree"] = "ring"

    def build(self) -> Choice:
        """Return the choice."""
        return Choice(**dict(self))


class CollectivesSpec(Spec):
    """Measured collectives of the catalog (`recscale catalog list collective`), or how they are done.

    A measured curve takes the place of the algorithm's own time; which links it keeps busy remains. With
    `file`, curves are those of a catalog that `recscale calibrate fit --out` wrote, in the scenario's folder.
    """

    file: str | None = None
    all_to_all: str | None = None
    all_reduce: str | None = None
    all_gather: str | None = None
    reduce_scatter: str | None = None
    algorithms: AlgorithmsSpec = AlgorithmsSpec()
    per_peer: Time = 0.0
    per_message: Time | None = None
    per_message_within: Time = 0.0

    @model_validator(mode="after")
    def _one_source_of_time(self) -> "CollectivesSpec":
        """Refuse what a measured curve contains already: it would change the collective's shape alone."""
        usual = AlgorithmsSpec()
        for operation, curve in self._named.items():
            told = getattr(self.algorithms, operation) != getattr(usual, operation)
            if told or (operation == "all_to_all" and self.per_peer):
                what = f"algorithms.{operation}" if told else "per_peer"
                raise ValueError(
                    f"the curve {operation}: {curve} takes the place of {what}: leave out one of them"
                )
        if self.file is not None and not self._named:
            raise ValueError(f"file: no curve of it is named; name one under {', '.join(MEASURED)}")
        return self

    @property
    def _named(self) -> dict[str, str]:
        """The names of curves by operation."""
        named = {operation: getattr(self, operation) for operation in MEASURED}
        return {operation: name for operation, name in named.items() if name is not None}

    def curves(self, folder: Path) -> dict[str, Curve]:
        """Return the curves by operation; a `file` is looked for in `folder`.

        Raises InputError on unknown names, other operations and whatever is wrong with the file.
        """
        curve = self._finder(folder)
        found = {operation: curve(name) for operation, name in self._named.items()}
        for operation, one in found.items():
            if one.operation != operation:
                raise InputError(f"collectives.{operation}: that curve was measured for {one.operation}")
        return found

    def _finder(self, folder: Path) -> Callable[[str], Curve]:
        """Return what finds a curve by name: in the file if there is one, else in the catalog."""
        from simulator.costs import curve_catalog

        if self.file is None:
            return curve_catalog.curve
        path = inside(folder, self.file)
        known = curve_catalog.curves_of(read_document(path).data, str(path))

        def find(name: str) -> Curve:
            if name not in known:
                problem = f'no measured collective is called "{name}"{did_you_mean(name, known)}'
                raise InputError(problem, Where(str(path)))
            return known[name]

        return find

    def overheads(self) -> Overheads:
        """Return what messages cost beside their bytes."""
        return Overheads(self.per_peer, self.per_message, self.per_message_within)
