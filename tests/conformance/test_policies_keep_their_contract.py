"""`check_policy` over the whole catalog and all nestings, and over policies that are broken on purpose."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count, product
from pathlib import Path

import pytest
from tiers import some

from simulator.errors import InputError, RecscaleError
from simulator.pipeline import Access, Buffer, Carry, Pipeline, Stage
from simulator.policies import catalog
from simulator.policies.base import Fragment, InterBatch, IntraBatch, Policy
from simulator.policies.dual_buffer import DualBuffer
from simulator.policies.frozen_window import FrozenWindow
from simulator.policies.gradient_accumulation import GradientAccumulation
from simulator.policies.nested import Nested
from simulator.policies.parts import (
    ROWS,
    WholeBatch,
    copy_inputs,
    exchange_rows,
    read_inputs,
    retrieve_rows,
    route_keys,
    write_back,
)
from simulator.policies.stale_prefetch import StalePrefetch
from simulator.quantities import AllToAllWork
from simulator.sharding import TrainStep
from simulator.testing import PolicyError, check_policy, example_steps, structure

INNER: list[IntraBatch] = [
    WholeBatch(),
    FrozenWindow(1),
    FrozenWindow(2),
    FrozenWindow(5),
    GradientAccumulation(3),
]
OUTER: list[InterBatch] = [*(kind() for kind in catalog.INTER_BATCH.values()), DualBuffer(1)]


@pytest.mark.parametrize("name", sorted(catalog.BUILT_IN))
def test_every_policy_of_the_catalog_keeps_its_contract(name: str) -> None:
    given = {"micro_batches": 4, "lookahead": 8}  # a lookahead of 200 is not checked in seconds
    check_policy(catalog.build(name, **{one: given[one] for one in catalog.taken_by(name) if one in given}))


@pytest.mark.parametrize(
    ("outer", "inner"),
    some(list(product(OUTER, INNER)), gate=15),  # each outer and each inner one is among them
    ids=lambda part: repr(part).split(" ")[0].strip("<"),
)
def test_every_nesting_keeps_its_contract_or_is_refused(outer: InterBatch, inner: IntraBatch) -> None:
    if outer.arranges_exchange and inner.arranges_exchange:
        with pytest.raises(InputError, match="the same rows would travel twice"):
            Nested(outer, inner)
    else:
        check_policy(Nested(outer, inner))


def test_a_policy_can_be_checked_on_a_step_of_ones_own() -> None:
    single = replace(next(example_steps()), ranks=2, seed=5)
    check_policy(StalePrefetch(), single)


def test_a_policy_error_is_an_assertion_for_test_runners_and_an_error_of_ours_for_the_command_line() -> None:
    assert issubclass(PolicyError, AssertionError)
    assert issubclass(PolicyError, RecscaleError)


# ---------------------------------------------------------------- broken on purpose


@dataclass
class ByHand:
    """A policy whose plan is a plain function."""

    make: Callable[[TrainStep], Pipeline]
    consistency: str = "synchronous"
    staleness_steps: int = 0
    micro_batches: int = 1

    def plan(self, step: TrainStep) -> Pipeline:
        return self.make(step)


@dataclass(frozen=True)
class Life:
    """Dual-buffer pipelining written out, with a switch for everything that keeps its rows fresh."""

    refresh_reads: int | None = 1
    refresh_after_update: bool = True
    refresh_after_retrieve: bool = True
    wait_for_write_back: bool = True
    host_together: bool = True
    retrieve_ahead: int = 1

    def __call__(self, step: TrainStep) -> Pipeline:
        read = read_inputs(step, ahead=4)
        inputs = copy_inputs(step, read, ahead=3)
        route = route_keys(step, inputs, ahead=2)
        if self.refresh_after_retrieve:
            retrieve = retrieve_rows(step, route, ahead=self.retrieve_ahead)
            ready = refresh = self.refresh(step, retrieve)
        else:
            refresh = self.refresh(step, route)
            ready = retrieve = retrieve_rows(step, refresh, ahead=self.retrieve_ahead)
        part = WholeBatch().fragment(step, ready)
        back = write_back(step, [part.rows_updated])
        return Pipeline(
            self.streams([read, inputs, route], retrieve, refresh, back, part),
            [Carry(part.rows_updated, to=refresh)] if self.refresh_after_update else [],
            [self.rows(retrieve, refresh, back)],
            part.updates,
        )

    def refresh(self, step: TrainStep, after: Stage) -> Stage:
        of = self.refresh_reads
        reads = () if of is None else (Access(ROWS.store, keys="shared", of=of),)
        writes = () if of is None else (ROWS,)
        return Stage("refresh", "lookup", step.refresh_rows, [after], ahead=1, reads=reads, writes=writes)

    def rows(self, retrieve: Stage, refresh: Stage, back: Stage) -> Buffer:
        if self.wait_for_write_back:
            return Buffer("rows", 2, retrieve, [back, (refresh, 1)])
        return Buffer("rows", 8, retrieve, [back])

    def streams(
        self, lookup: list[Stage], retrieve: Stage, refresh: Stage, back: Stage, part: Fragment
    ) -> dict[str, list[Stage]]:
        read, inputs, route = lookup
        host = {"host": [retrieve, back]} if self.host_together else {"host": [retrieve], "back": [back]}
        return {
            "loader": [read],
            "copy": [inputs],
            "key network": [route],
            **host,
            "device copy": [refresh],
            **{name: list(stages) for name, stages in part.streams.items()},
        }


def test_dual_buffer_written_out_by_hand_is_fresh() -> None:
    check_policy(ByHand(Life()))


def test_write_back_on_a_stream_of_its_own_is_fresh_while_the_buffer_waits_for_it() -> None:
    check_policy(ByHand(Life(host_together=False)))


@pytest.mark.parametrize(
    "broken",
    [
        Life(refresh_reads=None),
        Life(refresh_reads=2),
        Life(refresh_after_update=False),
        Life(refresh_after_retrieve=False),
        Life(host_together=False, wait_for_write_back=False),
        Life(retrieve_ahead=3, wait_for_write_back=False),
    ],
    ids=[
        "no copy of shared rows",
        "copies from the buffer of two batches ago",
        "copies before the update",
        "copied rows are overwritten by those read before",
        "nobody waits for the write-back",
        "reads three batches ahead",
    ],
)
def test_rows_that_miss_an_update_are_caught(broken: Life) -> None:
    with pytest.raises(PolicyError, match=r"lack an update \d+ batches old.*declares a staleness of 0"):
        check_policy(ByHand(broken))


def test_a_late_write_back_is_stale_even_when_the_shared_rows_are_copied() -> None:
    broken = Life(host_together=False, wait_for_write_back=False)
    with pytest.raises(PolicyError, match=r"lack an update [2-9] batches old"):
        check_policy(ByHand(broken))


def test_stale_prefetch_cannot_pass_as_synchronous_nor_promise_too_little() -> None:
    with pytest.raises(
        PolicyError, match=r"an update 1 batches old \(.*\), and the policy declares a staleness of 0"
    ):
        check_policy(ByHand(StalePrefetch().plan))
    with pytest.raises(PolicyError, match="cannot have staleness_steps = 0"):
        check_policy(ByHand(StalePrefetch().plan, consistency="stale"))
    check_policy(ByHand(StalePrefetch().plan, consistency="stale", staleness_steps=1))


def whole_batch(step: TrainStep, change: Callable[[dict[str, list[Stage]], Stage], None]) -> Pipeline:
    """One batch at a time, its streams handed to `change` together with the stage that retrieves rows."""
    plain = catalog.build("serialized").plan(step)
    streams = {name: list(stages) for name, stages in plain.streams.items()}
    change(streams, streams["host"][0])
    return Pipeline(streams, plain.carries, plain.buffers, plain.updates)


def test_rows_exchanged_twice_are_caught() -> None:
    def again(step: TrainStep) -> Pipeline:
        def change(streams: dict[str, list[Stage]], retrieve: Stage) -> None:
            streams["network"].insert(0, exchange_rows(step.micro_batch(1), retrieve, ".again"))

        return whole_batch(step, change)

    with pytest.raises(PolicyError, match=r"move .* bytes per rank and batch; its rows and their gradients"):
        check_policy(ByHand(again))


def test_micro_batches_that_the_policy_does_not_own_up_to_are_caught() -> None:
    with pytest.raises(PolicyError, match="once each in 1 parts"):
        check_policy(ByHand(FrozenWindow(4).plan))
    check_policy(ByHand(FrozenWindow(4).plan, micro_batches=4))


def test_an_exchange_that_loses_bytes_is_caught() -> None:
    def leaky(step: TrainStep) -> Pipeline:
        def change(streams: dict[str, list[Stage]], retrieve: Stage) -> None:
            lost = AllToAllWork(1e6, received_bytes=9e5)
            streams["network"].append(Stage("gossip", "lookup", lost, [retrieve]))

        return whole_batch(step, change)

    with pytest.raises(PolicyError, match=r"gossip: ranks send 1e[+]06 bytes each and receive 900000"):
        check_policy(ByHand(leaky))


def test_a_stage_that_stands_twice_is_caught() -> None:
    def twice(step: TrainStep) -> Pipeline:
        return whole_batch(step, lambda streams, _: streams["loader"].append(streams["loader"][0]))

    with pytest.raises(PolicyError, match='the plan is refused: stage "read" stands twice'):
        check_policy(ByHand(twice))


def test_a_deadlock_is_caught_and_its_cycle_named() -> None:
    def stuck(step: TrainStep) -> Pipeline:
        return whole_batch(step, lambda streams, _: streams["network"].reverse())

    with pytest.raises(PolicyError, match=r"refused: deadlock: .*exchange.*send"):
        check_policy(ByHand(stuck))


def test_a_loader_that_nothing_holds_back_is_caught() -> None:
    def eager(step: TrainStep) -> Pipeline:
        plain = catalog.build("serialized").plan(step)
        return Pipeline(plain.streams, (), (), plain.updates)

    with pytest.raises(PolicyError, match="refused: unbounded queue: nothing holds read back"):
        check_policy(ByHand(eager))


def test_a_plan_that_depends_on_how_often_it_was_asked_is_caught() -> None:
    calls = count()

    def moody(step: TrainStep) -> Pipeline:
        return Nested(DualBuffer(), FrozenWindow(1 + next(calls) % 2)).plan(step)

    with pytest.raises(PolicyError, match="not pure"):
        check_policy(ByHand(moody))


def test_a_plan_of_equal_shape_and_other_amounts_is_not_pure() -> None:
    step = next(example_steps())
    steps = [step, replace(step, workload=replace(step.workload, batch=65))]
    calls = count()

    def moody(_: TrainStep) -> Pipeline:
        return catalog.build("serialized").plan(steps[next(calls) % 2])

    with pytest.raises(PolicyError, match="not pure"):
        check_policy(ByHand(moody), step)
    assert structure(moody(step)) == structure(catalog.build("serialized").plan(step))


def test_a_policy_that_says_nothing_about_its_rows_is_caught() -> None:
    def silent(step: TrainStep) -> Pipeline:
        plain = catalog.build("serialized").plan(step)
        mute: dict[int, Stage] = {}

        def muted(stage: Stage) -> Stage:
            after = [muted(before) for before in stage.after]
            return mute.setdefault(id(stage), Stage(stage.name, stage.kind, stage.work, after))

        streams = {name: [muted(stage) for stage in stages] for name, stages in plain.streams.items()}
        back, read = streams["host"][1], streams["loader"][0]
        return Pipeline(streams, [Carry(back, to=read)], updates=[back])

    with pytest.raises(PolicyError, match="nobody can tell how stale"):
        check_policy(ByHand(silent))


def test_a_plan_must_be_a_pipeline_with_computation_on_its_compute_stream() -> None:
    with pytest.raises(PolicyError, match="plan returned a str"):
        check_policy(ByHand(lambda step: "a pipeline"))  # type: ignore[arg-type, return-value]

    def idle(step: TrainStep) -> Pipeline:
        plain = catalog.build("serialized").plan(step)
        return Pipeline(plain.streams, plain.carries, updates=plain.updates, compute="loader")

    with pytest.raises(PolicyError, match='no stage of kind "compute" stands on the compute stream "loader"'):
        check_policy(ByHand(idle))


def test_an_unknown_consistency_is_caught() -> None:
    with pytest.raises(PolicyError, match='consistency is "eventual"'):
        check_policy(ByHand(catalog.build("serialized").plan, consistency="eventual"))


# ---------------------------------------------------------------- policies from outside packages

OUTSIDE = '''
from dataclasses import dataclass
from simulator.pipeline import Carry, Pipeline, Stage
from simulator.policies.parts import read_inputs
from simulator.policies.serialized import Serialized


@dataclass(frozen=True)
class Patient(Serialized):
    """One batch at a time, named from outside."""

    pause: int = 0


class Accumulating(Serialized):
    """Dense gradients are added up over four batches, then reduced and applied once."""

    def plan(self, step):
        read, part = read_inputs(step), step.micro_batch(1)
        train = Stage("train", "compute", part.forward, after=[read])
        rare = {"every": 4, "phase": 3}
        sync = Stage("sync", "all_reduce", part.all_reduce_bucket, after=[train], **rare)
        update = Stage("update", "compute", step.optimizer, after=[sync], **rare)
        streams = {"loader": [read], "compute": [train, update], "network": [sync]}
        return Pipeline(streams, [Carry(train, to=read)], updates=[update])
'''


ENTRY_POINTS = """
[recscale.policies]
patient = patient_policies:Patient
accumulating = patient_policies:Accumulating
torn = patient_policies:Missing
"""

SCENARIO = """
cluster: {accelerator: a100_80, per_host: 2, hosts: 1}
workload:
  model: {kind: mlp, inputs: 64, layers: [64, 1], precision: tf32}
  tables: [{name: items, rows: 1e5, dimension: 64}]
  keys: {kind: zipf, exponent: 0.9}
  batch: 128
sharding: {kind: row_wise}
policy: {kind: patient, pause: 2}
run: {contention: false}
"""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution with one policy, on the path as if it had been installed."""
    (tmp_path / "patient_policies.py").write_text(OUTSIDE)
    info = tmp_path / "patient_policies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: patient-policies\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path  # type: ignore[misc]
    sys.modules.pop("patient_policies", None)


@pytest.mark.usefixtures("outside")
def test_an_outside_package_adds_a_policy_through_its_entry_point() -> None:
    assert "patient" in catalog.names()
    policy: Policy = catalog.build("patient", pause=3)
    assert policy.pause == 3  # type: ignore[attr-defined]
    check_policy(policy)


@pytest.mark.usefixtures("outside")
def test_a_wrong_parameter_of_an_outside_policy_is_refused_with_its_name() -> None:
    with pytest.raises(InputError, match='policy "patient" has no parameter "hurry"'):
        catalog.build("patient", hurry=1)


@pytest.mark.usefixtures("outside")
def test_a_scenario_can_name_an_outside_policy(tmp_path: Path) -> None:
    from simulator.scenario import load, run_scenario

    (tmp_path / "patient.yaml").write_text(SCENARIO)
    scenario = load(tmp_path / "patient.yaml")
    assert type(scenario.policy).__name__ == "Patient"
    plain = run_scenario(scenario.with_policy({"kind": "serialized"})).report
    assert run_scenario(scenario).report.step_ms == plain.step_ms


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("warm_up", [12, 13, 14, 15])
def test_steps_are_counted_over_whole_periods_of_a_policy_that_updates_in_every_fourth_batch(
    tmp_path: Path, warm_up: int
) -> None:
    from simulator.scenario import load, run_scenario

    (tmp_path / "slow.yaml").write_text(SCENARIO.replace("patient, pause: 2", "accumulating"))
    settings = [f"run.warm_up={warm_up}", "run.batches=41"]
    run = run_scenario(load(tmp_path / "slow.yaml", settings))
    assert run.timeline.graph.period == 4
    assert len(run.step_ns) % 4 == 0
    assert run.report.step_ms["mean"] == pytest.approx(float(run.bottleneck.period_ns) / 1e6, rel=1e-12)


@pytest.mark.usefixtures("outside")
def test_an_outside_policy_that_cannot_be_loaded_is_reported_and_not_a_crash() -> None:
    with pytest.raises(InputError, match=r'policy "torn" of patient-policies cannot be loaded: .*Missing'):
        catalog.build("torn")


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(("name", "owner"), [("patient", "hasty-policies"), ("het", "recscale")])
def test_a_policy_that_two_packages_bring_is_refused_with_both_names(
    name: str, owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "more" / "hasty_policies-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hasty-policies\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS.replace("torn", "het"))
    monkeypatch.syspath_prepend(info.parent)
    other = "patient-policies" if name == "patient" else "hasty-policies"
    with pytest.raises(InputError, match=f'"{name}" is a policy of {owner} and of {other}: it can be of one'):
        catalog.build(name)
    assert type(catalog.build("serialized")).__name__ == "Serialized"


def test_a_policy_that_nobody_brings_is_refused() -> None:
    assert "patient" not in catalog.names()
    with pytest.raises(InputError, match='no policy is called "patient"'):
        catalog.build("patient")
