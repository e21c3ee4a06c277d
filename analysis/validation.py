"""Predictions against published figures, and what a plain sum of the same parts would have said.

`python -m analysis.validation` writes `docs/validation.md` anew (run it in the checkout).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from analysis import bagpipe, google
from analysis.published import Published, by_id, policy_part, published
from analysis.validated import Watch, unwatched, watched
from simulator.policies import catalog
from simulator.scenario import Run, Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

FEWEST = 128  # scaling efficiencies of the NestPipe figures compare with so many workers
MOST_FITTED = 512  # the network of the NPU system was fitted up to so many
WORTH = 0.02  # a prediction beats the plain sum if the sum errs by so much more
LOOKUP_HIDDEN = ("stale_prefetch", "dual_buffer", "nestpipe")


@dataclass(frozen=True)
class Parts:
    """A step in the words of the NestPipe figures, ms.

    `compute` contains the all-reduce that shows and all other waits; `lookup` (with the input) and
    `all_to_all` are the exposed parts; the three together are the step. `refresh` is the copy
    between row buffers, None where there is none.
    """

    compute: float
    lookup: float
    all_to_all: float
    raw_lookup: float
    raw_all_to_all: float
    refresh: float | None = None

    @property
    def step(self) -> float:
        """The whole step."""
        return self.compute + self.lookup + self.all_to_all


class Model(Protocol):
    """Whatever can say what a step consists of."""

    @property
    def samples(self) -> int:
        """Samples per worker and step."""

    def parts(self, policy: str, workers: int) -> Parts:
        """Return the step under `policy`, written as in published.csv, on `workers` ranks."""


@dataclass
class Simulated:
    """The simulator's answer for one scenario; runs are kept."""

    scenario: Scenario
    known: dict[tuple[str, int], Parts] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        """Samples per worker and step."""
        return self.scenario.workload.batch

    def parts(self, policy: str, workers: int) -> Parts:
        """Return the simulated step."""
        if (policy, workers) not in self.known:
            shaped = self.scenario.with_policy(policy_part(policy)).with_workers(workers)
            self.known[policy, workers] = _parts(run_scenario(shaped))
        return self.known[policy, workers]


def _parts(run: Run) -> Parts:
    report = run.report
    exposed, raw = report.exposed_ms, report.raw_ms
    lookup, all_to_all = exposed["input"] + exposed["lookup"], exposed["all_to_all"]
    return Parts(
        compute=report.step_ms["mean"] - lookup - all_to_all,
        lookup=lookup,
        all_to_all=all_to_all,
        raw_lookup=raw["input"] + raw["lookup"],
        raw_all_to_all=raw["all_to_all"],
        refresh=_refresh_ms(run),
    )


def _refresh_ms(run: Run) -> float | None:
    nodes = [i for i, node in enumerate(run.timeline.graph.nodes) if node.stage.name == "refresh"]
    return float(run.durations.nominal_ns[nodes].max()) / 1e6 if nodes else None


@dataclass(frozen=True)
class PlainSum:
    """No simulation: the raw parts of the whole batch, less what the policy's rule of thumb hides.

    A prefetching policy hides the lookup, N micro-batches hide all but 1/N of the all-to-all.
    `kept`: the share of the all-to-all that groups of workers leave; `simulated` is without groups.
    """

    simulated: Simulated
    kept: float = 1.0

    @classmethod
    def of(cls, simulated: Simulated) -> "PlainSum":
        """Return the sum for a scenario; groups leave what was published of them at 1,536 workers."""
        if simulated.scenario.step.placed.plan.replicas.count == 1:
            return cls(simulated)
        known, whole = by_id(), simulated.scenario.with_overrides(["sharding.replicas=1"])
        return cls(Simulated(whole), known["T6b"].value / known["T2b"].value)

    @property
    def samples(self) -> int:
        """Samples per worker and step."""
        return self.simulated.samples

    def parts(self, policy: str, workers: int) -> Parts:
        """Return the summed step."""
        whole, part = self.simulated.parts("serialized", workers), policy_part(policy)
        lookup = 0.0 if part["kind"] in LOOKUP_HIDDEN else whole.raw_lookup
        raw = whole.raw_all_to_all * self.kept
        return Parts(whole.compute, lookup, raw / part.get("micro_batches", 1), whole.raw_lookup, raw)


@dataclass(frozen=True)
class Case:
    """One policy at one size, as `model` sees it."""

    model: Model
    policy: str
    workers: int

    @property
    def parts(self) -> Parts:
        """The step."""
        return self.model.parts(self.policy, self.workers)

    def step_elsewhere(self, policy: str, workers: int) -> float:
        """Return the step (ms) of another case of the same model."""
        return self.model.parts(policy, workers).step


def _of_bagpipe(case: Case, quantity: str) -> float | None:
    """Return a quantity of Bagpipe's scenario, of which a plain sum knows nothing."""
    return bagpipe.of(case.model.scenario, quantity) if isinstance(case.model, Simulated) else None


QUANTITIES: Mapping[str, Callable[[Case], float | None]] = {
    "step_ms": lambda case: case.parts.step,
    "compute_ms": lambda case: case.parts.compute,
    "lookup_ms": lambda case: case.parts.lookup,
    "all_to_all_ms": lambda case: case.parts.all_to_all,
    "raw_all_to_all_ms": lambda case: case.parts.raw_all_to_all,
    "exposed_share": lambda case: 100 * case.parts.all_to_all / case.parts.raw_all_to_all,
    "lookup_share": lambda case: 100 * case.parts.lookup / case.parts.step,
    "all_to_all_share": lambda case: 100 * case.parts.all_to_all / case.parts.step,
    "utilisation": lambda case: 100 * case.parts.compute / case.parts.step,
    "throughput": lambda case: case.workers * case.model.samples / case.parts.step * 1e3,
    "speedup": lambda case: case.step_elsewhere("serialized", case.workers) / case.parts.step,
    "scaling_efficiency": lambda case: 100 * case.step_elsewhere(case.policy, FEWEST) / case.parts.step,
    "refresh_ms_at_most": lambda case: case.parts.refresh,
    "pipelined_gain_at_most": lambda case: _of_five(case, lambda five: max(one.pipelining for one in five)),
    "bound_gain_at_most": lambda case: _of_five(
        case, lambda five: five[-1].whole / google.geometric_mean(five)
    ),
    **{name: partial(_of_bagpipe, quantity=name) for name in bagpipe.QUANTITIES},
}


def _of_five(case: Case, pick: Callable[[tuple[google.Gains, ...]], float]) -> float | None:
    """Return something of the five models that stand for Google's; a plain sum knows nothing of them."""
    return pick(google.five()) if isinstance(case.model, Simulated) else None


def rows(folder: Path | None = None, watch: Watch = unwatched) -> list[dict[str, Any]]:
    """Return one record per published row, in the order of the file; `watch(done, of)` hears how far it is.

    `predicted` (for a fit row: what the fitted scenario gives; for an input row: what the scenario
    says) is None where nothing can be said; `error` and `plain_sum_error` are shares of the
    published value, None for bounds. `beats_sum`: the row is a prediction, and the plain sum misses it
    by two points more. `shares`: the rows used for a fit that a prediction contains or repeats.
    `extrapolated`: more workers than the network was fitted on.
    """
    listed, place = published(), folder or shipped_folder()
    models = {file: Simulated(load(place / file)) for file in dict.fromkeys(row.scenario for row in listed)}
    sums = {file: PlainSum.of(simulated) for file, simulated in models.items()}
    return [_record(row, models[row.scenario], sums[row.scenario]) for row in watched(listed, watch)]


def _record(row: Published, simulated: Simulated, summed: PlainSum) -> dict[str, Any]:
    predicted, plain = _predicted(row, simulated), _value(row, summed)
    error, plain_error = _error(row, predicted), _error(row, plain)
    return {
        "id": row.id,
        "scenario": row.scenario,
        "policy": row.policy,
        "workers": row.workers,
        "quantity": row.quantity,
        "unit": row.unit,
        "role": row.role,
        "confidence": row.confidence,
        "shares": list(row.shares),
        "published": row.value,
        "predicted": predicted,
        "error": error,
        "plain_sum": plain,
        "plain_sum_error": plain_error,
        "beats_sum": row.role == "predict" and _beats(error, plain_error),
        "extrapolated": row.role == "predict" and predicted is not None and row.workers > MOST_FITTED,
        "source": row.source,
        "note": row.note,
    }


def _predicted(row: Published, simulated: Simulated) -> float | None:
    return scenario_value(simulated.scenario, row) if row.role == "input" else _value(row, simulated)


def _value(row: Published, model: Model) -> float | None:
    if row.quantity not in QUANTITIES or row.policy_part["kind"] not in catalog.names():
        return None
    return QUANTITIES[row.quantity](Case(model, row.policy, row.workers))


def _error(row: Published, predicted: float | None) -> float | None:
    return None if predicted is None or row.is_bound else predicted / row.value - 1


def _beats(error: float | None, plain_error: float | None) -> bool:
    return error is not None and plain_error is not None and abs(plain_error) - abs(error) > WORTH


def scenario_value(scenario: Scenario, row: Published) -> float:
    """Return what the scenario says at the path that an input row names; shares in per cent."""
    part: Any = scenario.spec
    for name in row.quantity.split("."):
        part = getattr(part, name)
    return float(part) * (100 if row.unit == "%" else 1)


if __name__ == "__main__":
    from analysis.validation_page import write

    print(write(Path("docs/validation.md")))
