"""Policies and cluster sizes side by side: one row per scenario, policy and number of workers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from analysis.ratios import efficiency, speed_up, why_above
from simulator.errors import InfeasibleError, InputError, RecscaleError, did_you_mean
from simulator.policies import catalog
from simulator.scenario import Run, Scenario, run_scenario

REFERENCE = "serialized"
NESTED = "nested"
EXAMPLE = " (policy: {kind: nested, inter_batch: {kind: ...}, intra_batch: {kind: ...}})"
DEFAULT_MICRO_BATCHES = 8
ASSUMED = (
    f"micro_batches is assumed to be {DEFAULT_MICRO_BATCHES}: the scenario states none (--micro-batches N)"
)


@dataclass(frozen=True)
class Row:
    """What one policy reaches on so many workers. Times in ms per step, on the slowest rank.

    `speedup` is over the serialized policy at the same workers, `scaling_efficiency` is throughput per
    worker over that of the same policy on the fewest workers that can run. `plain_sum_of_raw_parts_ms`
    adds up this policy's compute, input, lookup and all-to-all as if nothing overlapped. `updates_lost_share`
    and `updates_duplicated_share` are shares of all updates of rows. A note says why a policy cannot run.
    """

    scenario: str
    policy: str
    workers: int
    step_ms: float | None = None
    speedup: float | None = None
    scaling_efficiency: float | None = None
    throughput_samples_per_s: float | None = None
    compute_ms: float | None = None
    exposed_input_ms: float | None = None
    exposed_lookup_ms: float | None = None
    exposed_all_to_all_ms: float | None = None
    exposed_all_reduce_ms: float | None = None
    exposed_other_ms: float | None = None
    plain_sum_of_raw_parts_ms: float | None = None
    staleness_declared_steps: float | None = None
    staleness_observed_max_steps: float | None = None
    updates_lost_share: float | None = None
    updates_duplicated_share: float | None = None
    peak_memory_hbm_bytes: float | None = None
    peak_memory_host_bytes: float | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return asdict(self)


ESTIMATED = "an estimate of the vector engine: nothing is shared between stages, ranks or collectives"
SUMMED = ("compute", "input", "lookup", "parameter_server", "all_to_all")


@dataclass(frozen=True)
class Request:
    """What to compare. Empty `policies` or `workers`: those of the scenario itself.

    `micro_batches` is for policies that need a number and find none in the scenario; `finished` is
    called with each row and its run (None if it cannot run) as soon as it is there, `progress` by the
    engine in between.
    """

    policies: tuple[str, ...] = ()
    workers: tuple[int, ...] = ()
    micro_batches: int | None = None
    engine: str = "events"
    progress: Callable[[int, int], None] | None = None
    finished: Callable[[Row, Run | None], None] = lambda row, run: None


def compare(scenarios: Sequence[Scenario], request: Request) -> list[Row]:
    """Return one row for each scenario, policy and number of workers, in that order.

    The serialized policy is run beside the others when it is not among them, for the speed-up.
    A policy that a scenario does not suit (its warm-up is too short, its sharding another one) cannot run;
    the others go on. Raises InputError when a scenario, a policy's name or a number of workers is wrong.
    """
    for scenario in scenarios:
        _check_names(scenario, request)
    return [row for scenario in scenarios for row in _rows(scenario, request)]


def _check_names(scenario: Scenario, request: Request) -> None:
    """Refuse unknown policies before anything runs; a written-out one is known where it was written."""
    known = {*catalog.names(), scenario.spec.policy.kind}
    for name in request.policies:
        if name == NESTED and name not in known:
            raise InputError(f"--policies: {NESTED} takes parameters, so write it in a scenario{EXAMPLE}")
        if name not in known:
            raise InputError(f'--policies: no policy is called "{name}"{did_you_mean(name, known)}')


def count_runs(scenarios: Sequence[Scenario], request: Request) -> int:
    """Return how many simulations `compare` is going to run."""
    return sum(len(_sizes(one, request)) * len(_with_reference(one, request)) for one in scenarios)


def policy_part(scenario: Scenario, name: str, micro_batches: int | None) -> dict[str, Any]:
    """Return the `policy` part of a file for the policy `name`.

    Parameters come from the scenario's own policy where it has them, at any depth; `micro_batches`
    is used where the scenario states none, and DEFAULT_MICRO_BATCHES where that is None, too.
    """
    own = scenario.spec.policy.model_dump(mode="json")
    if own["kind"] == name:
        return dict(own)
    default = {"micro_batches": micro_batches or DEFAULT_MICRO_BATCHES}
    given = {**default, **dict(_stated(own))}
    return {"kind": name, **{key: given[key] for key in catalog.taken_by(name) if key in given}}


def assumes_micro_batches(scenario: Scenario, request: Request) -> bool:
    """Whether a policy of the request runs with DEFAULT_MICRO_BATCHES because nobody said how many."""
    return (
        _needs_micro_batches(request) and request.micro_batches is None and not _has_micro_batches(scenario)
    )


def ignores_micro_batches(scenario: Scenario, request: Request) -> bool:
    """Whether the scenario states how many micro-batches there are, and the request as well."""
    return request.micro_batches is not None and _has_micro_batches(scenario)


def _needs_micro_batches(request: Request) -> bool:
    return any("micro_batches" in catalog.taken_by(name) for name in request.policies)


def _has_micro_batches(scenario: Scenario) -> bool:
    return "micro_batches" in dict(_stated(scenario.spec.policy.model_dump(mode="json")))


def _stated(part: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in part.items():
        if isinstance(value, dict):
            yield from _stated(value)
        elif key != "kind":
            yield key, value


def _sizes(scenario: Scenario, request: Request) -> tuple[int, ...]:
    return request.workers or (scenario.cluster.ranks,)


def _policies(scenario: Scenario, request: Request) -> tuple[str, ...]:
    return request.policies or (scenario.spec.policy.kind,)


def _with_reference(scenario: Scenario, request: Request) -> tuple[str, ...]:
    """Return the policies to run, the reference first."""
    wanted = _policies(scenario, request)
    return (REFERENCE, *(name for name in dict.fromkeys(wanted) if name != REFERENCE))


def _rows(scenario: Scenario, request: Request) -> list[Row]:
    """Return the rows of one scenario: by policy, then by workers as given.

    Raises InputError where something is wrong with all of them: it is the scenario then.
    """
    sized = {workers: scenario.with_workers(workers) for workers in _sizes(scenario, request)}
    found: dict[tuple[str, int], Row] = {}
    wrong: dict[tuple[str, int], InputError] = {}
    for workers, one in sized.items():
        for name in _with_reference(scenario, request):
            try:
                found[name, workers] = _row(one, name, request)
            except InputError as problem:
                wrong[name, workers] = problem
                found[name, workers] = _cannot(one, name, request, problem)
    wanted = [(name, workers) for name in dict.fromkeys(_policies(scenario, request)) for workers in sized]
    if all(key in wrong for key in wanted):
        raise wrong[wanted[0]]
    return [_related(found[key], found[REFERENCE, key[1]], _fewest(found, key[0])) for key in wanted]


def _fewest(found: Mapping[tuple[str, int], Row], policy: str) -> Row | None:
    """Return the row of `policy` with the fewest workers among those that can run."""
    able = [row for (name, _), row in found.items() if name == policy and row.step_ms is not None]
    return min(able, key=lambda row: row.workers, default=None)


def _row(scenario: Scenario, name: str, request: Request) -> Row:
    changed = scenario.with_policy(policy_part(scenario, name, request.micro_batches))
    try:
        run = run_scenario(changed, request.engine, request.progress)
    except InfeasibleError as problem:
        return _cannot(scenario, name, request, problem)
    return _told(scenario, row_of(run, name), request, run)


def _cannot(scenario: Scenario, name: str, request: Request, problem: RecscaleError) -> Row:
    row = Row(scenario.name, name, scenario.cluster.ranks, notes=(f"cannot run: {problem}",))
    return _told(scenario, row, request, None)


def _told(scenario: Scenario, row: Row, request: Request, run: Run | None) -> Row:
    """Return `row` with what was assumed for it, and say that it is there."""
    if assumes_micro_batches(scenario, replace(request, policies=(row.policy,))):
        row = replace(row, notes=(*row.notes, ASSUMED))
    request.finished(row, run)
    return row


def row_of(run: Run, policy: str) -> Row:
    """Return the row of one run; what relates it to other rows is left out."""
    report = run.report
    exposed, raw, said = report.exposed_ms, report.raw_ms, [ESTIMATED] * run.is_estimate
    return Row(
        report.scenario,
        policy,
        report.ranks,
        step_ms=report.step_ms["mean"],
        throughput_samples_per_s=report.throughput_samples_per_s,
        compute_ms=report.compute_ms,
        exposed_input_ms=exposed["input"],
        exposed_lookup_ms=exposed["lookup"],
        exposed_all_to_all_ms=exposed["all_to_all"],
        exposed_all_reduce_ms=exposed["all_reduce"],
        exposed_other_ms=exposed["other"] + exposed["parameter_server"],
        plain_sum_of_raw_parts_ms=sum(raw[kind] for kind in SUMMED),
        staleness_declared_steps=report.staleness_steps["declared"],
        staleness_observed_max_steps=report.staleness_steps["observed_max"],
        updates_lost_share=report.updates["lost_share"],
        updates_duplicated_share=report.updates["duplicated_share"],
        peak_memory_hbm_bytes=report.peak_memory_bytes["hbm"],
        peak_memory_host_bytes=report.peak_memory_bytes["host"],
        notes=(*said, *report.notes, *(f"beyond data: {what}" for what in report.extrapolated)),
    )


def _related(row: Row, reference: Row, fewest: Row | None) -> Row:
    """Return `row` with its speed-up over `reference` and its efficiency against that of `fewest` workers."""
    gained, scaled = speed_up(row.step_ms, reference.step_ms), _efficiency(row, fewest)
    why = why_above(scaled, vars(row), vars(fewest), fewest.workers) if fewest else []
    return replace(row, speedup=gained, scaling_efficiency=scaled, notes=(*row.notes, *why))


def _efficiency(row: Row, fewest: Row | None) -> float | None:
    """Return the efficiency against the row with the fewest workers, where both could run."""
    if fewest is None:
        return None
    mine, least = row.throughput_samples_per_s, fewest.throughput_samples_per_s
    return None if mine is None or least is None else efficiency(mine, row.workers, least, fewest.workers)
