"""What could be built: every combination of hardware, size, policy, micro-batches and sharding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from analysis.plan.question import HardwareSpec, Question
from analysis.sweep.axes import WORKERS, Setting
from analysis.sweep.grid import Point, point_of
from analysis.sweep.points import at_point
from simulator.errors import InputError, did_you_mean
from simulator.policies import catalog
from simulator.scenario import Scenario
from simulator.units import shown

MOST_CANDIDATES = 20_000
Choice = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Candidate:
    """One plan that could be followed, as settings of the question's scenario; `key` tells it from others."""

    key: str
    hardware: str
    workers: int
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Space:
    """All candidates of a question, by the places of their parts in the lists of the file."""

    question: Question

    @cached_property
    def axes(self) -> tuple[Sequence[Any], ...]:
        """The parts to choose from: hardware with a size, policy with micro-batches, sharding, batch."""
        spec = self.question.spec
        sizes = [(option, workers) for option in spec.hardware for workers in option.workers]
        allowed = spec.limits.workers
        kept = [(option, workers) for option, workers in sizes if allowed is None or workers <= allowed]
        if not kept:
            where = self.question.document.where(("limits", "workers"))
            raise InputError(f"no candidate has at most {allowed} workers", where)
        return (
            kept,
            [policy for _, policy in self.placed_policies()],
            spec.sharding or (None,),
            spec.batch or (None,),
        )

    @property
    def size(self) -> int:
        """How many candidates there are."""
        count = 1
        for axis in self.axes:
            count *= len(axis)
        return count

    def placed_policies(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each policy with its place in the list, once per number of micro-batches it is to have."""
        counts = self.question.spec.micro_batches
        for place, policy in enumerate(self.question.spec.policies):
            self._check_kind(place, policy.get("kind"))
            if "micro_batches" not in catalog.taken_by(str(policy.get("kind"))) or "micro_batches" in policy:
                yield place, policy
                continue
            if not counts:
                where = self.question.document.where(("policies", place))
                raise InputError("needs micro_batches, here or as a list of the question", where)
            yield from ((place, {**policy, "micro_batches": count}) for count in counts)

    def _check_kind(self, place: int, kind: object) -> None:
        known = [*catalog.names(), "nested"]  # a kind may be of any type, even one that no set can hold
        if kind not in known:
            where = self.question.document.where(("policies", place))
            raise InputError(f"no policy is called {shown(kind)}{did_you_mean(str(kind), known)}", where)

    def every(self) -> list[Candidate]:
        """Return all candidates. Raises InputError when there are too many to try."""
        if self.size > MOST_CANDIDATES:
            problem = f"{self.size:,} candidates are too many to try all; add a search"
            raise InputError(problem, self.question.document.where(()))
        return [self.at(choice) for choice in product(*self.axes)]

    def at(self, choice: Choice) -> Candidate:
        """Return the candidate with these parts."""
        (option, workers), policy, sharding, batch = choice
        settings = [*self._cluster(option), ("policy", policy), (WORKERS, workers)]
        settings += [("sharding", sharding)] if sharding is not None else []
        settings += [("workload.batch", batch)] if batch is not None else []
        key = point_of(self.question.base, tuple(settings), option.name).key
        return Candidate(key, option.name, workers, tuple(settings))

    def first(self, option: HardwareSpec) -> Scenario:
        """Return the scenario on `option` under the first of all else, of the scenario's own size.

        Raises InputError that names the option and the setting.
        """
        return self.built(option, tuple(axis[0] for axis in self.axes[1:]))

    def built(self, option: HardwareSpec, rest: Choice) -> Scenario:
        """Return the scenario on `option` with a policy, a sharding and a batch, of its own size."""
        settings = self.at(((option, option.workers[0]), *rest)).settings
        sized = tuple(one for one in settings if one[0] != WORKERS)
        return at_point(self.question.base, sized, option.name)

    def _cluster(self, option: HardwareSpec) -> list[Setting]:
        cluster = [] if option.cluster is None else [("cluster", option.cluster)]
        return [*cluster, *option.settings.items()]

    def point(self, candidate: Candidate, engine: str) -> Point:
        """Return what runs the candidate."""
        return replace(point_of(self.question.base, candidate.settings, engine), source=candidate.hardware)
