"""Two layers of popularity: a few hot keys that take a fixed share of lookups, and all the others."""

from dataclasses import dataclass

import numpy as np

from simulator.errors import InputError
from simulator.workload.keys.popularity import Independent, KeyClasses
from simulator.workload.keys.zipf import BoundedZipf


@dataclass(frozen=True)
class Layered(Independent):
    """Lookups go to the keys of `hot` with odds `share`, and else to those of `cold`.

    For logs whose popularity falls off a cliff behind the hottest keys, where one power law cannot
    follow. Raises InputError unless `share` lies between 0 and 1.
    """

    share: float
    hot: BoundedZipf
    cold: BoundedZipf

    def __post_init__(self) -> None:
        """Refuse an impossible share."""
        if not 0.0 < self.share < 1.0:
            raise InputError(f"the share of a layer must lie between 0 and 1, not at {self.share}")

    @property
    def rows(self) -> float:
        """Return the rows of both layers."""
        return self.hot.rows + self.cold.rows

    @property
    def classes(self) -> KeyClasses:
        """Return the classes of both layers, the likeliest first."""
        hot, cold = self.hot.classes, self.cold.classes
        chances = np.append(self.share * hot.probability, (1.0 - self.share) * cold.probability)
        order = np.argsort(-chances, kind="stable")
        return KeyClasses(chances[order], np.append(hot.keys, cold.keys)[order])
